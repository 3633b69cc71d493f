// change_point.h: The prior over the start of a fault, shared by every test that must stay sensitive late.
//
// Half of the mass bets that the canary was bad from the start. The rest is spread over all later moments as 1/(k ln^2 k), the heaviest
// tail that still has a finite sum. A plain e-process pays for every good hour before a fault; with this prior it pays about 2 ln(k) once.
#pragma once

#include <cmath>
#include <cstdint>

namespace serin::rollout {

/// omega_0 = 1/2, omega_k = c / (2 (k+1) ln^2(k+1)); they add up to 1.
inline double change_point_mass(uint64_t k) {
  constexpr double kNormaliser = 1 / 2.1097;  // 1 / sum over k >= 2 of 1/(k ln^2 k)
  if (k == 0) return 0.5;
  const double position = static_cast<double>(k) + 1;
  const double log_position = std::log(position);
  return 0.5 * kNormaliser / (position * log_position * log_position);
}

}  // namespace serin::rollout
