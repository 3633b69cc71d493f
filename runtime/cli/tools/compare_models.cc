// compare_models.cc: `serin compare`: runs two versions of a model on the same inputs, node by node, and names the first that differ.
//
// The inputs are stored ones, made-up ones, or those of requests that a router has recorded. Of many recorded requests the text shows those in
// full whose outputs differ most; the JSON has all.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>

#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/tools/divergence.h"
#include "runtime/cli/tools/recorded_inputs.h"
#include "runtime/samples/data_sets.h"
#include "runtime/samples/made_up_tensors.h"
#include "runtime/serving/scheduling/signature.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

struct CompareOptions {
  std::string reference, candidate, data;
  RecordingFlags recording;
  EngineFlags engine;
  int64_t batch = 1;
  Tolerance tolerance;
  bool json = false;
};

int fail_compare(const Error& error) {
  std::fprintf(stderr, "serin compare: %s\n", error.message.c_str());
  return error.code == Code::kInvalidArgument || error.code == Code::kNotFound ? kUsage : kCannotRun;
}

/// One version, of which every paired result is an output.
struct Version {
  graph::Graph graph;
  std::shared_ptr<engine::Model> model;
};

Result<graph::Graph> read(const std::string& path, const Engine& engine) {
  auto graph = engine::read_model(path, engine.options);
  if (!graph) return graph.error().in(path);
  if (const Status inferred = graph::infer_shapes(*graph); !inferred) return inferred.error().in(path);
  return graph;
}

Result<Version> load(graph::Graph graph, std::span<const graph::ValueId> results, const std::string& path, const CompareOptions& options,
                     const Engine& engine) {
  graph::Graph shown = graph;
  show_all_results(shown, results);
  auto loaded = load_model(options.engine, engine, std::move(shown), options.batch);
  if (!loaded) return loaded.error().in(path);
  return Version{.graph = std::move(graph), .model = loaded->model};
}

struct Inputs {
  std::string name;
  std::vector<engine::Value> values;
  std::string request = {};  // its ID, if it was recorded
};

Result<std::vector<Inputs>> recorded_inputs(const CompareOptions& options, const protocol::Signature& signature,
                                            std::vector<UnfitRequest>& unfit) {
  SERIN_TRY(RecordedInputs recorded, read_recorded_inputs(options.recording, signature));
  unfit = std::move(recorded.unfit);
  std::vector<Inputs> all;
  all.reserve(recorded.requests.size());
  for (RecordedInput& request : recorded.requests)
    all.push_back({fmt::format("request {} of {}", request.id, request.at), std::move(request.values), request.id});
  return all;
}

Result<std::vector<Inputs>> read_inputs(const CompareOptions& options, const engine::Model& model) {
  std::vector<Inputs> all;
  if (options.data.empty()) {
    SERIN_TRY(const graph::Bindings bindings, bindings_of(model, options.engine, options.batch));
    SERIN_TRY(auto values, samples::made_up_values(model, bindings));
    all.push_back({"generated inputs", std::move(values)});
    return all;
  }
  SERIN_TRY(const std::vector<samples::DataSet> sets, samples::find_data_sets(options.data));
  for (const samples::DataSet& set : sets) {
    SERIN_TRY(auto values, samples::read_values(set, "input", model.inputs()));
    if (values.size() != model.inputs().size())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: there are {} inputs, the model has {}", set.folder, values.size(), model.inputs().size())};
    all.push_back({set.name, std::move(values)});
  }
  return all;
}

/// The values in the order of the candidate's inputs: by name, or by place where the names differ.
Result<std::vector<engine::Value>> ordered_for(const engine::Model& candidate, const engine::Model& reference,
                                               const std::vector<engine::Value>& values) {
  if (candidate.inputs().size() != reference.inputs().size())
    return Error{Code::kInvalidArgument, fmt::format("the reference has {} inputs, the candidate {}: they cannot be given the same",
                                                     reference.inputs().size(), candidate.inputs().size())};
  std::vector<engine::Value> ordered;
  for (size_t i = 0; i < candidate.inputs().size(); ++i) {
    const auto named = std::ranges::find(reference.inputs(), candidate.inputs()[i].name, &engine::TensorInfo::name);
    const size_t from = named == reference.inputs().end() ? i : static_cast<size_t>(named - reference.inputs().begin());
    if (reference.inputs()[from].dtype != candidate.inputs()[i].dtype)
      return Error{Code::kInvalidArgument,
                   fmt::format("input '{}' is {} in the reference and {} in the candidate", candidate.inputs()[i].name,
                               dtype_name(reference.inputs()[from].dtype), dtype_name(candidate.inputs()[i].dtype))};
    ordered.push_back(values[from]);
  }
  return ordered;
}

struct OutputDifference {
  std::string name;
  Comparison comparison;
};

struct ComparedSet {
  std::string inputs;
  Divergence divergence;
  std::vector<OutputDifference> outputs;
  bool match = true;

  /// The largest relative L2 error of an output that differs. Infinite where that says nothing: another type or shape, a NaN or an infinity
  /// instead of a number, anything instead of zeros. Negative: none differs.
  double error() const {
    double largest = -1;
    for (const OutputDifference& output : outputs) {
      const Comparison& found = output.comparison;
      if (found.match) continue;
      largest = std::max(largest, found.max_absolute_at < 0 || found.not_finite || found.relative_l2 == 0 ? HUGE_VAL : found.relative_l2);
    }
    return largest;
  }
};

Result<ComparedSet> compare_on(const Inputs& inputs, const Pairing& pairing, const Version& reference, const Version& candidate,
                               const Tolerance& tolerance) {
  SERIN_TRY(const std::vector<engine::Value> first, reference.model->run(inputs.values));
  SERIN_TRY(const std::vector<engine::Value> ordered, ordered_for(*candidate.model, *reference.model, inputs.values));
  SERIN_TRY(const std::vector<engine::Value> second, candidate.model->run(ordered));
  const size_t shown = pairing.results.size();
  ComparedSet found{.inputs = inputs.name,
                    .divergence = find_divergence(pairing, reference.graph, candidate.graph, std::span(first).first(shown),
                                                  std::span(second).first(shown), tolerance)};
  if (first.size() != second.size())
    return Error{Code::kInvalidArgument,
                 fmt::format("the reference has {} outputs, the candidate {}", first.size() - shown, second.size() - shown)};
  for (size_t i = shown; i < first.size(); ++i) {
    if (!first[i].tensor || !second[i].tensor) continue;  // sequences: their elements are results of nodes
    Comparison comparison = compare(engine::view_of(*second[i].tensor), engine::view_of(*first[i].tensor), tolerance);
    found.match &= comparison.match;
    found.outputs.push_back({std::string(reference.graph.output_names()[i - shown]), std::move(comparison)});
  }
  return found;
}

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

void print(const ComparedSet& found) {
  const Divergence& divergence = found.divergence;
  fmt::print("{}: {} of {} results differ, {} weights differ\n", found.inputs, divergence.different,
             divergence.equal + divergence.different, divergence.weights.size());
  if (!divergence.origins.empty())
    fmt::print("the first {} differ{} although no input does:\n", divergence.origins.size() == 1 ? "node" : "nodes",
               divergence.origins.size() == 1 ? "s" : "");
  for (size_t i = 0; i < std::min(kMostShown, divergence.origins.size()); ++i) print_origin(divergence.origins[i]);
  if (divergence.origins.size() > kMostShown) fmt::print("  and {} more\n", divergence.origins.size() - kMostShown);
  for (const OutputDifference& output : found.outputs)
    fmt::print("output '{}': {}\n", output.name, output.comparison.match ? "equal" : error_of(output.comparison));
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
  return {{"inputs", found.inputs},
          {"match", found.match},
          {"equal", found.divergence.equal},
          {"different", found.divergence.different},
          {"weights", named(found.divergence.weights)},
          {"origins", std::move(origins)},
          {"outputs", named(found.outputs)}};
}

struct Compared {
  Pairing pairing;
  std::vector<ComparedSet> sets;
  std::vector<UnfitRequest> unfit;
};

Result<Compared> compare_all(const CompareOptions& options, const Engine& engine) {
  SERIN_TRY(graph::Graph first, read(options.reference, engine));
  SERIN_TRY(graph::Graph second, read(options.candidate, engine));
  Compared compared;
  SERIN_TRY(compared.pairing, pair_nodes(first, second));
  std::vector<graph::ValueId> firsts, seconds;
  for (const ResultPair& pair : compared.pairing.results) {
    firsts.push_back(pair.first);
    seconds.push_back(pair.second);
  }
  SERIN_TRY(const Version reference, load(std::move(first), firsts, options.reference, options, engine));
  SERIN_TRY(const Version candidate, load(std::move(second), seconds, options.candidate, options, engine));
  const bool recorded = !options.recording.file.empty();
  SERIN_TRY(const std::vector<Inputs> all,
            recorded ? recorded_inputs(options,
                                       serving::signature_of(options.reference, reference.model->inputs(),
                                                             reference.model->outputs().subspan(firsts.size()), reference.graph),
                                       compared.unfit)
                     : read_inputs(options, *reference.model));
  std::optional<Error> failed;
  for (const Inputs& inputs : all) {
    auto one = compare_on(inputs, compared.pairing, reference, candidate, options.tolerance);
    if (one) {
      compared.sets.push_back(*std::move(one));
      continue;
    }
    failed = one.error().in(inputs.name);
    if (!recorded) return *failed;
    compared.unfit.push_back({inputs.request, one.error().message});  // a client may have sent what no model answers
  }
  if (compared.sets.empty() && failed) return *failed;
  return compared;
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

void print_json(const Compared& compared, bool match) {
  json::array sets, unfit;
  for (const ComparedSet& found : compared.sets) sets.push_back(json_of(found));
  for (const UnfitRequest& request : compared.unfit) unfit.push_back({{"request", request.id}, {"why", request.why}});
  json::object document{{"match", match},
                        {"by_name", compared.pairing.by_name},
                        {"only_reference", compared.pairing.only_first},
                        {"only_candidate", compared.pairing.only_second},
                        {"data_sets", std::move(sets)}};
  if (!unfit.empty()) document["unfit"] = std::move(unfit);
  fmt::print("{}\n", json::serialize(document));
}

int run_compare(const CompareOptions& options) {
  const auto engine = make_engine(options.engine);
  if (!engine) return fail_compare(engine.error());
  const auto all = compare_all(options, *engine);
  if (!all) return fail_compare(all.error());
  const bool match = std::ranges::all_of(all->sets, &ComparedSet::match);
  if (options.json) {
    print_json(*all, match);
    return match ? kYes : kNo;
  }
  fmt::print("nodes of both are paired by {}; {} are only in the reference, {} only in the candidate\n",
             all->pairing.by_name ? "name" : "place", all->pairing.only_first, all->pairing.only_second);
  if (!options.recording.file.empty())
    print_requests(all->sets, all->unfit);
  else
    for (const ComparedSet& found : all->sets) print(found);
  return match ? kYes : kNo;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("compare", "Run two versions of a model on the same inputs, and name the first nodes that differ");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("reference", options->reference, "file or folder of a model, such as that of stable")->required();
  command->add_option("candidate", options->candidate, "the same of the version that is compared with it")->required();
  auto* data = command->add_option("--data", options->data, "folder with inputs, as for `check`; default: generated inputs");
  add_recording_flags(*command, options->recording);
  command->get_option("--recording")->excludes(data);
  command->add_option("--batch", options->batch, "rows of generated inputs")->capture_default_str();
  command->add_option("--rtol", options->tolerance.rtol, "allowed error as a share of the expected element")->capture_default_str();
  command->add_option("--atol", options->tolerance.atol, "allowed error as a share of the largest expected element")->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON document");
  add_sizes(*command, options->engine);
  add_engine_flags(*command, options->engine);
  command->callback([options, &exit_code] { exit_code = run_compare(*options); });
}

}  // namespace serin::cli
