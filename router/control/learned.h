// learned.h: what a service has learned from its traffic and no file holds: the evidence of the rollout under way, stable's latencies, curves for
// people. One reading of router.yaml leaves it to the next, in the same process.
//
//   LearnedServices learned = old_controller.take_learned();      // once it has retired
//   Controller::open(next_config, metrics, audit, &learned);      // takes what still holds
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "router/config/config.h"
#include "router/control/baseline.h"
#include "router/control/recent_answers.h"
#include "router/rollout/rollout.h"
#include "router/view/timeline.h"

namespace serin::router {

struct Learned {
  ServiceConfig config;  ///< under which it was learned
  int routers = 0;       ///< by how many alpha was divided
  std::string stable;
  RecentLatencies latencies;            ///< of stable
  std::array<RecentAnswers, 2> recent;  ///< by arm
  std::optional<rollout::Rollout> rollout;
  Timeline timeline;
};

using LearnedServices = std::map<std::string, Learned>;  // by service

/// Both are at the same place: same versions, step, weights and words about them.
bool same(const rollout::State& a, const rollout::State& b);
/// The version of that name is what it was: endpoints may have come or gone, but not all of them, and they are found the same way.
bool same_version(const ServiceConfig& before, const ServiceConfig& now, const std::string& version);
/// The evidence still is about a rollout that goes on from `state`.
bool goes_on(const Learned& learned, const ServiceConfig& now, const rollout::State& state, int routers);

}  // namespace serin::router
