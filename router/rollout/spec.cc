// spec.cc: a document of kind Rollout -> Spec.
//
// The words are those that release engineers know from Argo and Flagger. Nonsense is refused here, with the line and what is allowed, so
// that the state machine may trust its specification: weights rise, shadow steps come first, a promotion is last, the versions differ.
// What Serin means to support later (sticky cohorts, hedges, webhooks ...) is refused by name rather than as an unknown key.

#include "router/rollout/spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

using config::Node;

constexpr double kSmallestAlpha = 1e-9;

Result<double> open_fraction(const Node& node, std::string_view key, double fallback) {
  SERIN_TRY(const double value, node.fraction(key, fallback));
  if (const auto given = node.find(key); given && (value <= 0 || value >= 1))
    return given->error("must lie between 0 and 100 %, both excluded");
  return value;
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
    SERIN_CHECK(breach->one_of({"hold", "rollback"}));
    guard.when_stable_breaches_too = *breach->text() == "hold" ? Guard::Breach::kHold : Guard::Breach::kRollback;
  }
  if (const auto unit = node.find("unit")) {
    SERIN_TRY(const std::string word, unit->one_of({"batch", "request", "key"}));
    if (word == "key") return unit->error("'key' is not supported yet; allowed: batch, request");
    guard.unit = word == "batch" ? Guard::Unit::kBatch : Guard::Unit::kRequest;
  }
  return guard;
}

}  // namespace serin::rollout
