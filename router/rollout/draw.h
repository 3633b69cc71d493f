// draw.h: Chooses the arm of one request. Pure: the data path supplies the random number and the request's own attributes.
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
  /// Stable's model on replicas as fresh as the canary's (Spec::baseline): the canary is compared with it.
  kBaseline,
  kCanary,
};

/// The request's attributes; empty if absent or not needed.
struct Says {
  std::string_view cohort;  ///< value of the header Spec::cohort.header
  std::string_view key;     ///< value of the header or cookie of Spec::sticky
};

struct Draw {
  Place place = Place::kStable;
  bool drawn = true;             ///< Observation::drawn
  bool evidence = true;          ///< false: stable's while there is a baseline arm: no observation
  bool look = false;             ///< read the answer's body (Observation::output)
  uint32_t weight_ppm = 0;       ///< Observation::weight_ppm
  uint32_t look_weight_ppm = 0;  ///< Output::weight_ppm
  std::optional<uint64_t> key;   ///< Observation::key

  Arm arm() const { return place == Place::kCanary ? Arm::kCanary : Arm::kStable; }
};

/// `random`: 64 independent bits for each request; the statistics depend on it. weight_ppm: the canary's, of the current split.
Draw draw_request(const Spec& spec, uint32_t weight_ppm, const Says& says, uint64_t random);

/// The baseline arm's weight while the canary has this weight; 0 if the rollout has no baseline arm.
uint32_t baseline_weight(const Spec& spec, uint32_t weight_ppm);

/// The value of one cookie in a Cookie header; empty if absent.
std::string_view cookie_value(std::string_view header, std::string_view name);

}  // namespace serin::rollout
