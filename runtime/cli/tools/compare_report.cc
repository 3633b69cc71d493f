// compare_report.cc: what differs, in the order in which it runs: steps, inputs, nodes, outputs, answers.

#include "runtime/cli/tools/compare_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>

namespace serin::cli {
namespace {

namespace json = boost::json;

std::string error_of(const Comparison& comparison) {
  return comparison.max_absolute_at < 0
             ? comparison.why_not
             : fmt::format("largest difference {:.3g}, relative L2 {:.3g}", comparison.max_absolute, comparison.relative_l2);
}

constexpr size_t kMostShown = 10;

void print_origin(const Origin& origin) {
  fmt::print("  node '{}' ({}): {}{}, {}\n", origin.node, origin.op, origin.result, origin.shape.str(), error_of(origin.comparison));
  for (const WeightDifference& weight : origin.weights) fmt::print("    weight '{}': {}\n", weight.name, error_of(weight.comparison));
  for (const std::string& name : origin.attributes) fmt::print("    attribute '{}' differs\n", name);
  if (origin.after_unpaired) fmt::print("    an input comes from nodes that only one of the models has\n");
  if (origin.weights.empty() && origin.attributes.empty() && !origin.after_unpaired)
    fmt::print("    same inputs, weights and attributes: the computation itself differs\n");
}

std::string by_step(const TensorDifference& tensor) { return tensor.step.empty() ? "" : fmt::format(", made by {}", tensor.step); }

void print(const ComparedSet& found) {
  const Divergence& divergence = found.divergence;
  if (found.apart.empty())
    fmt::print("{}: {} of {} results differ{}, {} weights differ\n", found.inputs, divergence.different,
               divergence.equal + divergence.different, found.prepared.empty() ? "" : " on the tensors of the reference",
               divergence.weights.size());
  else
    fmt::print("{}: the graphs were not compared: {}\n", found.inputs, found.apart);
  if (found.rows > 1) fmt::print("{} of {} rows have other outputs; this is row {}\n", found.different_rows, found.rows, found.row);
  for (const TensorDifference& tensor : found.prepared)
    fmt::print("input '{}'{}: {}\n", tensor.name, by_step(tensor), error_of(tensor.comparison));
  if (!divergence.origins.empty())
    fmt::print("the first {} differ{} although no input does:\n", divergence.origins.size() == 1 ? "node" : "nodes",
               divergence.origins.size() == 1 ? "s" : "");
  for (size_t i = 0; i < std::min(kMostShown, divergence.origins.size()); ++i) print_origin(divergence.origins[i]);
  if (divergence.origins.size() > kMostShown) fmt::print("  and {} more\n", divergence.origins.size() - kMostShown);
  for (const TensorDifference& output : found.outputs)
    fmt::print("output '{}': {}\n", output.name, output.comparison.match ? "equal" : error_of(output.comparison));
  for (const TensorDifference& answer : found.answers)
    fmt::print("answer '{}'{}: {}\n", answer.name, by_step(answer), answer.comparison.match ? "equal" : error_of(answer.comparison));
}

json::object json_of(const Comparison& comparison) {
  return {{"match", comparison.match},
          {"why", comparison.why_not},
          {"mismatches", comparison.mismatches},
          {"max_absolute_error", comparison.max_absolute},
          {"relative_l2_error", comparison.relative_l2}};
}

json::object json_of(const ComparedSet& found) {
  const auto named = [](const auto& list) {
    json::array array;
    for (const auto& each : list) {
      json::object entry = json_of(each.comparison);
      entry["name"] = each.name;
      array.push_back(std::move(entry));
    }
    return array;
  };
  json::array origins;
  for (const Origin& origin : found.divergence.origins)
    origins.push_back({{"node", origin.node},
                       {"op", origin.op},
                       {"result", origin.result},
                       {"shape", json::array(origin.shape.begin(), origin.shape.end())},
                       {"difference", json_of(origin.comparison)},
                       {"weights", named(origin.weights)},
                       {"attributes", json::array(origin.attributes.begin(), origin.attributes.end())},
                       {"after_unpaired", origin.after_unpaired}});
  const auto with_steps = [&](const std::vector<TensorDifference>& list) {
    json::array array = named(list);
    for (size_t i = 0; i < list.size(); ++i)
      if (!list[i].step.empty()) array[i].as_object()["step"] = list[i].step;
    return array;
  };
  json::object document{{"inputs", found.inputs},
                        {"match", found.match},
                        {"equal", found.divergence.equal},
                        {"different", found.divergence.different},
                        {"weights", named(found.divergence.weights)},
                        {"origins", std::move(origins)},
                        {"outputs", named(found.outputs)}};
  if (found.rows > 0) {
    document["rows"] = found.rows;
    document["different_rows"] = found.different_rows;
    document["row"] = found.row;
    document["input_differences"] = with_steps(found.prepared);
    document["answers"] = with_steps(found.answers);
  }
  if (!found.apart.empty()) document["not_compared"] = found.apart;
  return document;
}

constexpr size_t kMostRequests = 5;  // in full

/// The worst first.
void print_requests(std::vector<ComparedSet> sets, const std::vector<UnfitRequest>& unfit) {
  std::ranges::stable_sort(sets, std::greater(), &ComparedSet::error);
  const auto different = static_cast<size_t>(std::ranges::count(sets, false, &ComparedSet::match));
  fmt::print("{} of {} recorded requests have other outputs\n", different, sets.size());
  for (size_t i = 0; i < std::min(kMostRequests, sets.size() == 1 ? 1 : different); ++i) print(sets[i]);
  if (different > kMostRequests)
    fmt::print("{} more differ less; --json has them, and --request ID shows one\n", different - kMostRequests);
  if (!unfit.empty())
    fmt::print("{} recorded requests do not fit, such as request {}: {}\n", unfit.size(), unfit.front().id, unfit.front().why);
}

}  // namespace

bool ComparedVersions::match() const { return std::ranges::all_of(sets, &ComparedSet::match); }

void print_text(const ComparedVersions& compared) {
  fmt::print("nodes of both are paired by {}; {} are only in the reference, {} only in the candidate\n",
             compared.pairing.by_name ? "name" : "place", compared.pairing.only_first, compared.pairing.only_second);
  if (!compared.steps.empty()) fmt::print("the steps before and after the models differ:\n");
  for (const steps::StepDifference& found : compared.steps) fmt::print("  {}: {}\n", found.step, found.what);
  if (compared.recorded)
    print_requests(compared.sets, compared.unfit);
  else
    for (const ComparedSet& found : compared.sets) print(found);
}

void print_json(const ComparedVersions& compared) {
  json::array sets, unfit;
  for (const ComparedSet& found : compared.sets) sets.push_back(json_of(found));
  for (const UnfitRequest& request : compared.unfit) unfit.push_back({{"request", request.id}, {"why", request.why}});
  json::object document{{"match", compared.match()},
                        {"by_name", compared.pairing.by_name},
                        {"only_reference", compared.pairing.only_first},
                        {"only_candidate", compared.pairing.only_second},
                        {"data_sets", std::move(sets)}};
  if (!compared.steps.empty()) {
    json::array list;
    for (const steps::StepDifference& found : compared.steps) list.push_back({{"step", found.step}, {"what", found.what}});
    document["step_differences"] = std::move(list);
  }
  if (!unfit.empty()) document["unfit"] = std::move(unfit);
  fmt::print("{}\n", json::serialize(document));
}

}  // namespace serin::cli
