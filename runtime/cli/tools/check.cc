// check.cc: `serin check`: runs a model on stored inputs and compares the results with stored outputs.
//
// Every data set is run, also after one that differs, because which of them differ says most about why. The measure is that of compare.h:
// |a - b| <= rtol |b| + atol max|b|.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <ranges>

#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/model_uri.h"
#include "runtime/cli/tools/check.h"
#include "runtime/cli/tools/compare.h"
#include "runtime/engine/value.h"
#include "runtime/samples/data_sets.h"

namespace serin::cli {
namespace {

struct OutputReport {
  std::string name;
  TensorView expected;
  Comparison comparison;
};

int fail_check(const Error& error, int code) {
  std::fprintf(stderr, "serin check: %s\n", error.message.c_str());
  return code;
}

/// The stored values of one data set.
struct Data {
  std::vector<engine::Value> inputs, outputs;
};

Result<Data> read_data(const samples::DataSet& set, const engine::Model& model) {
  Data data;
  SERIN_TRY(data.inputs, samples::read_values(set, "input", model.inputs()));
  SERIN_TRY(data.outputs, samples::read_values(set, "output", model.outputs()));
  if (data.inputs.size() != model.inputs().size())
    return Error{Code::kInvalidArgument, fmt::format("there are {} inputs, the model has {}", data.inputs.size(), model.inputs().size())};
  return data;
}

Comparison mismatch(std::string why) {
  Comparison comparison;
  comparison.why_not = std::move(why);
  comparison.mismatches = 1;
  return comparison;
}

/// A report for each tensor: those of a sequence are called "name[0]", "name[1]".
void compare_values(const std::string& name, const engine::Value& actual, const engine::Value& expected, const Tolerance& tolerance,
                    std::vector<OutputReport>& reports) {
  if (actual.kind != expected.kind || actual.elements.size() != expected.elements.size()) {
    reports.push_back({name, {}, mismatch(engine::describe(actual) + ", expected " + engine::describe(expected))});
    return;
  }
  if (expected.tensor && actual.tensor) {
    const TensorView wanted = engine::view_of(*expected.tensor);
    reports.push_back({name, wanted, compare(engine::view_of(*actual.tensor), wanted, tolerance)});
    return;
  }
  for (size_t i = 0; i < expected.elements.size(); ++i)
    compare_values(fmt::format("{}[{}]", name, i), actual.elements[i], expected.elements[i], tolerance, reports);
}

/// Of each output.
Result<std::vector<Tolerance>> tolerances(const CheckOptions& options, const engine::Model& model) {
  std::vector<Tolerance> list(model.outputs().size(), {options.rtol, options.atol, options.absolute_atol});
  for (const auto& [name, atol] : options.output_atol) {
    const auto output = std::ranges::find(model.outputs(), name, [](const auto& info) { return info.name; });
    if (output == model.outputs().end())
      return Error{Code::kInvalidArgument, fmt::format("--output-atol {}: the model has no such output", name)};
    list[static_cast<size_t>(output - model.outputs().begin())].atol = atol;
  }
  return list;
}

bool negative(double number) { return !(number >= 0); }  // or not a number

Result<std::vector<OutputReport>> run_data(engine::Model& model, const Data& data, const std::vector<Tolerance>& allowed) {
  SERIN_TRY(const std::vector<engine::Value> actual, model.run(data.inputs));
  if (data.outputs.size() != actual.size())
    return Error{Code::kNotFound,
                 fmt::format("there are {} outputs to compare with, the model has {}", data.outputs.size(), actual.size())};
  std::vector<OutputReport> reports;
  for (size_t i = 0; i < actual.size(); ++i) compare_values(model.outputs()[i].name, actual[i], data.outputs[i], allowed[i], reports);
  return reports;
}

std::string error_text(const Comparison& result, const Shape& shape) {
  if (result.max_absolute_at < 0) return result.match ? "exact" : "";
  std::string text = fmt::format("largest error {:.3g} at {}", result.max_absolute, position(shape, result.max_absolute_at));
  if (result.max_relative_at >= 0)
    text += fmt::format(", relative {:.3g} at {}", result.max_relative, position(shape, result.max_relative_at));
  return text;
}

void print(const OutputReport& report) {
  const Comparison& result = report.comparison;
  const Shape& shape = report.expected.shape;
  const std::string errors = error_text(result, shape);
  fmt::print("  {:<4} {}: {}{}  {}{}{}\n", result.match ? "ok" : "FAIL", report.name, dtype_name(report.expected.dtype), shape.str(),
             errors, errors.empty() || result.match ? "" : "; ", result.why_not);
}

boost::json::array at_json(const Shape& shape, int64_t index) {
  boost::json::array at(shape.rank());
  for (size_t axis = shape.rank(); axis-- > 0; index /= shape[axis]) at[axis] = index % shape[axis];
  return at;
}

boost::json::object json_of(const OutputReport& report) {
  const Comparison& result = report.comparison;
  const Shape& shape = report.expected.shape;
  boost::json::object json{{"name", report.name},
                           {"dtype", dtype_name(report.expected.dtype)},
                           {"shape", boost::json::array(shape.begin(), shape.end())},
                           {"match", result.match},
                           {"mismatches", result.mismatches},
                           {"max_absolute_error", result.max_absolute},
                           {"max_relative_error", result.max_relative},
                           {"relative_l2_error", result.relative_l2}};
  if (result.max_absolute_at >= 0) json["max_absolute_at"] = at_json(shape, result.max_absolute_at);
  if (result.max_relative_at >= 0) json["max_relative_at"] = at_json(shape, result.max_relative_at);
  if (!result.match) json["why"] = result.why_not;
  return json;
}

}  // namespace

int run_check(const CheckOptions& options) {
  if (negative(options.rtol) || negative(options.atol) || std::ranges::any_of(options.output_atol | std::views::values, negative))
    return fail_check({Code::kInvalidArgument, "--rtol, --atol and --output-atol must not be negative"}, kUsage);
  EngineFlags given = options.engine;
  if (given.samples.empty()) given.samples = options.folder;  // what is compared on may be decided on
  const auto flags = with_decided_precision(given, options.model, 1);
  if (!flags) return fail_check(flags.error(), flags.error().code == Code::kInvalidArgument ? kUsage : kCannotRun);
  const auto engine = make_engine(*flags);
  if (!engine) return fail_check(engine.error(), kUsage);
  const auto sets = samples::find_data_sets(options.folder);
  if (!sets) return fail_check(sets.error(), kUsage);
  const auto loaded = load_model(*flags, *engine, options.model, 1);
  if (!loaded) return fail_check(loaded.error(), kCannotRun);
  engine::Model& model = *loaded->model;
  const auto allowed = tolerances(options, model);
  if (!allowed) return fail_check(allowed.error(), kUsage);

  size_t agree = 0;
  boost::json::array json;
  for (const samples::DataSet& set : *sets) {
    const auto data = read_data(set, model);
    if (!data) return fail_check(data.error().in(set.folder), kUsage);
    const auto reports = run_data(model, *data, *allowed);
    if (!reports) return fail_check(reports.error().in(set.folder), reports.error().code == Code::kNotFound ? kUsage : kCannotRun);
    agree += std::ranges::all_of(*reports, [](const OutputReport& report) { return report.comparison.match; }) ? 1 : 0;
    if (!options.json) fmt::print("{}\n", set.name);
    boost::json::array outputs;
    for (const OutputReport& report : *reports) {
      if (!options.json) print(report);
      outputs.emplace_back(json_of(report));
    }
    json.push_back(boost::json::object{{"name", set.name}, {"outputs", std::move(outputs)}});
  }
  const bool match = agree == sets->size();
  if (options.json)
    fmt::print("{}\n", boost::json::serialize(boost::json::object{
                           {"model", options.model}, {"backend", engine->note}, {"match", match}, {"data_sets", json}}));
  else
    fmt::print("{} of {} data sets agree ({})\n", agree, sets->size(), engine->note);
  return match ? kYes : kNo;
}

void add_check(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("check", "Run a model on stored inputs and compare with stored outputs");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("model", options->model, "file or folder of a model")->required();
  command->add_option("folder", options->folder, "folder with test_data_set_*/{input,output}_*.{pb,npy}, or one such data set")->required();
  command->add_option("--rtol", options->rtol, "allowed error as a share of the expected element")->capture_default_str();
  command->add_option("--atol", options->atol, "allowed error as a share of the largest expected element")->capture_default_str();
  command->add_option("--output-atol", options->output_atol, "the same for one output: its name and the error; can be given several times")
      ->allow_extra_args(false);
  command->add_flag("--absolute-atol", options->absolute_atol, "--atol is an absolute error, as in NumPy");
  command->add_flag("--json", options->json, "print one JSON document");
  add_engine_flags(*command, options->engine);
  command->callback([options, &exit_code] {
    const auto failed = fetch_model_uris("check", {&options->model, 1});
    exit_code = failed ? *failed : run_check(*options);
  });
}

}  // namespace serin::cli
