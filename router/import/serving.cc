// serving.cc: converts KServe and Seldon resources. They give only the present split of traffic: the canary's share becomes one step, and a
// person decides about the promotion.

#include <fmt/format.h>

#include <algorithm>

#include "router/import/draft.h"
#include "runtime/base/number.h"

namespace serin::imports {
namespace {

using config::Node;

void split_and_wait(double percent, Draft& draft) {
  if (percent > 0 && percent < 100) {
    draft.steps.push_back(fmt::format("{{setWeight: {:.6g}}}", percent));
    draft.steps.push_back("{pause: {}}");
  }
  draft.steps.push_back("{setWeight: 100}");
}

struct Arm {
  std::string name;
  double weight = 0;
  bool shadow = false;
};

/// The arm with most traffic is stable; of the others the one with most is the canary.
Status split(std::vector<Arm> arms, const Node& at, Draft& draft) {
  std::erase_if(arms, [&](const Arm& arm) { return arm.name.empty(); });
  const auto lighter = [](const Arm& a, const Arm& b) { return std::pair(!a.shadow, a.weight) < std::pair(!b.shadow, b.weight); };
  if (arms.size() < 2) return at.error("has one version only: there is nothing to roll out");
  const auto stable = std::ranges::max_element(arms, lighter);
  draft.stable = stable->name;
  double all = 0;
  for (const Arm& arm : arms) all += arm.shadow ? 0 : arm.weight;
  arms.erase(stable);
  const auto canary = std::ranges::max_element(arms, lighter);
  draft.canary = canary->name;
  for (const Arm& arm : arms)
    if (arm.name != canary->name) draft.lose(arm.name, "one canary at a time: roll it out after this one");
  if (canary->shadow) draft.steps.push_back(fmt::format("{{shadow: {{percent: {:.6g}}}}}", canary->weight > 0 ? canary->weight : 100));
  if (canary->shadow) draft.steps.push_back("{pause: {}}");
  split_and_wait(canary->shadow || all <= 0 ? 100 : 100 * canary->weight / all, draft);
  return {};
}

}  // namespace

Result<Draft> read_kserve(const Node& document) {
  Draft draft{.origin = "KServe", .service = text_at(document, "metadata.name")};
  if (const auto list = find_at(document, "spec.canary"); list && !list->items().empty()) {
    const auto items = list->items();
    draft.canary = text_at(items[0], "predictor.name");
    split_and_wait(parse_number<double>(text_at(items[0], "trafficPercent")).value_or(0), draft);
    for (size_t i = 1; i < items.size(); ++i) draft.lose(fmt::format("canary[{}]", i), "one canary at a time: roll it out after this one");
    draft.lose("spec.canary[].predictor", "where models lie is said to their servers, and their endpoints in router.yaml");
    return draft;
  }
  const auto percent = parse_number<double>(text_at(document, "spec.predictor.canaryTrafficPercent"));
  if (!percent || *percent < 0 || *percent > 100) return document.error("has neither spec.predictor.canaryTrafficPercent nor spec.canary");
  split_and_wait(*percent, draft);
  draft.lose("spec.predictor", "where models lie is said to their servers, and their endpoints in router.yaml");
  if (const auto spec = document.find("spec")) draft.lose_others(*spec, "spec", {"predictor"});
  return draft;
}

Result<Draft> read_seldon_deployment(const Node& document) {
  Draft draft{.origin = "Seldon Core", .service = text_at(document, "metadata.name")};
  const auto predictors = find_at(document, "spec.predictors");
  if (!predictors) return document.error("has no spec.predictors");
  std::vector<Arm> arms;
  for (const Node& predictor : predictors->items()) {
    arms.push_back({text_at(predictor, "name"), parse_number<double>(text_at(predictor, "traffic")).value_or(0),
                    text_at(predictor, "shadow") == "true"});
    if (const auto graph = predictor.find("graph"); graph && graph->has("children"))
      draft.lose(fmt::format("predictor {}.graph", arms.back().name), "graphs are served, not routed");
  }
  SERIN_CHECK(split(std::move(arms), *predictors, draft));
  return draft;
}

Result<Draft> read_seldon_experiment(const Node& document) {
  Draft draft{.origin = "Seldon Core 2", .service = text_at(document, "spec.default")};
  if (draft.service.empty()) draft.service = text_at(document, "metadata.name");
  const auto candidates = find_at(document, "spec.candidates");
  if (!candidates) return document.error("has no spec.candidates");
  std::vector<Arm> arms;
  for (const Node& candidate : candidates->items())
    arms.push_back({text_at(candidate, "name"), parse_number<double>(text_at(candidate, "weight")).value_or(0)});
  if (const std::string mirror = text_at(document, "spec.mirror.name"); !mirror.empty())
    arms.push_back({mirror, parse_number<double>(text_at(document, "spec.mirror.percent")).value_or(100), true});
  SERIN_CHECK(split(std::move(arms), *candidates, draft));
  if (text_at(document, "spec.resourceType") == "pipeline") draft.lose("spec.resourceType", "pipelines are served, not routed");
  draft.lose("sessions by x-seldon-route", "clients that stick need a header or cookie of their own: canary: {sticky: {header: NAME}}");
  return draft;
}

}  // namespace serin::imports
