// draw.h: Chooses the arm of one request. Pure: the data path supplies the random number and the request's own attributes.
//
//   const Draw draw = draw_request(spec, split.weight_ppm, {.cohort = header, .key = header}, random());
//   forward(draw.place);  ...  observation.weight_ppm = draw.weight_ppm; observation.key = draw.key;
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// One of several canaries of a service at once.
struct Candidate {
  const Spec* spec = nullptr;
  uint32_t weight_ppm = 0;  ///< of the service's requests
  Says says;
  Draw draw;  ///< set by draw_among()
};

/// Draws for several canaries at once. Returns the candidate whose canary gets the request; nothing: stable gets it. Then every draw compares
/// stable with that candidate's canary: weight_ppm is its share of what the two get. Of a canary that gets it, only its own draw is set.
/// A key stays where it is while no weight changes. The weights fit together (fit_together()).
std::optional<size_t> draw_among(std::span<Candidate> candidates, uint64_t random);

/// Lowers the largest weights to one size (max-min fairness), so that stable keeps a tenth of the requests while there are several canaries. Two at
/// 50 % get 45 % each. One weight alone stays as it is.
void fit_together(std::span<uint32_t> weights_ppm);
inline constexpr uint32_t kStableKeeps = 100'000;

/// The baseline arm's weight while the canary has this weight; 0 if the rollout has no baseline arm.
uint32_t baseline_weight(const Spec& spec, uint32_t weight_ppm);

/// The value of one cookie in a Cookie header; empty if absent.
std::string_view cookie_value(std::string_view header, std::string_view name);

}  // namespace serin::rollout
