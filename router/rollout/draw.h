// draw.h: where one request goes. Pure: the data path brings the random number and what the request says of itself.
//
//   const Draw draw = draw_request(spec, split.weight_ppm, {.cohort = header, .key = header}, random());
//   forward(draw.place);  ...  observation.weight_ppm = draw.weight_ppm; observation.key = draw.key;
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "router/rollout/observation.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

enum class Place : uint8_t {
  kStable,
  kBaseline,  ///< stable's model on replicas as fresh as the canary's (Spec::baseline): what the canary is compared with
  kCanary,
};

/// What a request says of itself; empty where it says nothing, or nothing is asked.
struct Says {
  std::string_view cohort;  ///< value of the header Spec::cohort.header
  std::string_view key;     ///< value of the header or cookie of Spec::sticky
};

struct Draw {
  Place place = Place::kStable;
  bool drawn = true;             ///< Observation::drawn
  bool evidence = true;          ///< false: stable's beside a baseline arm: no observation
  bool look = false;             ///< read the answer's body (Observation::output)
  uint32_t weight_ppm = 0;       ///< Observation::weight_ppm
  uint32_t look_weight_ppm = 0;  ///< Output::weight_ppm
  std::optional<uint64_t> key;   ///< Observation::key

  Arm arm() const { return place == Place::kCanary ? Arm::kCanary : Arm::kStable; }
};

/// `random`: 64 independent bits for each request; the statistics rest on it. weight_ppm: the canary's, of the split in force.
Draw draw_request(const Spec& spec, uint32_t weight_ppm, const Says& says, uint64_t random);

/// What the baseline arm gets while the canary has this weight; 0 where the rollout has none.
uint32_t baseline_weight(const Spec& spec, uint32_t weight_ppm);

/// The value of one cookie in a Cookie header; empty where it is not there.
std::string_view cookie_value(std::string_view header, std::string_view name);

}  // namespace serin::rollout
