// learned.h: Knowledge of a service that comes from its traffic and is in no file.
//
// It is the evidence of the current rollout, stable's latencies and the dashboard's curves. One reading of router.yaml passes it to the
// next, in the same process.
//
//   LearnedServices learned = old_controller.take_learned();      // once it has retired
//   Controller::open(next_config, metrics, audit, &learned);      // takes the parts that still apply
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "router/config/config.h"
#include "router/control/baseline.h"
#include "router/control/recent_answers.h"
#include "router/control/timeline.h"
#include "router/rollout/rollout.h"

namespace serin::router {

struct Learned {
  ServiceConfig config;  ///< the configuration it was learned under
  int routers = 0;       ///< the number alpha was divided by
  std::string stable;
  RecentLatencies latencies;            ///< of the stable version
  std::array<RecentAnswers, 2> recent;  ///< by arm
  std::optional<rollout::Rollout> rollout;
  Timeline timeline;
};

using LearnedServices = std::map<std::string, Learned>;  // by service

/// Both are at the same point: same versions, step, weights and reasons.
bool same(const rollout::State& a, const rollout::State& b);
/// The version with that name is unchanged: endpoints may have come or gone, but not all of them, and their source is the same.
bool same_version(const ServiceConfig& before, const ServiceConfig& now, const std::string& version);
/// The evidence still applies to a rollout that continues from `state`.
bool goes_on(const Learned& learned, const ServiceConfig& now, const rollout::State& state, int routers);

}  // namespace serin::router
