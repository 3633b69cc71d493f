// spec.cc: a document of kind Rollout -> Spec.
//
// The words are those that release engineers know from Argo and Flagger. Nonsense is refused here, with the line and what is allowed, so
// that the state machine may trust its specification: weights rise, shadow steps come first, a promotion is last, the versions differ.
// What Serin means to support later (webhooks, replicas ...) is refused by name rather than as an unknown key. Who goes to the canary is read in
// spec_traffic.cc, the steps in spec_steps.cc.

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
  SERIN_CHECK(node.allow_only({"compare", "output", "maxDisagreement", "rtol", "atol", "shadow", "drift"}));
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
  const auto drift = node.find("drift");
  const bool off = drift && drift->is_scalar() && *drift->text() == "off";
  SERIN_TRY(guard.drift, off ? Result<double>(0.0) : node.number("drift", 1.1, 1000, guard.drift));
  return {};
}

Result<PrometheusGuard> read_prometheus_guard(const Node& node) {
  SERIN_CHECK(node.allow_only({"name", "address", "query", "max", "interval", "breaches"}));
  PrometheusGuard guard;
  SERIN_TRY(const Node name, node.at("name"));
  SERIN_TRY(guard.name, name.text());
  if (guard.name.empty() || guard.name.size() > 64 || guard.name.find_first_of(" \t\n\":,") != std::string::npos)
    return name.error("must be a name of 1 to 64 characters without spaces, quotes, colons and commas");
  SERIN_TRY(const Node address, node.at("address"));
  SERIN_TRY(guard.address, address.text());
  if (!guard.address.starts_with("http://")) return address.error("must be http://HOST:PORT");
  SERIN_TRY(const Node query, node.at("query"));
  SERIN_TRY(guard.query, query.text());
  if (guard.query.empty() || guard.query.size() > 4096) return query.error("must be PromQL of 1 to 4096 characters");
  SERIN_TRY(const Node max, node.at("max"));
  SERIN_TRY(guard.max, max.number(-1e300, 1e300));
  if (const auto interval = node.find("interval")) {
    SERIN_TRY(guard.interval, positive_duration(*interval));
    if (guard.interval < std::chrono::milliseconds(100)) return interval->error("must be at least 100ms");
  }
  SERIN_TRY(guard.breaches, node.integer("breaches", 1, 1000, guard.breaches));
  return guard;
}

/// A list of {name, address, query, max}; one alone needs no list.
Status read_prometheus(const Node& node, Guard& guard) {
  constexpr size_t kMost = 16;
  const auto entries = node.is_map() ? std::vector<Node>{node} : node.items();
  if (entries.empty() || entries.size() > kMost)
    return node.error(fmt::format("must be a list of 1 to {} entries such as {{name, address, query, max}}", kMost));
  guard.prometheus.clear();
  for (const Node& entry : entries) {
    SERIN_TRY(PrometheusGuard read, read_prometheus_guard(entry));
    for (const PrometheusGuard& other : guard.prometheus)
      if (other.name == read.name) return entry.error(fmt::format("name '{}' given twice", read.name));
    guard.prometheus.push_back(std::move(read));
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
  SERIN_CHECK(node.allow_only({"retryStable", "budget", "hedge"}));
  SERIN_TRY(shield.retry_stable, node.boolean("retryStable", shield.retry_stable));
  SERIN_TRY(shield.budget, node.fraction("budget", shield.budget));
  const auto hedge = node.find("hedge");
  if (!hedge) return {};
  SERIN_TRY(const std::string word, hedge->one_of({"off", "p90", "p95", "p99"}));
  shield.hedge = word == "off" ? std::nullopt : std::optional(word == "p90" ? 0.90 : word == "p95" ? 0.95 : 0.99);
  return {};
}

Status read_dry_run(const Node& list, Spec& spec) {
  if (!list.is_list()) return list.error("must be a list such as [output, latency]");
  for (const Node& item : list.items()) {
    SERIN_TRY(const std::string word, item.one_of({"err", "rej", "dl", "latency", "output", "shadow", "thresholds", "prometheus"}));
    if (std::ranges::find(spec.dry_run, word) == spec.dry_run.end()) spec.dry_run.push_back(word);
  }
  return {};
}

}  // namespace

Result<Spec> parse_spec(const Node& document) {
  SERIN_CHECK(refuse_unsupported(document, {"webhooks", "replicas", "analysis"}));
  SERIN_CHECK(document.allow_only({"kind", "service", "stable", "canary", "steps", "guard", "certify", "shield", "dryRun"}));
  if (const auto kind = document.find("kind")) {
    SERIN_CHECK(kind->one_of({"Rollout"}));
  }
  Spec spec;
  SERIN_CHECK(read_traffic(document, spec));
  if (const auto steps = document.find("steps")) SERIN_CHECK(read_steps(*steps, spec));
  if (spec.steps.empty()) spec.steps = default_steps();
  if (const auto guard = document.find("guard")) {
    SERIN_TRY(spec.guard, parse_guard(*guard));
    if (spec.guard.unit == Guard::Unit::kKey && !spec.sticky.on())
      return guard->error("unit: key needs canary: {sticky: {header: NAME}} or {sticky: {cookie: NAME}}");
  }
  if (const auto certify = document.find("certify")) SERIN_CHECK(read_certify(*certify, spec.certify));
  if (const auto shield = document.find("shield")) SERIN_CHECK(read_shield(*shield, spec.shield));
  if (const auto dry_run = document.find("dryRun")) SERIN_CHECK(read_dry_run(*dry_run, spec));
  return spec;
}

Result<Guard> parse_guard(const Node& node, Guard guard) {
  SERIN_CHECK(node.allow_only({"falseRollback", "errors", "latency", "output", "whenStableBreachesToo", "unit", "prometheus"}));
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
    guard.unit = word == "batch" ? Guard::Unit::kBatch : word == "key" ? Guard::Unit::kKey : Guard::Unit::kRequest;
  }
  if (const auto prometheus = node.find("prometheus")) SERIN_CHECK(read_prometheus(*prometheus, guard));
  return guard;
}

}  // namespace serin::rollout
