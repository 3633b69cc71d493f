// event_process.cc: the change-point-mixture event-attribution e-process.
//
// Let w be the canary's share and rho_0 the tolerated ratio. If the canary's bad rate is at most rho_0 times stable's in every context, then
// a bad event is the canary's with probability at most q_0 = rho_0 w / (1 - w + rho_0 w), whatever the common rate does over time. Against the
// alternative rho_j = rho_0 2^j one bad event has the likelihood ratio
//
//   L_j = (canary ? rho_j / rho_0 : 1) * (1 - w + rho_0 w) / (1 - w + rho_j w),       E[L_j] = 1 at q_0, less below
//
// and M_j <- (M_j + omega_k) L_j starts an omega_k part of the bet at event k (mixture_state.h). E = mean_j M_j + (prior mass not yet started)
// is a nonnegative supermartingale that starts at 1.

#include "router/rollout/event_process.h"

#include <algorithm>
#include <cmath>

namespace serin::rollout {
EventProcess::EventProcess(double tolerated_ratio) : tolerated_ratio_(tolerated_ratio) {}

void EventProcess::prepare(double share) {
  if (share == prepared_share_) return;
  prepared_share_ = share;
  const double tolerated = 1 - share + tolerated_ratio_ * share;
  double multiple = 1;
  for (size_t j = 0; j < kRatios; ++j) {
    multiple *= 2;
    stable_ratio_[j] = tolerated / (1 - share + tolerated_ratio_ * multiple * share);
    canary_ratio_[j] = multiple * stable_ratio_[j];
  }
}

void EventProcess::observe(Arm arm, double share, double units) {
  prepare(std::clamp(share, 0.0, 1.0));
  const auto& ratio = arm == Arm::kCanary ? canary_ratio_ : stable_ratio_;
  state_.observe(/*start_every=*/1, kLargestEvidence, [&](size_t j) { return units == 1 ? ratio[j] : std::pow(ratio[j], units); });
  e_ = state_.e();
}

void EventProcess::restore(const MixtureState& state) {
  state_ = state;
  e_ = state.e();
}

}  // namespace serin::rollout
