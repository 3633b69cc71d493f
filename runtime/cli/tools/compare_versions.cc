#include "runtime/cli/tools/compare_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "runtime/cli/tools/tensor_value.h"
#include "runtime/serving/scheduling/rows.h"
#include "runtime/serving/scheduling/signature.h"
#include "runtime/steps/pipeline/paddle_steps.h"

namespace serin::cli {
namespace {

void ignore_duration(std::string_view /*part*/, std::chrono::nanoseconds /*took*/) {}

std::vector<engine::Value> values_of(std::span<const TensorView> views) {
  std::vector<engine::Value> values;
  for (const TensorView& view : views) values.push_back(value_of(view));
  return values;
}

/// Of tensors, as outputs of models with steps are.
std::vector<TensorView> views_of(std::span<const engine::Value> values) {
  std::vector<TensorView> views;
  for (const engine::Value& value : values) views.push_back(engine::view_of(*value.tensor));
  return views;
}

template <class T>
std::vector<T> in_order(std::span<const T> all, const std::vector<size_t>& order) {
  std::vector<T> ordered;
  ordered.reserve(order.size());
  for (const size_t index : order) ordered.push_back(all[index]);
  return ordered;
}

bool may_have_steps(const ModelPlace& place) {
  if (place.steps.given || place.settings.empty()) return place.steps.any();
  return steps::find_paddle_export(std::filesystem::path(place.file).parent_path().string()).has_value();
}

}  // namespace

double ComparedSet::error() const {
  double largest = -1;
  for (const auto* const list : {&outputs, &answers})
    for (const TensorDifference& output : *list) {
      const Comparison& found = output.comparison;
      if (found.match) continue;
      largest = std::max(largest, found.max_absolute_at < 0 || found.not_finite || found.relative_l2 == 0 ? HUGE_VAL : found.relative_l2);
    }
  return largest;
}

Result<VersionPair::Version> VersionPair::load_version(graph::Graph graph, std::span<const graph::ValueId> results, const ModelPlace& place,
                                                       const EngineFlags& flags, const Engine& engine, int64_t batch) {
  graph::Graph shown = graph;
  show_all_results(shown, results);
  auto loaded = load_model(flags, engine, std::move(shown), batch);
  if (!loaded) return loaded.error().in(place.file);
  Version version{.graph = std::move(graph), .model = std::move(loaded->model), .inputs = {}, .outputs = {}, .signature = {}, .steps = {}};
  version.signature =
      serving::signature_of(place.file, version.model->inputs(), version.model->outputs().subspan(results.size()), version.graph);
  version.inputs = version.signature.inputs;
  version.outputs = version.signature.outputs;
  return version;
}

/// Whether rows are independent is a property of the model as a server loads it, without the results that are shown.
Status VersionPair::add_steps(Version& version, const ModelPlace& place, const Engine& engine) {
  auto plain = engine::Model::from_graph(version.graph, *engine.backend, engine.options);
  if (!plain) return plain.error().in(place.file);
  auto steps = steps_around(place, (*plain)->inputs(), (*plain)->outputs(), (*plain)->batchable().yes);
  if (!steps) return steps.error().in(place.settings.empty() ? place.file : place.settings);
  version.signature.inputs = steps->client_inputs();
  version.signature.outputs = steps->client_outputs();
  version.steps = *std::move(steps);
  return {};
}

Result<VersionPair> VersionPair::load(const ModelPlace& reference, const ModelPlace& candidate, const EngineFlags& flags,
                                      const Engine& engine, int64_t batch) {
  const auto read = [&](const std::string& path) -> Result<graph::Graph> {
    auto graph = engine::read_model(path, engine.options);
    if (!graph) return graph.error().in(path);
    if (const Status inferred = graph::infer_shapes(*graph); !inferred) return inferred.error().in(path);
    return graph;
  };
  SERIN_TRY(graph::Graph first, read(reference.file));
  SERIN_TRY(graph::Graph second, read(candidate.file));
  VersionPair pair;
  SERIN_TRY(pair.pairing_, pair_nodes(first, second));
  std::vector<graph::ValueId> firsts, seconds;
  for (const ResultPair& result : pair.pairing_.results) {
    firsts.push_back(result.first);
    seconds.push_back(result.second);
  }
  SERIN_TRY(pair.reference_, load_version(std::move(first), firsts, reference, flags, engine, batch));
  SERIN_TRY(pair.candidate_, load_version(std::move(second), seconds, candidate, flags, engine, batch));
  if (may_have_steps(reference) || may_have_steps(candidate)) {
    SERIN_CHECK(add_steps(pair.reference_, reference, engine));
    SERIN_CHECK(add_steps(pair.candidate_, candidate, engine));
    pair.step_differences_ = steps::find_differences(pair.reference_.steps->settings(), pair.candidate_.steps->settings());
  }
  auto order = order_of(pair.candidate_.signature.inputs, pair.reference_.signature.inputs);
  if (!order) return pair.has_steps() ? order.error().in("clients of the versions send different inputs") : order.error();
  pair.client_order_ = *std::move(order);
  return pair;
}

Result<ComparedSet> VersionPair::compare(const CompareInputs& inputs, const Tolerance& tolerance) const {
  auto found = inputs.of_clients && has_steps() ? compare_request(inputs, tolerance) : compare_graphs(inputs, tolerance);
  if (found) found->inputs = inputs.name;
  return found;
}

Result<ComparedSet> VersionPair::compare_graphs(const CompareInputs& inputs, const Tolerance& tolerance) const {
  const size_t shown = pairing_.results.size();
  SERIN_TRY(const std::vector<size_t> order, order_of(candidate_.inputs, reference_.inputs));
  SERIN_TRY(const std::vector<engine::Value> first, reference_.model->run(inputs.values));
  SERIN_TRY(const std::vector<engine::Value> second, candidate_.model->run(in_order(std::span(inputs.values), order)));
  if (first.size() != second.size())
    return invalid(fmt::format("the reference has {} outputs, the candidate {}", first.size() - shown, second.size() - shown));
  ComparedSet found;
  found.divergence = find_divergence(pairing_, reference_.graph, candidate_.graph, std::span(first).first(shown),
                                     std::span(second).first(shown), tolerance);
  for (size_t i = shown; i < first.size(); ++i) {
    if (!first[i].tensor || !second[i].tensor) continue;  // sequences: their elements are results of nodes
    Comparison comparison = cli::compare(engine::view_of(*second[i].tensor), engine::view_of(*first[i].tensor), tolerance);
    found.match &= comparison.match;
    found.outputs.push_back({reference_.outputs[i - shown].name, "", std::move(comparison)});
  }
  return found;
}

Result<ComparedSet> VersionPair::compare_request(const CompareInputs& inputs, const Tolerance& tolerance) const {
  const std::vector<TensorView> first = views_of(inputs.values), second = in_order(std::span<const TensorView>(first), client_order_);
  SERIN_TRY(const int64_t rows, serving::rows_of_request(reference_.signature, first));
  const auto row_of = [](const std::vector<TensorView>& tensors, int64_t row) {
    std::vector<TensorView> one;
    one.reserve(tensors.size());
    for (const TensorView& tensor : tensors) one.push_back(serving::rows_of(tensor, row, 1));
    return one;
  };
  ComparedSet worst;
  int64_t different = 0;
  for (int64_t row = 0; row < rows; ++row) {
    auto one = compare_row(row_of(first, row), row_of(second, row), tolerance);
    if (!one) return rows == 1 ? one.error() : one.error().in(fmt::format("row {}", row));
    different += one->match ? 0 : 1;
    if (row > 0 && one->error() <= worst.error()) continue;
    worst = *std::move(one);
    worst.row = row;
  }
  worst.rows = rows;
  worst.different_rows = different;
  return worst;
}

Result<ComparedSet> VersionPair::compare_row(std::span<const TensorView> first_row, std::span<const TensorView> second_row,
                                             const Tolerance& tolerance) const {
  const auto of = [](std::string_view version, const Error& error) { return error.in(fmt::format("the {}", version)); };
  auto first_before = reference_.steps->before(first_row, ignore_duration);
  if (!first_before) return of("reference", first_before.error());
  auto second_before = candidate_.steps->before(second_row, ignore_duration);
  if (!second_before) return of("candidate", second_before.error());
  const std::vector<engine::Value> inputs = values_of(first_before->inputs);
  auto first = reference_.model->run(inputs);
  if (!first) return of("reference", first.error());
  auto second = candidate_.model->run(values_of(second_before->inputs));
  if (!second) return of("candidate", second.error());

  ComparedSet found;
  found.prepared = compare_prepared(*first_before, *second_before);
  compare_nodes(inputs, found.prepared.empty(), *first, *second, tolerance, found);
  const size_t shown = pairing_.results.size();
  const std::vector<TensorView> first_outputs = views_of(std::span(*first).subspan(shown));
  const std::vector<TensorView> second_outputs = views_of(std::span(*second).subspan(shown));
  found.outputs = compare_tensors({reference_.outputs, first_outputs}, {candidate_.outputs, second_outputs}, tolerance);
  SERIN_CHECK(compare_answers(first_outputs, first_before->facts, second_outputs, second_before->facts, tolerance, found));
  for (const auto* const list : {&found.outputs, &found.answers})
    found.match &= std::ranges::all_of(*list, [](const TensorDifference& output) { return output.comparison.match; });
  return found;
}

/// `inputs`, `first`: of the reference. `second`: of the candidate on its own inputs.
void VersionPair::compare_nodes(std::span<const engine::Value> inputs, bool equal_inputs, std::span<const engine::Value> first,
                                std::span<const engine::Value> second, const Tolerance& tolerance, ComparedSet& found) const {
  const size_t shown = pairing_.results.size();
  const auto compare_with = [&](std::span<const engine::Value> results) {
    found.divergence = find_divergence(pairing_, reference_.graph, candidate_.graph, first.first(shown), results.first(shown), tolerance);
  };
  if (equal_inputs) return compare_with(second);
  const auto order = order_of(candidate_.inputs, reference_.inputs);
  if (!order) {
    found.apart = order.error().message;
    return;
  }
  const std::vector<engine::Value> same = in_order(inputs, *order);
  for (size_t i = 0; i < same.size(); ++i)
    if (!candidate_.inputs[i].takes(same[i].tensor->shape)) {
      found.apart = fmt::format("the candidate's input '{}' is {}, the steps of the reference make {}", candidate_.inputs[i].name,
                                candidate_.inputs[i].shape.str(), same[i].tensor->shape.str());
      return;
    }
  const auto results = candidate_.model->run(same);
  if (results)
    compare_with(*results);
  else
    found.apart = results.error().message;
}

/// Steps are exact, so there is no tolerance.
std::vector<TensorDifference> VersionPair::compare_prepared(const serving::RowSteps::Before& first,
                                                            const serving::RowSteps::Before& second) const {
  auto all = compare_tensors({reference_.inputs, first.inputs}, {candidate_.inputs, second.inputs}, {.rtol = 0, .atol = 0});
  std::erase_if(all, [](const TensorDifference& tensor) { return tensor.comparison.match; });
  for (TensorDifference& tensor : all)
    for (const Version* const version : {&candidate_, &reference_}) {
      const auto place = place_of(version->inputs, tensor.name);
      const auto step = place ? version->steps->pipeline().step_filling(*place) : std::nullopt;
      if (step) tensor.step = steps::name_of_pre(version->steps->settings(), *step);
    }
  return all;
}

Status VersionPair::compare_answers(std::span<const TensorView> first, const steps::RowFacts& first_facts,
                                    std::span<const TensorView> second, const steps::RowFacts& second_facts, const Tolerance& tolerance,
                                    ComparedSet& found) const {
  if (reference_.steps->settings().post.empty() && candidate_.steps->settings().post.empty()) return {};
  const auto first_after = reference_.steps->after(first, first_facts, ignore_duration);
  if (!first_after) return first_after.error().in("the reference");
  const auto second_after = candidate_.steps->after(second, second_facts, ignore_duration);
  if (!second_after) return second_after.error().in("the candidate");
  found.answers = compare_tensors({reference_.signature.outputs, first_after->outputs},
                                  {candidate_.signature.outputs, second_after->outputs}, tolerance);
  for (TensorDifference& answer : found.answers)
    for (const Version* const version : {&candidate_, &reference_}) {
      const auto place = place_of(version->signature.outputs, answer.name);
      const auto step = place ? version->steps->pipeline().step_making(*place) : std::nullopt;
      if (step) answer.step = steps::name_of_post(version->steps->settings(), *step);
    }
  return {};
}

}  // namespace serin::cli
