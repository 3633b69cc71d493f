// compare_models.cc: `serin compare`: runs two versions of a model on the same inputs, node by node, and names the first that differ.
//
// The inputs are stored ones, made-up ones, or those of requests that a router has recorded. What a client sent goes through the steps of the
// versions; tensors of the graphs, such as made-up ones, do not.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/tools/compare_report.h"
#include "runtime/cli/tools/compare_versions.h"
#include "runtime/cli/tools/recorded_inputs.h"
#include "runtime/samples/data_sets.h"
#include "runtime/samples/made_up_tensors.h"

namespace serin::cli {
namespace {

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

Result<std::vector<CompareInputs>> recorded_inputs(const CompareOptions& options, const protocol::Signature& signature,
                                                   std::vector<UnfitRequest>& unfit) {
  SERIN_TRY(RecordedInputs recorded, read_recorded_inputs(options.recording, signature));
  unfit = std::move(recorded.unfit);
  std::vector<CompareInputs> all;
  all.reserve(recorded.requests.size());
  for (RecordedInput& request : recorded.requests)
    all.push_back({fmt::format("request {} of {}", request.id, request.at), std::move(request.values), request.id, /*of_clients=*/true});
  return all;
}

constexpr std::string_view kWithoutSteps = " (tensors of the graphs, without the steps)";

/// Whether they are what clients send to a model with steps.
bool fits_clients(const std::vector<engine::Value>& values, const protocol::Signature& signature) {
  return std::ranges::equal(values, signature.inputs, [](const engine::Value& value, const protocol::TensorSpec& spec) {
    return value.tensor && value.dtype == spec.dtype && spec.takes(value.tensor->shape);
  });
}

Result<std::vector<CompareInputs>> read_inputs(const CompareOptions& options, const VersionPair& pair) {
  const engine::Model& model = pair.reference_model();
  const auto name_of = [&](std::string_view name, bool of_clients) {
    return fmt::format("{}{}", name, pair.has_steps() && !of_clients ? kWithoutSteps : "");
  };
  std::vector<CompareInputs> all;
  if (options.data.empty()) {
    SERIN_TRY(const graph::Bindings bindings, bindings_of(model, options.engine, options.batch));
    SERIN_TRY(auto values, samples::made_up_values(model, bindings));
    all.push_back({name_of("generated inputs", false), std::move(values)});
    return all;
  }
  SERIN_TRY(const std::vector<samples::DataSet> sets, samples::find_data_sets(options.data));
  for (const samples::DataSet& set : sets) {
    SERIN_TRY(auto values, samples::read_values(set, "input", model.inputs()));
    const bool of_clients = pair.has_steps() && fits_clients(values, pair.signature());
    if (!of_clients && values.size() != model.inputs().size())
      return invalid(fmt::format("{}: there are {} inputs, the model has {}", set.folder, values.size(), model.inputs().size()));
    all.push_back({name_of(set.name, of_clients), std::move(values), "", of_clients});
  }
  return all;
}

/// A model that is named by its file has no steps, also where they lie next to it.
void note_left_out_steps(const ModelPlace& place) {
  if (!place.settings.empty()) return;
  std::error_code unreadable;
  const std::string folder = std::filesystem::absolute(place.file, unreadable).parent_path().string();
  const auto with_steps = find_model(folder);
  if (with_steps && with_steps->steps.any())
    fmt::print(stderr, "{} is named by its file, so the steps of its serin.yaml are left out; name the folder {} to run them\n", place.file,
               folder);
}

Result<ComparedVersions> compare_all(const CompareOptions& options, const Engine& engine) {
  SERIN_TRY(const ModelPlace reference, find_model(options.reference));
  SERIN_TRY(const ModelPlace candidate, find_model(options.candidate));
  SERIN_TRY(const VersionPair pair, VersionPair::load(reference, candidate, options.engine, engine, options.batch));
  ComparedVersions compared{.pairing = pair.pairing(), .steps = pair.step_differences(), .recorded = !options.recording.file.empty()};
  if (compared.recorded)
    for (const ModelPlace* const place : {&reference, &candidate}) note_left_out_steps(*place);
  SERIN_TRY(const std::vector<CompareInputs> all,
            compared.recorded ? recorded_inputs(options, pair.signature(), compared.unfit) : read_inputs(options, pair));
  std::optional<Error> failed;
  for (const CompareInputs& inputs : all) {
    auto one = pair.compare(inputs, options.tolerance);
    if (one) {
      compared.sets.push_back(*std::move(one));
      continue;
    }
    failed = one.error().in(inputs.name);
    if (!compared.recorded) return *failed;
    compared.unfit.push_back({inputs.request, one.error().message});  // a client may have sent what no model answers
  }
  if (compared.sets.empty() && failed) return *failed;
  return compared;
}

int run_compare(const CompareOptions& options) {
  const auto engine = make_engine(options.engine);
  if (!engine) return fail_compare(engine.error());
  const auto compared = compare_all(options, *engine);
  if (!compared) return fail_compare(compared.error());
  if (options.json)
    print_json(*compared);
  else
    print_text(*compared);
  return compared->match() ? kYes : kNo;
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
