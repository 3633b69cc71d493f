// inspect.cc: `serin inspect`: what is in a model file and what the engine makes of it.
//
// A model that cannot be run is still printed as far as it could be read, followed by the reason (exit code 3).

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <iostream>

#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/engine/describe.h"
#include "runtime/engine/plan.h"
#include "runtime/graph/passes/left_over.h"

namespace serin::cli {

namespace {

struct InspectOptions {
  std::string model;
  EngineFlags engine;
  bool explain = false;
  bool json = false;
};

namespace json = boost::json;

int fail_inspect(const Error& error, int code) {
  std::cout << std::flush;
  std::fprintf(stderr, "serin inspect: %s\n", error.message.c_str());
  return code;
}

json::array interface(const graph::Graph& graph, std::span<const graph::ValueId> ids, std::span<const std::string> names) {
  json::array result;
  for (size_t i = 0; i < ids.size(); ++i) {
    const graph::Value& value = graph.value(ids[i]);
    result.push_back({{"name", i < names.size() ? names[i] : value.name}, {"type", graph::print(value.type)}});
  }
  return result;
}

/// What training made: numbers in floating point, more than one at a time. The rest is arithmetic of the exporter.
bool is_parameter(const graph::Constant& constant) {
  const bool floating = constant.dtype >= DType::kFloat16 && constant.dtype <= DType::kFloat64;
  return floating && constant.elements() > 1;
}

json::object parameters(const graph::Graph& graph) {
  int64_t tensors = 0, count = 0, bytes = 0;
  for (size_t i = 0; i < graph.value_capacity(); ++i) {
    const auto id = static_cast<graph::ValueId>(i);
    const graph::ConstantPtr constant = graph.constant(id);
    if (!constant || !is_parameter(*constant) || graph.reader_count(id) == 0) continue;
    ++tensors;
    count += constant->elements();
    bytes += static_cast<int64_t>(constant->bytes());
  }
  return {{"tensors", tensors}, {"count", count}, {"bytes", bytes}};
}

json::array operands(const std::vector<engine::StepInfo::Operand>& list) {
  json::array result;
  for (const auto& operand : list) {
    result.push_back({{"name", operand.name},
                      {"dtype", operand.dtype},
                      {"shape", operand.shape},
                      {"storage", operand.storage},
                      {"place", operand.place},
                      {"offset", operand.offset},
                      {"bytes", operand.bytes}});
  }
  return result;
}

json::array steps(const std::vector<engine::StepInfo>& list) {
  json::array result;
  for (const engine::StepInfo& step : list) {
    json::array refusals, bodies;
    for (const auto& [row, why] : step.refusals) refusals.push_back({{"kernel", row}, {"why", why}});
    for (const auto& body : step.bodies) bodies.push_back(steps(body));
    result.push_back({{"node", step.node},
                      {"op", step.op},
                      {"kernel", step.kernel},
                      {"flops", step.flops},
                      {"bytes", step.bytes},
                      {"inputs", operands(step.inputs)},
                      {"outputs", operands(step.outputs)},
                      {"scratch_bytes", step.scratch_bytes},
                      {"refusals", std::move(refusals)},
                      {"bodies", std::move(bodies)}});
  }
  return result;
}

/// What runs on a device, what does not and why, and what is copied between the two.
json::object device_report(const engine::Plan& plan) {
  json::array on_host, copies;
  int64_t there = 0, all = 0;
  for (const engine::StepInfo& step : engine::steps(plan)) {
    const bool placed = step.op == "Identity";  // by the engine: it optimises the model's own away
    if (placed && step.on_device) {
      const engine::StepInfo::Operand& to = step.outputs.front();
      copies.push_back({{"tensor", to.name}, {"to", to.place == "device" ? "device" : "host"}, {"bytes", to.bytes}});
    }
    if (placed) continue;
    ++all;
    there += step.on_device;
    if (!step.on_device)
      on_host.push_back({{"node", step.node}, {"op", step.op}, {"why", step.refusals.empty() ? "" : step.refusals.front().second}});
  }
  return {
      {"bytes", plan.device_bytes}, {"steps", all}, {"steps_there", there}, {"on_host", std::move(on_host)}, {"copies", std::move(copies)}};
}

json::array left_over(const graph::Graph& graph) {
  json::array result;
  for (const graph::LeftOver& node : graph::left_over_quantisation(graph))
    result.push_back({{"node", node.node}, {"op", graph::op_name(node.op)}, {"why", node.why}});
  return result;
}

json::array kept_in_float(const std::vector<graph::KeptInFloat>& list) {
  json::array result;
  for (const graph::KeptInFloat& node : list) result.push_back({{"node", node.node}, {"op", graph::op_name(node.op)}, {"why", node.why}});
  return result;
}

std::string text(const json::value& value) { return value.is_string() ? std::string(value.get_string()) : json::serialize(value); }

void print_interface(const char* title, const json::value& list) {
  std::cout << title << "\n";
  for (const json::value& item : list.get_array()) std::cout << "  " << text(item.at("name")) << ": " << text(item.at("type")) << "\n";
}

void print_reasons(const char* title, const json::value& list) {
  if (!list.get_array().empty()) std::cout << "\n" << title << "\n";
  for (const json::value& node : list.get_array())
    std::cout << "  " << text(node.at("node")) << " (" << text(node.at("op")) << "): " << text(node.at("why")) << "\n";
}

void print_text(const json::object& report) {
  std::cout << "model " << text(report.at("model")) << "\n";
  if (report.contains("signature")) {
    std::cout << "signature " << text(report.at("signature"));
    for (const json::value& other : report.at("other_signatures").get_array()) std::cout << "; --signature " << text(other);
    std::cout << "\n";
  }
  print_interface("inputs", report.at("inputs"));
  print_interface("outputs", report.at("outputs"));
  const json::value& parameters = report.at("parameters");
  std::cout << "parameters " << text(parameters.at("count")) << " in " << text(parameters.at("tensors")) << " tensors, "
            << text(parameters.at("bytes")) << " bytes\n";
  std::cout << "\nas read\n" << text(report.at("before"));
  if (!report.contains("after")) return;
  std::cout << "\nafter the passes";
  for (const json::value& pass : report.at("passes").get_array()) std::cout << " " << text(pass);
  std::cout << "\n" << text(report.at("after"));
  if (report.contains("stages")) {
    std::cout << "\ninterpreted, because " << text(report.at("why_interpreted")) << "\n" << text(report.at("stages"));
  }
  print_reasons("still between floats and bytes", report.at("left_over"));
  print_reasons("computed in f32 anyway", report.at("kept_in_float"));
  if (report.contains("device")) {
    const json::value& device = report.at("device");
    std::cout << "\non the device: " << text(device.at("steps_there")) << " of " << text(device.at("steps")) << " steps, "
              << text(device.at("bytes")) << " bytes\n";
    for (const json::value& copy : device.at("copies").get_array())
      std::cout << "  copied to the " << text(copy.at("to")) << ": " << text(copy.at("tensor")) << ", " << text(copy.at("bytes"))
                << " bytes\n";
    for (const json::value& node : device.at("on_host").get_array())
      std::cout << "  on the host: " << text(node.at("node")) << " (" << text(node.at("op")) << "): " << text(node.at("why")) << "\n";
  }
  const json::value& batchable = report.at("batchable");
  std::cout << "\nbatchable: "
            << (batchable.as_bool() ? "yes, along '" + text(report.at("batch_symbol")) + "'" : "no: " + text(report.at("why_not"))) << "\n";
}

/// The plan for the sizes given; 1 where none is.
Result<std::unique_ptr<engine::Executor>> plan(engine::Model& model, const EngineFlags& flags) {
  graph::Bindings bindings(flags.dims.begin(), flags.dims.end());
  for (const std::string& symbol : model.symbols()) bindings.emplace(symbol, 1);
  return model.executor(bindings);
}

int run_inspect(const InspectOptions& options) {
  const auto flags = with_decided_precision(options.engine, options.model, 1);
  if (!flags) return fail_inspect(flags.error(), flags.error().code == Code::kInvalidArgument ? kUsage : kCannotRun);
  auto engine = make_engine(*flags);
  if (!engine) return fail_inspect(engine.error(), kUsage);
  auto graph = engine::read_model(options.model, engine->options);
  if (!graph) return fail_inspect(graph.error(), kCannotRun);
  const auto inferred = graph::infer_shapes(*graph);

  json::object report;
  report["model"] = options.model;
  if (const auto& signature = graph->signature; !signature.name.empty()) {
    report["signature"] = signature.name;
    report["other_signatures"] = json::array(signature.others.begin(), signature.others.end());
  }
  report["inputs"] = interface(*graph, graph->inputs(), {});
  report["outputs"] = interface(*graph, graph->outputs(), graph->output_names());
  report["parameters"] = parameters(*graph);
  report["before"] = graph::print(*graph, {.types = true});

  json::array passes;
  engine->options.after_pass = [&](const std::string& name, const graph::Graph&) { passes.emplace_back(name); };
  auto loaded = inferred ? load_model(*flags, *engine, std::move(*graph), 1) : Result<LoadedModel>(inferred.error());
  std::string plan_text;
  Status planned;
  if (loaded) {
    engine::Model& model = *loaded->model;
    report["passes"] = std::move(passes);
    report["after"] = graph::print(model.graph(), {.types = true, .names = true});
    report["left_over"] = left_over(model.graph());
    report["kept_in_float"] = kept_in_float(loaded->kept);
    report["batchable"] = model.batchable().yes;
    report["batch_symbol"] = model.batchable().symbol;
    report["why_not"] = model.batchable().why_not;
    report["weight_bytes"] = model.weight_bytes();
    report["planned"] = model.planned();
    if (!model.planned()) {
      report["why_interpreted"] = model.why_interpreted();
      report["stages"] = model.describe_stages();
    }
    if ((options.explain || engine->device) && model.planned()) {
      const auto executor = plan(model, options.engine);
      if (executor && engine->device) report["device"] = device_report((*executor)->plan());
      if (executor && options.explain) {
        report["backend"] = engine->note;
        report["arena_bytes"] = (*executor)->arena_bytes();
        report["plan"] = steps(engine::steps((*executor)->plan()));
        plan_text = engine->note + "\n" + engine::describe((*executor)->plan(), {.refusals = true});
      }
      if (!executor) planned = executor.error();
    }
  }
  if (options.json) {
    std::cout << json::serialize(report) << "\n";
  } else {
    print_text(report);
    if (!plan_text.empty()) std::cout << "\nplan on " << plan_text;
  }
  if (!loaded) return fail_inspect(loaded.error(), kCannotRun);
  if (!planned) return fail_inspect(planned.error(), planned.error().code == Code::kInvalidArgument ? kUsage : kCannotRun);
  return kYes;
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("inspect", "Print a model's inputs, outputs and graph, before and after the passes");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("model", options->model, "file or folder of a model")->required();
  command->add_flag("--explain", options->explain,
                    "print the plan: the kernel of each step, the kernels that refused it, the place of results");
  command->add_flag("--json", options->json, "print one JSON object");
  add_sizes(*command, options->engine);
  add_engine_flags(*command, options->engine);
  command->callback([options, &exit_code] { exit_code = run_inspect(*options); });
}

}  // namespace serin::cli
