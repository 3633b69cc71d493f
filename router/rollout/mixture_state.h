// mixture_state.h: what a process of bets knows: enough to stop and go on elsewhere, bit for bit.
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
