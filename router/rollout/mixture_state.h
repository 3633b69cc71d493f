// mixture_state.h: The complete state of a betting process: enough to stop it and continue it elsewhere, bit for bit.
#pragma once

#include <array>
#include <cstdint>

namespace serin::rollout {

struct MixtureState {
  std::array<double, 8> mixture{};
  double unused_mass = 1;  ///< of the change-point prior
  uint64_t count = 0;      ///< events or answers so far
  bool operator==(const MixtureState&) const = default;
};

}  // namespace serin::rollout
