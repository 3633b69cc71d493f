// spec.cc: a document of kind Rollout -> Spec.
//
// The words are those that release engineers know from Argo and Flagger. Nonsense is refused here, with the line and what is allowed, so
// that the state machine may trust its specification: weights rise, shadow steps come first, a promotion is last, the versions differ.
// What Serin means to support later (sticky cohorts, hedges, webhooks ...) is refused by name rather than as an unknown key.

#include "router/rollout/spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/spec_words.h"

namespace serin::rollout {
namespace {

using config::Node;

constexpr double kSmallestAlpha = 1e-9;
constexpr uint32_t kPpmPerPercent = 10'000;
constexpr size_t kMostSteps = 100;

/// Refuses a key of ours whose time has not come.
Status refuse_unsupported(const Node& node, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (const auto value = node.find(key)) return value->error("not supported yet");
  return {};
}

Result<double> open_fraction(const Node& node, std::string_view key, double fallback) {
  SERIN_TRY(const double value, node.fraction(key, fallback));
  if (const auto given = node.find(key); given && (value <= 0 || value >= 1))
    return given->error("must lie between 0 and 100 %, both excluded");
  return value;
}

Result<uint32_t> weight_of(const Node& node) {
  SERIN_TRY(const std::string text, node.text());
  auto weight = parse_weight(text);
  if (!weight) return node.error(weight.error().message);
  return *weight;
}

Result<uint32_t> positive_weight(const Node& node) {
  SERIN_TRY(const uint32_t weight, weight_of(node));
  if (weight == 0) return node.error("must be above 0");
  return weight;
}

Result<std::chrono::nanoseconds> positive_duration(const Node& node) {
  SERIN_TRY(const auto duration, node.duration());
  if (duration.count() <= 0) return node.error("must be longer than 0");
  return duration;
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

Status read_steps(const Node& list, Spec& spec) {
  if (!list.is_list()) return list.error("must be a list such as [5, 25, 50, 100] or [{setWeight: 5, until: certified}, {pause: {}}]");
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

Status read_errors(const Node& node, Guard& guard) {
  SERIN_CHECK(node.allow_only({"max", "tolerateRatio"}));
  if (node.has("max")) {
    SERIN_TRY(guard.errors_max, open_fraction(node, "max", 0.5));
  }
  SERIN_TRY(guard.tolerate_ratio, node.number("tolerateRatio", 1, 10, guard.tolerate_ratio));
  return {};
}

Status read_latency(const Node& node, Guard& guard) {
  SERIN_CHECK(node.allow_only({"p50", "p90", "p95", "p99", "p99.9", "slack", "floor", "deadline", "baseline", "skip"}));
  for (const auto& [word, quantile] : kQuantileWords) {
    const auto limit = node.find(word);
    if (!limit) continue;
    SERIN_TRY(const auto duration, positive_duration(*limit));
    std::erase_if(guard.latency_max, [q = quantile](const LatencyThreshold& threshold) { return threshold.quantile == q; });
    guard.latency_max.push_back({quantile, duration});
  }
  SERIN_TRY(guard.latency_slack, node.fraction("slack", guard.latency_slack));
  SERIN_TRY(guard.latency_floor, node.duration("floor", guard.latency_floor));
  if (const auto deadline = node.find("deadline")) {
    SERIN_TRY(guard.deadline, positive_duration(*deadline));
  }
  SERIN_TRY(guard.latency_baseline, node.integer("baseline", 100, 100'000'000, static_cast<int64_t>(guard.latency_baseline)));
  SERIN_TRY(guard.latency_skip, node.integer("skip", 0, 1'000'000, static_cast<int64_t>(guard.latency_skip)));
  return {};
}

Status read_output(const Node& node, Guard& guard) {
  SERIN_CHECK(node.allow_only({"compare", "output", "maxDisagreement", "rtol", "atol", "shadow"}));
  if (const auto compare = node.find("compare")) {
    SERIN_TRY(const std::string word, compare->one_of({"label", "values", "off"}));
    guard.compare = word == "label" ? Guard::Compare::kLabel : word == "values" ? Guard::Compare::kValues : Guard::Compare::kOff;
    if (word == "values") guard.max_disagreement = 0.01;  // the same weights on another build: only the odd rounding may differ
  }
  SERIN_TRY(guard.output, node.text("output", guard.output));
  SERIN_TRY(guard.max_disagreement, open_fraction(node, "maxDisagreement", guard.max_disagreement));
  SERIN_TRY(guard.rtol, node.number("rtol", 0, 1, guard.rtol));
  SERIN_TRY(guard.atol, node.number("atol", 0, 1e9, guard.atol));
  if (const auto shadow = node.find("shadow")) {
    SERIN_TRY(guard.shadow_ppm, weight_of(*shadow));
  }
  return {};
}

Status read_margin(const Node& margin, Certify& certify) {
  if (margin.is_map()) {
    SERIN_CHECK(margin.allow_only({"errors", "latency"}));
    SERIN_TRY(certify.margin_errors, open_fraction(margin, "errors", certify.margin_errors));
    SERIN_TRY(certify.margin_latency, open_fraction(margin, "latency", certify.margin_latency));
    certify.taper = false;
    return {};
  }
  SERIN_TRY(const std::string word, margin.text());
  if (word == "taper") return {};
  const auto fraction = config::parse_fraction(word);
  if (!fraction || *fraction <= 0 || *fraction >= 1)
    return margin.error("must be taper, a fraction such as 1%, or {errors: 1%, latency: 2%}");
  certify.margin_errors = certify.margin_latency = *fraction;
  certify.taper = false;
  return {};
}

Status read_certify(const Node& node, Certify& certify) {
  SERIN_CHECK(node.allow_only({"margin", "confidence", "maxStepDuration", "onTimeout"}));
  if (const auto margin = node.find("margin")) SERIN_CHECK(read_margin(*margin, certify));
  SERIN_TRY(certify.confidence, node.fraction("confidence", certify.confidence));
  if (const auto given = node.find("confidence"); given && (certify.confidence < 0.5 || certify.confidence > 0.9999))
    return given->error("must be from 50% to 99.99%");
  if (const auto duration = node.find("maxStepDuration")) {
    SERIN_TRY(certify.max_step_duration, positive_duration(*duration));
  }
  if (const auto word = node.find("onTimeout")) {
    SERIN_CHECK(word->one_of({"pause"}));
  }
  return {};
}

Status read_shield(const Node& node, Shield& shield) {
  SERIN_CHECK(refuse_unsupported(node, {"hedge"}));
  SERIN_CHECK(node.allow_only({"retryStable", "budget"}));
  SERIN_TRY(shield.retry_stable, node.boolean("retryStable", shield.retry_stable));
  SERIN_TRY(shield.budget, node.fraction("budget", shield.budget));
  return {};
}

/// stable: 3 or {version: 3}
Result<std::string> read_version(const Node& node) {
  if (node.is_scalar()) return node.text();
  SERIN_CHECK(refuse_unsupported(node, {"baseline", "sticky"}));
  SERIN_CHECK(node.allow_only({"version"}));
  SERIN_TRY(const Node version, node.at("version"));
  return version.text();
}

Status read_versions(const Node& document, Spec& spec) {
  SERIN_TRY(const Node service, document.at("service"));
  SERIN_TRY(spec.service, service.text());
  if (spec.service.empty()) return service.error("must not be empty");
  SERIN_TRY(const Node canary, document.at("canary"));
  SERIN_TRY(spec.canary, read_version(canary));
  if (spec.canary.empty()) return canary.error("must not be empty");
  if (const auto stable = document.find("stable")) {
    SERIN_TRY(spec.stable, read_version(*stable));
  }
  if (spec.canary == spec.stable)
    return canary.error(fmt::format("canary and stable are both version '{}'; they must differ", spec.canary));
  return {};
}

}  // namespace

std::vector<Step> default_steps() {
  std::vector<Step> steps{Step{.shadow_ppm = 10 * kPpmPerPercent}};
  for (uint32_t percent : {1, 5, 20, 50, 100}) steps.push_back(Step{.weight_ppm = percent * kPpmPerPercent});
  return steps;
}

Result<Spec> parse_spec(const Node& document) {
  SERIN_CHECK(refuse_unsupported(document, {"dryRun", "webhooks", "prometheus", "replicas", "analysis"}));
  SERIN_CHECK(document.allow_only({"kind", "service", "stable", "canary", "steps", "guard", "certify", "shield"}));
  if (const auto kind = document.find("kind")) {
    SERIN_CHECK(kind->one_of({"Rollout"}));
  }
  Spec spec;
  SERIN_CHECK(read_versions(document, spec));
  if (const auto steps = document.find("steps")) SERIN_CHECK(read_steps(*steps, spec));
  if (spec.steps.empty()) spec.steps = default_steps();
  if (const auto guard = document.find("guard")) {
    SERIN_TRY(spec.guard, parse_guard(*guard));
  }
  if (const auto certify = document.find("certify")) SERIN_CHECK(read_certify(*certify, spec.certify));
  if (const auto shield = document.find("shield")) SERIN_CHECK(read_shield(*shield, spec.shield));
  return spec;
}

Result<Guard> parse_guard(const Node& node, Guard guard) {
  SERIN_CHECK(refuse_unsupported(node, {"prometheus"}));
  SERIN_CHECK(node.allow_only({"falseRollback", "errors", "latency", "output", "whenStableBreachesToo", "unit"}));
  if (const auto alpha = node.find("falseRollback")) {
    SERIN_TRY(guard.false_rollback, alpha->fraction());
    if (guard.false_rollback < kSmallestAlpha || guard.false_rollback > 0.5)
      return alpha->error("must be above 0 and at most 0.5; default 0.001");
  }
  if (const auto errors = node.find("errors")) SERIN_CHECK(read_errors(*errors, guard));
  if (const auto latency = node.find("latency")) SERIN_CHECK(read_latency(*latency, guard));
  if (const auto output = node.find("output")) SERIN_CHECK(read_output(*output, guard));
  if (const auto breach = node.find("whenStableBreachesToo")) {
    SERIN_TRY(const std::string word, breach->one_of({"hold", "rollback"}));
    guard.when_stable_breaches_too = word == "hold" ? Guard::Breach::kHold : Guard::Breach::kRollback;
  }
  if (const auto unit = node.find("unit")) {
    SERIN_TRY(const std::string word, unit->one_of({"batch", "request", "key"}));
    if (word == "key") return unit->error("'key' is not supported yet; allowed: batch, request");
    guard.unit = word == "batch" ? Guard::Unit::kBatch : Guard::Unit::kRequest;
  }
  return guard;
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
