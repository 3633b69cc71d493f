// flagger.cc: converts a Flagger Canary. Its weight rises by stepWeight every interval up to maxWeight; each of these is a step with that
// duration in Serin. Flagger counts failed checks, Serin breaches in a row.

#include <fmt/format.h>

#include <algorithm>

#include "router/import/conditions.h"
#include "router/import/draft.h"
#include "runtime/base/number.h"

namespace serin::imports {
namespace {

using config::Node;

std::vector<double> weights_of(const Node& analysis, Draft& draft) {
  constexpr size_t kMost = 100;
  std::vector<double> weights;
  if (const auto list = analysis.find("stepWeights")) {
    for (const Node& item : list->items())
      if (const auto weight = item.is_scalar() ? parse_number<double>(*item.text()) : std::nullopt) weights.push_back(*weight);
  } else if (const auto step = parse_number<double>(text_at(analysis, "stepWeight")); step && *step > 0) {
    const double most = std::min(100.0, parse_number<double>(text_at(analysis, "maxWeight")).value_or(100));
    for (double weight = *step; weight <= most && weights.size() < kMost; weight += *step) weights.push_back(weight);
  }
  double last = 0;
  std::erase_if(weights, [&](double weight) {
    const bool rises = weight > last && weight <= 100;
    if (rises) last = weight;
    if (!rises) draft.lose("analysis.stepWeights", fmt::format("weights rise here; {} does not", weight));
    return !rises;
  });
  return weights;
}

void read_steps(const Node& analysis, const std::string& interval, Draft& draft) {
  if (text_at(analysis, "mirror") == "true")
    draft.steps.push_back(fmt::format("{{shadow: {{percent: {}, until: {{duration: {}}}}}}}",
                                      parse_number<double>(text_at(analysis, "mirrorWeight")).value_or(100), interval));
  const auto weights = weights_of(analysis, draft);
  for (const double weight : weights) draft.steps.push_back(fmt::format("{{setWeight: {}, until: {{duration: {}}}}}", weight, interval));
  if (!weights.empty()) return;
  const int iterations = static_cast<int>(std::clamp(parse_number<double>(text_at(analysis, "iterations")).value_or(0), 0.0, 10'000.0));
  const auto each = config::parse_duration(interval);
  const std::string whole = iterations > 0 && each ? config::print_duration(iterations * *each) : interval;
  if (!draft.cohort_values.empty()) {
    draft.steps.push_back(fmt::format("{{setWeight: 1, until: {{duration: {}}}}}", whole));
    draft.lose("analysis.iterations",
               "in addition to the cohort, 1 % of the others go to the canary: only drawn requests are compared with stable");
  } else if (iterations > 0) {
    draft.steps = {fmt::format("{{shadow: {{percent: 10, until: {{duration: {}}}}}}}", whole), "{setWeight: 100}"};
    draft.lose("analysis.iterations", "a copy of 10 % of stable's requests stands for the tests before the switch");
  } else {
    draft.steps.clear();
    draft.lose("analysis", "it sets no weight: Serin's own steps are used (shadow, 1, 5, 20, 50 and 100 %, each until certified)");
  }
}

void read_match(const Node& analysis, Draft& draft) {
  const auto matches = analysis.find("match");
  if (!matches) return;
  for (const Node& match : matches->items()) {
    const auto headers = match.find("headers");
    const auto names = headers ? headers->keys() : std::vector<std::string>();
    const std::string value = names.size() == 1 ? text_at(*headers->find(names[0]), "exact") : "";
    if (value.empty() || (!draft.cohort_header.empty() && draft.cohort_header != names[0])) {
      draft.lose("analysis.match", "only exact values of one header make a cohort");
      continue;
    }
    draft.cohort_header = names[0];
    draft.cohort_values.push_back(value);
  }
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = 0; !what.empty() && (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

std::optional<Node> template_of(const Node& metric, const std::vector<Node>& all) {
  const std::string name = text_at(metric, "templateRef.name");
  for (const Node& document : all)
    if (text_at(document, "kind") == "MetricTemplate" && text_at(document, "metadata.name") == name) return document;
  return std::nullopt;
}

void read_query(const Node& metric, const std::string& interval, const std::string& where, const Node& canary, const std::vector<Node>& all,
                Draft& draft) {
  const auto source = template_of(metric, all);
  if (!source) return draft.lose(where, "its MetricTemplate is not in the file");
  if (const std::string type = text_at(*source, "spec.provider.type"); type != "prometheus")
    return draft.lose(where, fmt::format("asks {}; only Prometheus is asked here", type));
  std::string query = text_at(*source, "spec.query");
  for (const auto& [name, value] :
       {std::pair("target", text_at(canary, "spec.targetRef.name")), std::pair("name", text_at(canary, "metadata.name")),
        std::pair("namespace", text_at(canary, "metadata.namespace")), std::pair("interval", interval)})
    replace_all(query, fmt::format("{{{{ {} }}}}", name), value);
  if (query.find("{{") != std::string::npos) return draft.lose(where, "its query has variables that the file does not give");
  const auto min = parse_number<double>(text_at(metric, "thresholdRange.min")),
             max = parse_number<double>(text_at(metric, "thresholdRange.max"));
  if (!min && !max) return draft.lose(where, "has no thresholdRange");
  const int breaches =
      static_cast<int>(std::clamp(parse_number<double>(text_at(canary, "spec.analysis.threshold")).value_or(1), 1.0, 1000.0));
  const auto add = [&](const std::string& name, const Limit& limit) {
    draft.queries.push_back({.name = name,
                             .address = text_at(*source, "spec.provider.address"),
                             .query = limit.query,
                             .max = limit.max,
                             .interval = interval,
                             .breaches = breaches});
  };
  const std::string name = text_at(metric, "name");
  const std::string address = text_at(*source, "spec.provider.address");
  if (!address.starts_with("http://") && !address.starts_with("https://"))
    return draft.lose(where, "its Prometheus is not at http://HOST:PORT");
  if (max) add(name, {query, *max});
  if (min) add(max ? name + "-min" : name, at_least(query, *min));
}

void read_metric(const Node& metric, const std::string& usual, const Node& canary, const std::vector<Node>& all, Draft& draft) {
  const std::string name = text_at(metric, "name"), where = fmt::format("metric {}", name);
  const auto own = metric.find("interval");
  const std::string interval = own ? read_duration(*own).value_or(usual) : usual;
  const auto min = parse_number<double>(text_at(metric, "thresholdRange.min")),
             max = parse_number<double>(text_at(metric, "thresholdRange.max"));
  if (name == "request-success-rate" && min && *min > 0 && *min < 100) {
    draft.errors_max = fmt::format("{:.6g}%", 100 - *min);
  } else if (name == "request-duration" && max && *max > 0) {
    draft.latency_p99 = fmt::format("{:.6g}ms", *max);
  } else if (metric.has("templateRef")) {
    read_query(metric, interval, where, canary, all, draft);
  } else {
    draft.lose(where, "is neither request-success-rate, request-duration nor a MetricTemplate with a range");
  }
}

}  // namespace

Result<Draft> read_flagger(const Node& document, const std::vector<Node>& all) {
  Draft draft{.origin = "Flagger", .service = text_at(document, "spec.targetRef.name"), .canary = ""};
  const auto analysis = find_at(document, "spec.analysis");
  if (!analysis) return document.error("has no spec.analysis");
  const auto given = analysis->find("interval");
  const std::string interval = given ? read_duration(*given).value_or("1m") : "1m";
  read_match(*analysis, draft);
  read_steps(*analysis, interval, draft);
  if (const auto metrics = analysis->find("metrics"))
    for (const Node& metric : metrics->items()) read_metric(metric, interval, document, all, draft);
  if (!draft.errors_max.empty() || !draft.latency_p99.empty())
    draft.lose("analysis.threshold", "the limits for errors and latency are judged on evidence, not by counting failed checks");
  if (const auto hooks = analysis->find("webhooks"))
    for (const Node& hook : hooks->items())
      draft.lose(fmt::format("webhook {}", text_at(hook, "name")),
                 "name its URL in router.yaml if it confirms or is notified; load tests are not started");
  if (analysis->has("sessionAffinity"))
    draft.lose("analysis.sessionAffinity", "clients that stick need a header or cookie of their own: canary: {sticky: {cookie: NAME}}");
  draft.lose_others(*analysis, "analysis",
                    {"interval", "threshold", "maxWeight", "stepWeight", "stepWeights", "iterations", "match", "mirror", "mirrorWeight",
                     "metrics", "webhooks", "sessionAffinity"});
  if (text_at(document, "spec.skipAnalysis") == "true")
    draft.lose("skipAnalysis", "every rollout is judged here; promote it manually to skip that");
  if (document.has("spec") && document.find("spec")->has("progressDeadlineSeconds"))
    draft.lose("progressDeadlineSeconds", "see certify: {maxStepDuration}");
  return draft;
}

}  // namespace serin::imports
