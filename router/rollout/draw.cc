// draw.cc: cohort, key, random number: the first that applies decides.
//
// A key is placed by hash(key, salt) < weight: no table, the same in every router, and stable when the weight changes: as it rises keys only move
// from stable to the canary, as it falls only back. Both arms are sticky that way. The salt is the rollout's, so that the next canary meets others
// first.
//
// With a baseline arm the canary's share w is matched by another w on stable's model with fresh replicas (1-w where w is over a half); only
// these two are compared, so that cold caches, other hardware or small batches burden both. Requests that stay on the old replicas are not
// evidence.
//
// Bodies: all of the canary's answers are looked at, and so many of stable's that they are four times as many (at least 5 %, to know what stable
// usually says): more would cost time and add next to nothing, because evidence grows with the rarer arm.

#include "router/rollout/draw.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/stable_hash.h"

namespace serin::rollout {
namespace {

constexpr uint32_t kLeastLooks = 50'000;

bool in_cohort(const Cohort& cohort, std::string_view value) {
  return !cohort.header.empty() && !value.empty() && std::ranges::find(cohort.values, value) != cohort.values.end();
}

/// Of stable's answers.
uint32_t looks_at_stable(uint32_t weight_ppm) {
  if (weight_ppm >= kAll / 5) return kAll;
  return std::max<uint32_t>(kLeastLooks, static_cast<uint32_t>(uint64_t{4} * weight_ppm * kAll / (kAll - weight_ppm)));
}

uint32_t share(uint64_t part, uint64_t other) { return part + other == 0 ? 0 : static_cast<uint32_t>(part * kAll / (part + other)); }

void draw_looks(Draw& draw, uint64_t random) {
  const uint32_t looks = looks_at_stable(draw.weight_ppm);
  draw.look = draw.evidence && (draw.place == Place::kCanary || mix(random) % kAll < looks);
  draw.look_weight_ppm = share(uint64_t{draw.weight_ppm} * kAll, uint64_t{kAll - draw.weight_ppm} * looks);
}

}  // namespace

Draw draw_request(const Spec& spec, uint32_t weight_ppm, const Says& says, uint64_t random) {
  weight_ppm = std::min(weight_ppm, kAll);
  if (weight_ppm > 0 && in_cohort(spec.cohort, says.cohort))
    return {.place = Place::kCanary, .drawn = false, .look = true, .weight_ppm = weight_ppm};

  Draw draw{.weight_ppm = weight_ppm};
  if (spec.sticky.on() && !says.key.empty()) draw.key = hash_key(says.key, spec.sticky.salt);
  const uint32_t point = static_cast<uint32_t>((draw.key ? mix(*draw.key) : random) % kAll);
  const uint32_t matched = baseline_weight(spec, weight_ppm);
  draw.place = point < weight_ppm ? Place::kCanary : point < weight_ppm + matched ? Place::kBaseline : Place::kStable;
  if (matched > 0) {
    draw.weight_ppm = share(weight_ppm, matched);
    draw.evidence = draw.place != Place::kStable;
  }
  draw_looks(draw, random);
  return draw;
}

std::optional<size_t> draw_among(std::span<Candidate> candidates, uint64_t random) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    Candidate& each = candidates[i];
    if (each.weight_ppm == 0 || !in_cohort(each.spec->cohort, each.says.cohort)) continue;
    each.draw = {.place = Place::kCanary, .drawn = false, .look = true, .weight_ppm = each.weight_ppm};
    return i;
  }
  // One after the other draws from what those before it have left, each with its own hash of the key.
  std::optional<size_t> taker;
  uint32_t left = kAll;
  for (size_t i = 0; i < candidates.size(); ++i) {
    Candidate& each = candidates[i];
    random = mix(random + kGolden);
    each.draw = draw_request(*each.spec, share(each.weight_ppm, left - each.weight_ppm), each.says, random);
    left -= each.weight_ppm;
    if (each.draw.place == Place::kCanary && !taker) taker = i;
  }
  // Odds of canary i against stable: p_i / ((1 - p_i) * product of (1 - p_j) over the later j). Earlier ones have refused either way.
  double later = 1;
  for (size_t i = candidates.size(); i-- > 0;) {
    Draw& draw = candidates[i].draw;
    const double p = static_cast<double>(draw.weight_ppm) / kAll, against = (1 - p) * later;
    later = against;
    draw.weight_ppm = p > 0 ? static_cast<uint32_t>(std::lround(kAll * p / (p + against))) : 0;
    draw_looks(draw, mix(random + i));
  }
  return taker;
}

void fit_together(std::span<uint32_t> weights_ppm) {
  constexpr size_t kMost = 64;
  if (weights_ppm.size() < 2 || weights_ppm.size() > kMost) return;
  std::array<uint32_t, kMost> sorted{};
  const auto end = std::ranges::copy(weights_ppm, sorted.begin()).out;
  std::sort(sorted.begin(), end);
  uint32_t left = kAll - kStableKeeps;
  auto others = static_cast<uint32_t>(weights_ppm.size());
  for (auto smallest = sorted.begin(); smallest != end; ++smallest, --others) {
    if (*smallest > left / others) break;
    left -= *smallest;
  }
  if (others == 0) return;
  for (uint32_t& weight : weights_ppm) weight = std::min(weight, left / others);
}

uint32_t baseline_weight(const Spec& spec, uint32_t weight_ppm) {
  return spec.baseline.empty() ? 0 : std::min(weight_ppm, kAll - weight_ppm);
}

std::string_view cookie_value(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const size_t end = std::min(header.find(';'), header.size());
    std::string_view pair = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') return pair.substr(name.size() + 1);
  }
  return {};
}

}  // namespace serin::rollout
