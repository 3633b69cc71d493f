// argo.cc: converts an Argo Rollout. In Argo a step sets the weight and ends; the following steps (pause, analysis) keep it. In Serin a
// step keeps its weight until it is certified or its time is over. So a pause with a duration becomes the time of the step before it.

#include <fmt/format.h>

#include <algorithm>

#include "router/import/conditions.h"
#include "router/import/draft.h"
#include "runtime/base/number.h"

namespace serin::imports {
namespace {

using config::Node;

/// "{{args.service-name}}" with the values that the rollout gives, else the template's own.
std::string with_args(std::string text, const std::vector<Node>& sources) {
  for (const Node& args : sources)
    for (const Node& arg : args.items()) {
      const std::string value = text_at(arg, "value");
      if (value.empty()) continue;
      for (const std::string_view form : {"{{{{args.{}}}}}", "{{{{ args.{} }}}}"}) {
        const std::string name = fmt::format(fmt::runtime(form), text_at(arg, "name"));
        for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size()) text.replace(at, name.size(), value);
      }
    }
  return text;
}

void read_metric(const Node& metric, const std::vector<Node>& args, Draft& draft) {
  const std::string name = text_at(metric, "name"), where = fmt::format("metric {}", name);
  const auto prometheus = find_at(metric, "provider.prometheus");
  if (!prometheus) {
    const auto provider = metric.find("provider");
    return draft.lose(where, fmt::format("asks {}; only Prometheus is asked here",
                                         provider && !provider->keys().empty() ? provider->keys()[0] : "no provider"));
  }
  const std::string query = with_args(text_at(*prometheus, "query"), args);
  const std::string success = with_args(text_at(metric, "successCondition"), args),
                    failure = with_args(text_at(metric, "failureCondition"), args);
  const auto limit = failure.empty() ? limit_of(success, true, query) : limit_of(failure, false, query);
  if (!limit)
    return draft.lose(where,
                      fmt::format("its condition ({}) is more than one comparison of the result", failure.empty() ? success : failure));
  if (query.find("{{args.") != std::string::npos || query.find("{{ args.") != std::string::npos)
    return draft.lose(where, "its query has arguments that the file does not give");
  Query asked{.name = name, .address = with_args(text_at(*prometheus, "address"), args), .query = limit->query, .max = limit->max};
  if (!asked.address.starts_with("http://") && !asked.address.starts_with("https://"))
    return draft.lose(where, fmt::format("its address ({}) is not http://HOST:PORT", asked.address));
  std::ranges::replace(asked.name, ' ', '-');
  if (const auto interval = metric.find("interval")) asked.interval = read_duration(*interval).value_or(asked.interval);
  asked.breaches = static_cast<int>(std::clamp(parse_number<double>(text_at(metric, "failureLimit")).value_or(0), 0.0, 999.0)) + 1;
  if (asked.breaches > 1)
    draft.lose(where + ".failureLimit",
               fmt::format("{} breaches in a row roll back here, in Argo any {} of them", asked.breaches, asked.breaches));
  if (!failure.empty() && !success.empty())
    draft.lose(where + ".successCondition", "a result that is neither success nor failure does not hold the steps here");
  draft.lose_others(metric, where, {"name", "interval", "successCondition", "failureCondition", "failureLimit", "provider", "count"});
  if (metric.has("count")) draft.lose(where + ".count", "it is asked for as long as the rollout lasts");
  if (std::ranges::find(draft.queries, asked.name, &Query::name) == draft.queries.end()) draft.queries.push_back(std::move(asked));
}

void read_template(const std::string& name, const Node& analysis, const std::vector<Node>& all, Draft& draft) {
  for (const Node& document : all) {
    const std::string kind = text_at(document, "kind");
    if ((kind != "AnalysisTemplate" && kind != "ClusterAnalysisTemplate") || text_at(document, "metadata.name") != name) continue;
    std::vector<Node> args;
    for (const auto& source : {analysis.find("args"), find_at(document, "spec.args")})
      if (source) args.push_back(*source);
    const auto metrics = find_at(document, "spec.metrics");
    if (metrics)
      for (const Node& metric : metrics->items()) read_metric(metric, args, draft);
    return;
  }
  draft.lose(fmt::format("analysis template {}", name), "is not in the file");
}

void read_analysis(const Node& analysis, std::string_view where, const std::vector<Node>& all, Draft& draft) {
  if (const auto templates = analysis.find("templates"))
    for (const Node& entry : templates->items()) read_template(text_at(entry, "templateName"), analysis, all, draft);
  draft.lose_others(analysis, where, {"templates", "args"});
}

/// Users with one header of one value: what Argo routes to the canary whatever the weight is a cohort here.
void read_header_route(const Node& route, const std::string& where, Draft& draft) {
  const auto matches = route.find("match");
  if (!matches) return;  // without a match the route is taken away
  for (const Node& match : matches->items()) {
    const std::string header = text_at(match, "headerName"), value = text_at(match, "headerValue.exact");
    if (value.empty() || (!draft.cohort_header.empty() && draft.cohort_header != header)) {
      draft.lose(where, "only exact values of one header make a cohort");
      continue;
    }
    draft.cohort_header = header;
    draft.cohort_values.push_back(value);
    draft.lose(where, "the cohort goes to the canary from the first weight on, not from this step on");
  }
}

struct Weights {
  double last = 0;
  bool open = false;  // the last step sets a weight and has no duration yet
};

void read_pause(const Node& pause, const std::string& where, Weights& weights, Draft& draft) {
  const auto given = pause.find("duration");
  const auto duration = given ? read_duration(*given) : std::nullopt;
  if (given && !duration) return draft.lose(where, "its duration is not a time above 0");
  if (duration && weights.open) {
    draft.steps.back() = fmt::format("{{setWeight: {}, until: {{duration: {}}}}}", weights.last, *duration);
    weights.open = false;
    return;
  }
  draft.steps.push_back(duration ? fmt::format("{{pause: {{duration: {}}}}}", *duration) : "{pause: {}}");
  weights.open = false;
}

void read_weight(const Node& weight, const std::string& where, Weights& weights, Draft& draft) {
  const double percent = parse_number<double>(*weight.text()).value_or(-1);
  if (percent <= weights.last || percent > 100)
    return draft.lose(where, fmt::format("weights rise here; {} follows {}", percent, weights.last));
  weights = {.last = percent, .open = true};
  draft.steps.push_back(fmt::format("{{setWeight: {}}}", percent));
}

void read_mirror(const Node& route, const std::string& where, const Weights& weights, Draft& draft) {
  const auto percent = parse_number<double>(text_at(route, "percentage"));
  if (!percent || *percent <= 0 || *percent > 100) return;  // taken away again
  if (weights.last == 0)
    draft.steps.push_back(fmt::format("{{shadow: {{percent: {}}}}}", *percent));
  else
    draft.shadow = fmt::format("{}", *percent);
  draft.lose(where + ".match", "what is mirrored is drawn, whatever is asked for");
}

void read_step(const Node& step, const std::string& where, const std::vector<Node>& all, Weights& weights, Draft& draft) {
  const auto keys = step.keys();
  if (keys.empty()) return;
  const std::string& what = keys[0];
  const auto value = step.find(what);
  const std::string place = fmt::format("{}.{}", where, what);
  if (what == "pause") return read_pause(value.value_or(step), place, weights, draft);
  if (!value) return;
  if (what == "setWeight" && value->is_scalar()) return read_weight(*value, place, weights, draft);
  if (what == "analysis") {
    read_analysis(*value, place, all, draft);
    return draft.lose(place, "its queries are asked during the whole rollout");
  }
  if (what == "setHeaderRoute") return read_header_route(*value, place, draft);
  if (what == "setMirrorRoute") return read_mirror(*value, place, weights, draft);
  draft.lose(place, what == "setCanaryScale" ? "Serin does not scale"
                    : what == "experiment"   ? "name a baseline version instead: canary: {baseline: VERSION}"
                                             : "nothing here corresponds to it");
}

/// "registry/app:v2" -> "v2"
std::string tag_of(const Node& document) {
  const auto containers = find_at(document, "spec.template.spec.containers");
  const auto items = containers ? containers->items() : std::vector<Node>();
  const std::string image = items.empty() ? "" : text_at(items[0], "image");
  const size_t colon = image.rfind(':');
  return colon == std::string::npos || image.find('/', colon) != std::string::npos ? "" : image.substr(colon + 1);
}

void read_canary(const Node& canary, const std::vector<Node>& all, Draft& draft) {
  Weights weights;
  if (const auto steps = canary.find("steps"))
    for (size_t i = 0; const Node& step : steps->items()) read_step(step, fmt::format("steps[{}]", i++), all, weights, draft);
  if (const auto analysis = canary.find("analysis")) read_analysis(*analysis, "analysis", all, draft);
  if (weights.last == 0) {
    draft.steps.clear();
    draft.lose("steps", "no step sets a weight: Serin's own steps are used (shadow, 1, 5, 20, 50 and 100 %, each until certified)");
  }
  if (canary.has("trafficRouting")) draft.lose("trafficRouting", "Serin is in the data path itself");
  draft.lose_others(canary, "canary",
                    {"steps", "analysis", "trafficRouting", "stableService", "canaryService", "maxSurge", "maxUnavailable"});
}

void read_blue_green(const Node& blue_green, const std::vector<Node>& all, Draft& draft) {
  const std::string by_itself = text_at(blue_green, "autoPromotionEnabled");
  if (by_itself == "false")
    draft.blue_green = true;
  else
    draft.steps = {"{shadow: {percent: 10, until: certified}}", "{setWeight: 100}"};
  for (const std::string_view when : {"prePromotionAnalysis", "postPromotionAnalysis"})
    if (const auto analysis = blue_green.find(when)) {
      read_analysis(*analysis, when, all, draft);
      draft.lose(when, "its queries are asked during the whole rollout");
    }
  draft.lose_others(blue_green, "blueGreen",
                    {"autoPromotionEnabled", "activeService", "previewService", "prePromotionAnalysis", "postPromotionAnalysis"});
}

}  // namespace

Result<Draft> read_argo(const Node& document, const std::vector<Node>& all) {
  Draft draft{.origin = "Argo Rollouts", .service = text_at(document, "metadata.name"), .canary = tag_of(document)};
  if (const auto canary = find_at(document, "spec.strategy.canary"))
    read_canary(*canary, all, draft);
  else if (const auto blue_green = find_at(document, "spec.strategy.blueGreen"))
    read_blue_green(*blue_green, all, draft);
  else
    return document.error("has neither spec.strategy.canary nor spec.strategy.blueGreen");
  return draft;
}

}  // namespace serin::imports
