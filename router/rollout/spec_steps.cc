// spec_steps.cc: `steps:` and everything that is a weight or a duration in it.
//
// A step is {shadow: ...}, {setWeight: ...}, {pause: ...} or, last, {promote: ...}; a bare number is short for {setWeight: number}. The state
// machine relies on what is refused here: weights rise, shadow steps come before them, a promotion is last.

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/spec.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

using config::Node;

constexpr uint32_t kPpmPerPercent = 10'000;
constexpr size_t kMostSteps = 100;

Result<uint32_t> positive_weight(const Node& node) {
  SERIN_TRY(const uint32_t weight, weight_of(node));
  if (weight == 0) return node.error("must be above 0");
  return weight;
}

/// until: certified | {duration: 10m}
Status read_until(const Node& owner, Step& step) {
  const auto until = owner.find("until");
  if (!until) return {};
  if (until->is_map()) {
    SERIN_CHECK(until->allow_only({"duration"}));
    SERIN_TRY(const Node duration, until->at("duration"));
    SERIN_TRY(step.duration, positive_duration(duration));
    step.until = Step::Until::kDuration;
    return {};
  }
  return until->is_scalar() && *until->text() == "certified" ? Status() : until->error("must be certified or {duration: 10m}");
}

Result<Step> read_shadow_step(const Node& shadow) {
  Step step;
  SERIN_CHECK(shadow.allow_only({"percent", "until"}));
  SERIN_TRY(const Node percent, shadow.at("percent"));
  SERIN_TRY(step.shadow_ppm, positive_weight(percent));
  SERIN_CHECK(read_until(shadow, step));
  return step;
}

Result<Step> read_pause_step(const Node& entry) {
  Step step{.until = Step::Until::kManual};
  const auto pause = entry.find("pause");
  if (!pause) return step;  // {pause: } with nothing: as in Argo, until a person resumes it
  SERIN_CHECK(pause->allow_only({"duration"}));
  if (const auto duration = pause->find("duration")) {
    SERIN_TRY(step.duration, positive_duration(*duration));
    step.until = Step::Until::kDuration;
  }
  return step;
}

/// A number is short for {setWeight: number}.
Result<Step> read_step(const Node& entry) {
  if (entry.is_scalar()) {
    Step step;
    SERIN_TRY(step.weight_ppm, positive_weight(entry));
    return step;
  }
  SERIN_CHECK(refuse_unsupported(entry, {"analysis", "experiment", "setHeaderRoute", "setMirrorRoute"}));
  SERIN_CHECK(entry.allow_only({"shadow", "setWeight", "until", "pause", "promote"}));
  const auto keys = entry.keys();
  const auto has = [&](std::string_view key) { return std::ranges::find(keys, key) != keys.end(); };
  if (has("setWeight") && !has("shadow") && !has("pause")) {
    Step step;
    SERIN_TRY(const Node weight, entry.at("setWeight"));
    SERIN_TRY(step.weight_ppm, positive_weight(weight));
    SERIN_CHECK(read_until(entry, step));
    return step;
  }
  if (keys.size() == 1 && has("shadow")) {
    SERIN_TRY(const Node shadow, entry.at("shadow"));
    return read_shadow_step(shadow);
  }
  if (keys.size() == 1 && has("pause")) return read_pause_step(entry);
  return entry.error("a step is one of {shadow: {percent: 10}}, {setWeight: 5, until: certified}, {pause: {}}, {promote: {bake: 30m}}");
}

Status read_promote(const Node& promote, Spec& spec) {
  SERIN_CHECK(promote.allow_only({"bake", "control"}));
  SERIN_TRY(spec.bake, promote.duration("bake", spec.bake));
  spec.bake_control_ppm = spec.bake.count() > 0 ? 5 * kPpmPerPercent : 0;
  const auto control = promote.find("control");
  if (!control) return {};
  SERIN_TRY(spec.bake_control_ppm, weight_of(*control));
  if (spec.bake.count() == 0) return control->error("needs a bake time: {bake: 30m, control: 5}");
  return spec.bake_control_ppm <= 50 * kPpmPerPercent ? Status() : control->error("must be at most 50: the new version is being promoted");
}

}  // namespace

/// Refuses a key of ours whose time has not come.
Status refuse_unsupported(const Node& node, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (const auto value = node.find(key)) return value->error("not supported yet");
  return {};
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

Status read_steps(const Node& list, Spec& spec) {
  if (list.is_scalar() && *list.text() == "blue-green") {
    spec.steps = blue_green_steps();
    return {};
  }
  if (!list.is_list())
    return list.error("must be a list such as [5, 25, 50, 100] or [{setWeight: 5, until: certified}, {pause: {}}], or blue-green");
  const auto entries = list.items();
  if (entries.size() > kMostSteps) return list.error(fmt::format("at most {} steps", kMostSteps));
  uint32_t weight = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Node& entry = entries[i];
    if (const auto promote = entry.find("promote")) {
      SERIN_CHECK(entry.allow_only({"promote"}));
      SERIN_CHECK(read_promote(*promote, spec));
      if (i + 1 != entries.size()) return entry.error("promote must be the last step");
      break;
    }
    SERIN_TRY(const Step step, read_step(entry));
    if (step.is_shadow() && weight > 0) return entry.error("a shadow step comes before the first setWeight");
    if (step.weight_ppm > 0 && step.weight_ppm <= weight)
      return entry.error(fmt::format("weights must rise: {} after {}", print_weight(step.weight_ppm), print_weight(weight)));
    weight = std::max(weight, step.weight_ppm);
    spec.steps.push_back(step);
  }
  return weight > 0 ? Status() : list.error("no step sets a weight");
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
