// service_status.h: Snapshots of a service at one moment. Answers for users (router/view, router/admin) are built from these.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/control/evidence_pace.h"
#include "router/control/recent_answers.h"
#include "router/rollout/rollout.h"
#include "router/store/shared_store.h"

namespace serin::router {

/// This router's position among the routers that share its rollouts.
struct ReplicasStatus {
  std::string self, leader;            ///< names; leader empty: no leader is known
  std::string leader_admin;            ///< URL of its admin API
  bool leads = false;                  ///< this router is the leader
  bool reachable = false;              ///< the shared store, at the last query
  double behind_seconds = 0;           ///< since the last state that a majority agreed on
  size_t untold = 0;                   ///< verdicts of this router that are not yet in the shared store
  std::vector<store::Member> members;  ///< alive, including this router
};

struct ServiceStatus {
  std::string service, stable;
  uint64_t epoch = 0;                          ///< for If-Match
  AnswerSummary recent_stable, recent_canary;  ///< renewed every second
  std::optional<rollout::Report> rollout;      ///< the current or the last rollout
  size_t rollout_steps = 0;                    ///< of its specification
  double rollout_seconds = 0;                  ///< from its start to now, or to its verdict
  std::optional<NextTrip> next_verdict;        ///< of the running rollout, at the rate of the last seconds
  struct Warm {
    std::string version;
    double seconds = 0;
  };
  /// After a promotion: the version that undo would restore, and the time it is still kept warm.
  std::optional<Warm> warm;
  std::optional<ReplicasStatus> replicas;  ///< nothing if this router runs alone
};

/// The speed of the stable version, for hedging and the exposure cap. 0: not known yet.
struct Pace {
  std::chrono::nanoseconds hedge_after{0};  ///< max(the specification's quantile of stable, 1.5 times its median); 0: hedging is off
  std::chrono::nanoseconds p99{0};
};

}  // namespace serin::router
