// evidence_pace.h: Predicts the first guard that would roll the canary back, and when, if evidence keeps its growth of the last ten
// seconds.
//
// For display only: no verdict uses it.
//
//   pace.add(report.evidence, now);        // about once a second
//   pace.next();                           // {"err", 12.5}
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/rollout.h"

namespace serin::router {

struct NextTrip {
  std::string guard;
  double seconds = 0;
};

/// Not thread-safe.
class EvidencePace {
 public:
  void add(std::vector<rollout::Evidence> evidence, rollout::Time now);
  /// Nothing if no guard's evidence grows, or all have too little to be a warning.
  std::optional<NextTrip> next() const;
  void clear() { looks_.clear(); }

 private:
  struct Look {
    rollout::Time at;
    std::vector<rollout::Evidence> evidence;
  };
  std::deque<Look> looks_;
};

}  // namespace serin::router
