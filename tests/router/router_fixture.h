// router_fixture.h: a controller with one service 'digits' of versions 1, 2, 3 on a store of its own, and answers to feed it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "router/control/controller.h"
#include "tests/router/store/test_folder.h"
#include "tests/runtime/base/eventually.h"

namespace serin::router {

using test::eventually;

inline RouterConfig digits_config(const std::string& store) {
  RouterConfig config;
  config.store = store;
  config.admin.rate = 0;  // tests ask as fast as they can
  ServiceConfig digits{.name = "digits", .initial_stable = "1"};
  for (const char* name : {"1", "2", "3"})
    digits.versions.push_back({.name = name, .endpoints = {{.url = "http://127.0.0.1:8000", .origin = {"127.0.0.1", 8000}}}});
  config.services.push_back(digits);
  return config;
}

inline rollout::Spec spec_of(const std::string& canary, std::initializer_list<uint32_t> percents) {
  rollout::Spec spec{.service = "digits", .canary = canary};
  for (const uint32_t percent : percents) spec.steps.push_back({.weight_ppm = percent * 10'000, .until = rollout::Step::Until::kCertified});
  return spec;
}

/// What the data path does for one request: draws an arm under the split in force, and reports how it went.
inline rollout::Observation answer(const Split& split, rollout::Arm arm, rollout::Outcome outcome, uint64_t batch) {
  return {.arm = arm,
          .epoch = split.epoch,
          .weight_ppm = split.weight_ppm,
          .outcome = outcome,
          .latency = std::chrono::milliseconds(2),
          .batch = rollout::BatchId{batch, 0, 1},
          .endpoint = arm == rollout::Arm::kCanary ? 1U : 0U};
}

/// `count` requests, `percent_canary` of them on the canary, all of whose answers are `canary_outcome`.
inline void send(Controller& controller, int count, int percent_canary, rollout::Outcome canary_outcome, uint64_t first_batch = 0) {
  for (int i = 0; i < count; ++i) {
    const bool canary = i * percent_canary % 100 < percent_canary;
    const Split split = controller.split(0);
    if (canary && split.canary == Split::kNoCanary) continue;
    controller.observe(0, answer(split, canary ? rollout::Arm::kCanary : rollout::Arm::kStable,
                                 canary ? canary_outcome : rollout::Outcome::kOk, first_batch + static_cast<uint64_t>(i)));
  }
}

inline std::unique_ptr<Controller> open_controller(const RouterConfig& config, metrics::Registry& metrics) {
  auto controller = Controller::open(config, metrics);
  if (!controller) return nullptr;
  (*controller)->begin();
  return *std::move(controller);
}

}  // namespace serin::router
