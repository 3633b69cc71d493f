// spec_steps.cc: reads `steps:` and every weight and duration in it.
//
// A step is {shadow: ...}, {setWeight: ...}, {pause: ...} or, last, {promote: ...}; a bare number is short for {setWeight: number}. The state
// machine relies on what is refused here: weights rise, shadow steps come before them, a promotion is last.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "router/rollout/spec.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

using config::Node;
using config::Problems;

constexpr uint32_t kPpmPerPercent = 10'000;
constexpr size_t kMostSteps = 100;
constexpr int64_t kMostReplayed = 1'000'000;

Result<uint32_t> positive_weight(const Node& node) {
  SERIN_TRY(const uint32_t weight, weight_of(node));
  if (weight == 0) return node.error("must be above 0");
  return weight;
}

/// until: certified | {duration: 10m}
void read_until(const Node& owner, Step& step, Problems& problems) {
  const auto until = owner.find("until");
  if (!until) return;
  if (until->is_map()) {
    problems.allow_only(*until, {"duration"});
    const auto duration = until->at("duration");
    problems.read(step.duration, duration ? positive_duration(*duration) : Result<std::chrono::nanoseconds>(duration.error()));
    step.until = Step::Until::kDuration;
    return;
  }
  if (!until->is_scalar() || *until->text() != "certified") problems.add(until->error("must be certified or {duration: 10m}"));
}

Step read_shadow_step(const Node& shadow, Problems& problems) {
  Step step{.shadow_ppm = 1};  // whatever it says, it is a shadow step
  problems.allow_only(shadow, {"percent", "until", "replay"});
  const auto percent = shadow.at("percent");
  problems.read(step.shadow_ppm, percent ? positive_weight(*percent) : Result<uint32_t>(percent.error()));
  problems.read(step.replay, shadow.integer("replay", 1, kMostReplayed, 0));
  read_until(shadow, step, problems);
  return step;
}

Step read_pause_step(const Node& entry, Problems& problems) {
  Step step{.until = Step::Until::kManual};
  const auto pause = entry.find("pause");
  if (!pause) return step;  // {pause: } with nothing: as in Argo, until a person resumes it
  problems.allow_only(*pause, {"duration"});
  if (const auto duration = pause->find("duration")) {
    problems.read(step.duration, positive_duration(*duration));
    step.until = Step::Until::kDuration;
  }
  return step;
}

/// Also where nothing follows it: {promote: }.
bool has_key(const Node& entry, std::string_view key) {
  const auto keys = entry.keys();
  return std::ranges::find(keys, key) != keys.end();
}

/// A number is short for {setWeight: number}. Nothing: it is no step, or its weight is none, and that was said.
std::optional<Step> read_step(const Node& entry, Problems& problems) {
  Step step;
  if (entry.is_scalar()) return problems.read(step.weight_ppm, positive_weight(entry)) ? std::optional(step) : std::nullopt;
  check_keys(entry, {"shadow", "setWeight", "until", "pause", "promote"}, {"analysis", "experiment", "setHeaderRoute", "setMirrorRoute"},
             problems);
  const auto keys = entry.keys();
  const auto has = [&](std::string_view key) { return has_key(entry, key); };
  if (has("setWeight") && !has("shadow") && !has("pause")) {
    const auto weight = entry.at("setWeight");
    const bool good = problems.read(step.weight_ppm, weight ? positive_weight(*weight) : Result<uint32_t>(weight.error()));
    read_until(entry, step, problems);
    return good ? std::optional(step) : std::nullopt;
  }
  if (keys.size() == 1 && has("shadow")) {
    const auto shadow = entry.at("shadow");
    if (shadow) return read_shadow_step(*shadow, problems);
    problems.add(shadow.error());
    return std::nullopt;
  }
  if (keys.size() == 1 && has("pause")) return read_pause_step(entry, problems);
  if (entry.allow_only({"shadow", "setWeight", "until", "pause", "promote"}))
    problems.add(
        entry.error("a step is one of {shadow: {percent: 10}}, {setWeight: 5, until: certified}, {pause: {}}, {promote: {bake: 30m}}"));
  return std::nullopt;
}

void read_promote(const Node& promote, Spec& spec, Problems& problems) {
  problems.allow_only(promote, {"bake", "control", "keepWarm"});
  problems.read(spec.keep_warm, promote.duration("keepWarm", spec.keep_warm));
  problems.read(spec.bake, promote.duration("bake", spec.bake));
  spec.bake_control_ppm = spec.bake.count() > 0 ? 5 * kPpmPerPercent : 0;
  const auto control = promote.find("control");
  if (!control || !problems.read(spec.bake_control_ppm, weight_of(*control))) return;
  if (spec.bake.count() == 0) return problems.add(control->error("needs a bake time: {bake: 30m, control: 5}"));
  if (spec.bake_control_ppm > 50 * kPpmPerPercent) problems.add(control->error("must be at most 50: the new version is being promoted"));
}

}  // namespace

void check_keys(const Node& node, std::initializer_list<std::string_view> keys, std::initializer_list<std::string_view> unsupported,
                Problems& problems) {
  for (std::string_view key : unsupported) {
    if (std::ranges::count(node.keys(), key) == 0) continue;
    const std::string why = key == "webhooks" ? "belong in router.yaml, for every rollout" : "is not supported yet";
    problems.add(node.find(key).value_or(node).error(fmt::format("{} {}", key, why)));
  }
  for (Error& error : node.refused_keys(keys, unsupported)) problems.add(std::move(error));
}

Result<uint32_t> weight_of(const Node& node) {
  SERIN_TRY(const std::string text, node.text());
  auto weight = parse_weight(text);
  if (!weight) return node.error(weight.error().message);
  return *weight;
}

Result<std::chrono::nanoseconds> positive_duration(const Node& node) {
  SERIN_TRY(const auto duration, node.duration());
  if (duration.count() <= 0) return node.error("must be longer than 0");
  return duration;
}

void read_steps(const Node& list, Spec& spec, Problems& problems) {
  if (list.is_scalar() && *list.text() == "blue-green") {
    spec.steps = blue_green_steps();
    return;
  }
  if (!list.is_list())
    return problems.add(
        list.error("must be a list such as [5, 25, 50, 100] or [{setWeight: 5, until: certified}, {pause: {}}], or blue-green"));
  const auto entries = list.items();
  if (entries.size() > kMostSteps) return problems.add(list.error(fmt::format("at most {} steps", kMostSteps)));
  uint32_t weight = 0;
  bool all_read = true;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Node& entry = entries[i];
    if (has_key(entry, "promote")) {
      problems.allow_only(entry, {"promote"});
      if (const auto promote = entry.find("promote")) read_promote(*promote, spec, problems);
      if (i + 1 != entries.size()) problems.add(entry.error("promote must be the last step"));
      continue;
    }
    const auto step = read_step(entry, problems);
    all_read = all_read && step.has_value();
    if (!step) continue;
    if (step->replay > 0 && i > 0) problems.add(entry.error("replay belongs to the first step: the canary has no traffic yet"));
    if (step->is_shadow() && weight > 0) problems.add(entry.error("a shadow step comes before the first setWeight"));
    if (step->weight_ppm > 0 && step->weight_ppm <= weight)
      problems.add(entry.error(fmt::format("weights must rise: {} after {}", print_weight(step->weight_ppm), print_weight(weight))));
    weight = std::max(weight, step->weight_ppm);
    spec.steps.push_back(*step);
  }
  if (weight == 0 && all_read) problems.add(list.error("no step sets a weight"));
}

std::vector<Step> default_steps() {
  std::vector<Step> steps{Step{.shadow_ppm = 10 * kPpmPerPercent}};
  for (uint32_t percent : {1, 5, 20, 50, 100}) steps.push_back(Step{.weight_ppm = percent * kPpmPerPercent});
  return steps;
}

/// Green is checked on copies of requests, then a person switches everything at once.
std::vector<Step> blue_green_steps() {
  return {Step{.shadow_ppm = 10 * kPpmPerPercent}, Step{.until = Step::Until::kManual}, Step{.weight_ppm = kAll}};
}

Result<uint32_t> parse_weight(std::string_view text) {
  const auto refuse = [&] {
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' is not a weight: percent from 0 to 100 with at most four decimals", text.substr(0, 40))};
  };
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  const size_t point = digits.find('.');
  const std::string_view whole = digits.substr(0, point);
  const std::string_view decimals = point == std::string_view::npos ? "" : digits.substr(point + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (whole.empty() || whole.size() > 3 || decimals.size() > 4 || (decimals.empty() && point != std::string_view::npos)) return refuse();
  if (!std::ranges::all_of(whole, is_digit) || !std::ranges::all_of(decimals, is_digit)) return refuse();
  uint32_t ppm = 0;
  for (char c : whole) ppm = ppm * 10 + static_cast<uint32_t>(c - '0');
  for (size_t i = 0; i < 4; ++i) ppm = ppm * 10 + (i < decimals.size() ? static_cast<uint32_t>(decimals[i] - '0') : 0);
  if (ppm > kAll) return refuse();
  return ppm;
}

}  // namespace serin::rollout
