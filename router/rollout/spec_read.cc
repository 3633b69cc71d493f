// spec_read.cc: reads a document of kind Rollout into a Spec.
//
// The words are those that release engineers know from Argo and Flagger. Invalid values are refused here, with the line and the allowed
// values, so that the state machine may trust its specification: weights rise, shadow steps come first, a promotion is last, the versions
// differ. Readers do not stop at the first fault, so that a user sees all faults at once. Keys of planned features (replicas ...) are
// refused by name rather than as unknown keys. spec_traffic.cc reads which requests go to the canary, spec_steps.cc the steps.

#include "router/rollout/spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

using config::Node;
using config::Problems;

constexpr double kSmallestAlpha = 1e-9;
constexpr double kMaxDifferingValues = 0.01;  // maxDisagreement, with compare: values

Result<double> open_fraction(const Node& node, std::string_view key, double fallback) {
  SERIN_TRY(const double value, node.fraction(key, fallback));
  if (const auto given = node.find(key); given && (value <= 0 || value >= 1))
    return given->error("must be between 0 and 100 %, both excluded");
  return value;
}

void read_errors(const Node& node, Guard& guard, Problems& problems) {
  problems.allow_only(node, {"max", "tolerateRatio"});
  if (node.has("max")) problems.read(guard.errors_max, open_fraction(node, "max", 0.5));
  problems.read(guard.tolerate_ratio, node.number("tolerateRatio", 1, 10, guard.tolerate_ratio));
}

void read_latency(const Node& node, Guard& guard, Problems& problems) {
  problems.allow_only(node, {"p50", "p90", "p95", "p99", "p99.9", "slack", "floor", "deadline", "baseline", "skip"});
  for (const auto& [word, quantile] : kQuantileWords) {
    const auto limit = node.find(word);
    if (!limit) continue;
    LatencyThreshold threshold{.quantile = quantile};
    problems.read(threshold.limit, positive_duration(*limit));
    std::erase_if(guard.latency_max, [q = quantile](const LatencyThreshold& other) { return other.quantile == q; });
    guard.latency_max.push_back(threshold);
  }
  problems.read(guard.latency_slack, node.fraction("slack", guard.latency_slack));
  problems.read(guard.latency_floor, node.duration("floor", guard.latency_floor));
  if (const auto deadline = node.find("deadline")) problems.read(guard.deadline, positive_duration(*deadline));
  problems.read(guard.latency_baseline, node.integer("baseline", 100, 100'000'000, static_cast<int64_t>(guard.latency_baseline)));
  problems.read(guard.latency_skip, node.integer("skip", 0, 1'000'000, static_cast<int64_t>(guard.latency_skip)));
}

bool is_word(const Node& node, std::string_view word) { return node.is_scalar() && *node.text() == word; }

/// A number is the whole limit; auto is the usual one, and rolls back a canary that is wrong for a few.
void read_max_disagreement(const Node& node, Guard& guard, Problems& problems) {
  const auto given = node.find("maxDisagreement");
  if (given && !is_word(*given, "auto")) {
    guard.judge_few = false;
    problems.read(guard.max_disagreement, open_fraction(node, "maxDisagreement", guard.max_disagreement));
    return;
  }
  if (given) guard.judge_few = true;
  if (!guard.judge_few) return;                                  // a number of the service's
  const bool values = guard.compare == Guard::Compare::kValues;  // the same weights on another build: only the odd rounding may differ
  guard.max_disagreement = values ? kMaxDifferingValues : Guard().max_disagreement;
}

void read_output(const Node& node, Guard& guard, Problems& problems) {
  problems.allow_only(node, {"compare", "output", "maxDisagreement", "rtol", "atol", "shadow", "drift"});
  std::string compare;
  if (const auto word = node.find("compare"); word && problems.read(compare, word->one_of({"label", "values", "off"})))
    guard.compare = compare == "label" ? Guard::Compare::kLabel : compare == "values" ? Guard::Compare::kValues : Guard::Compare::kOff;
  problems.read(guard.output, node.text("output", guard.output));
  read_max_disagreement(node, guard, problems);
  problems.read(guard.rtol, node.number("rtol", 0, 1, guard.rtol));
  problems.read(guard.atol, node.number("atol", 0, 1e9, guard.atol));
  if (const auto shadow = node.find("shadow")) {
    if (is_word(*shadow, "auto"))
      guard.shadow_ppm.reset();
    else
      problems.read(guard.shadow_ppm, weight_of(*shadow));
  }
  const auto drift = node.find("drift");
  problems.read(guard.drift, drift && is_word(*drift, "off") ? Result<double>(0.0) : node.number("drift", 1.1, 1000, guard.drift));
}

/// The text under `key`, which must be there and `good`.
template <class Good>
void read_required(std::string& value, const Node& owner, std::string_view key, std::string_view must, const Good& good,
                   Problems& problems) {
  const auto node = owner.at(key);
  if (!node) return problems.add(node.error());
  if (problems.read(value, node->text()) && !good(value)) problems.add(node->error(must));
}

PrometheusGuard read_prometheus_guard(const Node& node, Problems& problems) {
  problems.allow_only(node, {"name", "address", "query", "max", "interval", "breaches"});
  PrometheusGuard guard;
  if (!node.is_map()) return guard;
  read_required(
      guard.name, node, "name", "must be a name of 1 to 64 characters without spaces, quotes, colons and commas",
      [](const std::string& name) { return !name.empty() && name.size() <= 64 && name.find_first_of(" \t\n\":,") == std::string::npos; },
      problems);
  read_required(
      guard.address, node, "address", "must be http://HOST:PORT, or https",
      [](const std::string& url) { return url.starts_with("http://") || url.starts_with("https://"); }, problems);
  read_required(
      guard.query, node, "query", "must be PromQL of 1 to 4096 characters",
      [](const std::string& query) { return !query.empty() && query.size() <= 4096; }, problems);
  const auto max = node.at("max");
  problems.read(guard.max, max ? max->number(-1e300, 1e300) : Result<double>(max.error()));
  if (const auto interval = node.find("interval");
      interval && problems.read(guard.interval, positive_duration(*interval)) && guard.interval < std::chrono::milliseconds(100))
    problems.add(interval->error("must be at least 100ms"));
  problems.read(guard.breaches, node.integer("breaches", 1, 1000, guard.breaches));
  return guard;
}

/// A list of {name, address, query, max}; one alone needs no list.
void read_prometheus(const Node& node, Guard& guard, Problems& problems) {
  constexpr size_t kMost = 16;
  const auto entries = node.is_map() ? std::vector<Node>{node} : node.items();
  if (entries.empty() || entries.size() > kMost)
    return problems.add(node.error(fmt::format("must be a list of 1 to {} entries such as {{name, address, query, max}}", kMost)));
  guard.prometheus.clear();
  for (const Node& entry : entries) {
    PrometheusGuard read = read_prometheus_guard(entry, problems);
    if (!read.name.empty() && std::ranges::find(guard.prometheus, read.name, &PrometheusGuard::name) != guard.prometheus.end())
      problems.add(entry.error(fmt::format("name '{}' given twice", read.name)));
    guard.prometheus.push_back(std::move(read));
  }
}

/// A list of {metric, margin}; one alone needs no list.
void read_outcomes(const Node& node, Guard& guard, Problems& problems) {
  constexpr size_t kMost = 16;
  constexpr double kLargest = 1e15;
  const auto entries = node.is_map() ? std::vector<Node>{node} : node.items();
  if (entries.empty() || entries.size() > kMost)
    return problems.add(node.error(fmt::format("must be a list of 1 to {} entries such as {{metric: accuracy, margin: 0.01}}", kMost)));
  guard.outcomes.clear();
  for (const Node& entry : entries) {
    problems.allow_only(entry, {"metric", "margin"});
    if (!entry.is_map()) continue;
    OutcomeLimit limit;
    read_required(
        limit.metric, entry, "metric", "must be the name of one of the service's `outcomes`, 1 to 64 characters",
        [](const std::string& name) { return !name.empty() && name.size() <= 64; }, problems);
    problems.read(limit.margin, entry.number("margin", 0, kLargest, 0));
    if (!limit.metric.empty() && std::ranges::find(guard.outcomes, limit.metric, &OutcomeLimit::metric) != guard.outcomes.end())
      problems.add(entry.error(fmt::format("metric '{}' given twice", limit.metric)));
    guard.outcomes.push_back(std::move(limit));
  }
}

void read_margin(const Node& margin, Certify& certify, Problems& problems) {
  if (margin.is_map()) {
    problems.allow_only(margin, {"errors", "latency"});
    problems.read(certify.margin_errors, open_fraction(margin, "errors", certify.margin_errors));
    problems.read(certify.margin_latency, open_fraction(margin, "latency", certify.margin_latency));
    certify.taper = false;
    return;
  }
  const auto word = margin.text();
  if (word && *word == "taper") return;
  const auto fraction = word ? config::parse_fraction(*word) : std::nullopt;
  if (!fraction || *fraction <= 0 || *fraction >= 1)
    return problems.add(margin.error("must be taper, a fraction such as 1%, or {errors: 1%, latency: 2%}"));
  certify.margin_errors = certify.margin_latency = *fraction;
  certify.taper = false;
}

void read_certify(const Node& node, Certify& certify, Problems& problems) {
  problems.allow_only(node, {"margin", "confidence", "maxStepDuration", "onTimeout"});
  if (const auto margin = node.find("margin")) read_margin(*margin, certify, problems);
  if (problems.read(certify.confidence, node.fraction("confidence", certify.confidence)) &&
      (certify.confidence < 0.5 || certify.confidence > 0.9999))
    problems.add(node.find("confidence")->error("must be from 50% to 99.99%"));
  if (const auto duration = node.find("maxStepDuration")) problems.read(certify.max_step_duration, positive_duration(*duration));
  std::string word;
  if (const auto timeout = node.find("onTimeout")) problems.read(word, timeout->one_of({"pause"}));
}

void read_shield(const Node& node, Shield& shield, Problems& problems) {
  problems.allow_only(node, {"retryStable", "budget", "hedge"});
  problems.read(shield.retry_stable, node.boolean("retryStable", shield.retry_stable));
  problems.read(shield.budget, node.fraction("budget", shield.budget));
  std::string word;
  if (const auto hedge = node.find("hedge"); hedge && problems.read(word, hedge->one_of({"off", "p90", "p95", "p99"})))
    shield.hedge = word == "off" ? std::nullopt : std::optional(word == "p90" ? 0.90 : word == "p95" ? 0.95 : 0.99);
}

void read_dry_run(const Node& list, Spec& spec, Problems& problems) {
  if (!list.is_list()) return problems.add(list.error("must be a list such as [output, latency]"));
  std::string word;
  for (const Node& item : list.items()) {
    const bool known = problems.read(word, item.one_of({"err", "rej", "dl", "latency", "output", "shadow", "slices", "thresholds",
                                                        "outcomes", "prometheus", "resources"}));
    if (known && std::ranges::find(spec.dry_run, word) == spec.dry_run.end()) spec.dry_run.push_back(word);
  }
}

Guard read_guard(const Node& node, Guard guard, Problems& problems) {
  problems.allow_only(node, {"falseRollback", "errors", "latency", "output", "whenStableBreachesToo", "unit", "prometheus", "outcomes",
                             "slices", "resources"});
  if (const auto alpha = node.find("falseRollback"); alpha && problems.read(guard.false_rollback, alpha->fraction()) &&
                                                     (guard.false_rollback < kSmallestAlpha || guard.false_rollback > 0.5))
    problems.add(alpha->error("must be above 0 and at most 0.5; default 0.001"));
  if (const auto errors = node.find("errors")) read_errors(*errors, guard, problems);
  if (const auto latency = node.find("latency")) read_latency(*latency, guard, problems);
  if (const auto output = node.find("output")) read_output(*output, guard, problems);
  std::string word;
  if (const auto breach = node.find("whenStableBreachesToo"); breach && problems.read(word, breach->one_of({"hold", "rollback"})))
    guard.when_stable_breaches_too = word == "hold" ? Guard::Breach::kHold : Guard::Breach::kRollback;
  if (const auto unit = node.find("unit"); unit && problems.read(word, unit->one_of({"batch", "request", "key"})))
    guard.unit = word == "batch" ? Guard::Unit::kBatch : word == "key" ? Guard::Unit::kKey : Guard::Unit::kRequest;
  if (const auto prometheus = node.find("prometheus")) read_prometheus(*prometheus, guard, problems);
  if (const auto outcomes = node.find("outcomes")) read_outcomes(*outcomes, guard, problems);
  if (const auto slices = node.find("slices")) read_slices(*slices, guard, problems);
  if (const auto resources = node.find("resources")) read_resources(*resources, guard.resources, problems);
  return guard;
}

/// Everything but the service and the versions.
void read_rules(const Node& document, Spec& spec, Problems& problems) {
  if (const auto steps = document.find("steps")) read_steps(*steps, spec, problems);
  if (spec.steps.empty()) spec.steps = default_steps();
  if (const auto guard = document.find("guard")) {
    spec.guard = read_guard(*guard, {}, problems);
    if (spec.guard.unit == Guard::Unit::kKey && !spec.sticky.on())
      problems.add(guard->error("unit: key needs canary: {sticky: {header: NAME}} or {sticky: {cookie: NAME}}"));
  }
  if (const auto certify = document.find("certify")) read_certify(*certify, spec.certify, problems);
  if (const auto shield = document.find("shield")) read_shield(*shield, spec.shield, problems);
  std::string word;
  if (const auto capacity = document.find("capacity"); capacity && problems.read(word, capacity->one_of({"auto", "endpoints", "off"})))
    spec.capacity = word == "auto" ? Capacity::kAuto : word == "off" ? Capacity::kOff : Capacity::kEndpoints;
  if (const auto dry_run = document.find("dryRun")) read_dry_run(*dry_run, spec, problems);
}

}  // namespace

Spec parse_spec(const Node& document, Problems& problems) {
  check_keys(document, {"kind", "service", "stable", "canary", "revision", "steps", "guard", "certify", "shield", "capacity", "dryRun"},
             {"webhooks", "replicas", "analysis"}, problems);
  Spec spec;
  if (!document.is_map() && !document.is_null()) return spec;
  std::string word;
  if (const auto kind = document.find("kind")) problems.read(word, kind->one_of({"Rollout"}));
  read_traffic(document, spec, problems);
  read_rules(document, spec, problems);
  return spec;
}

Spec parse_rules(const Node& rules, Problems& problems) {
  problems.allow_only(rules, {"steps", "guard", "certify", "shield", "capacity", "dryRun"});
  Spec spec;
  if (rules.is_map()) read_rules(rules, spec, problems);
  return spec;
}

Result<Spec> parse_spec(const Node& document) {
  Problems problems;
  Spec spec = parse_spec(document, problems);
  SERIN_CHECK(problems.first());
  return spec;
}

Result<Guard> parse_guard(const Node& node, Guard defaults) {
  Problems problems;
  Guard guard = read_guard(node, std::move(defaults), problems);
  SERIN_CHECK(problems.first());
  return guard;
}

}  // namespace serin::rollout
