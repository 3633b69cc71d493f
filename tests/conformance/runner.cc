// runner.cc: reads a model once, makes it runnable in every configuration, and compares what comes out with what the suite expects.

#include "tests/conformance/runner.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <exception>

#include "runtime/engine/engine.h"
#include "runtime/formats/onnx/onnx.h"
#include "runtime/graph/passes/pass.h"
#include "tests/conformance/values.h"
#include "tests/gpu/plugin_under_test.h"

namespace serin::conformance {
namespace {

constexpr unsigned kLimitSeconds = 60;
constexpr size_t kLongestError = 400;

std::set<std::string, std::less<>> every_pass() {
  std::set<std::string, std::less<>> names;
  for (const auto& pass : graph::all_passes({})) names.emplace(pass->name());
  return names;
}

std::optional<std::string> run_on(const graph::Graph& graph, const kernels::Backend& backend, const kernels::Backend* device, bool passes,
                                  const TestData& data) {
  engine::LoadOptions options;
  options.device = device;
  if (!passes) options.disabled_passes = every_pass();
  auto model = engine::Model::from_graph(graph, backend, std::move(options));
  if (!model) return model.error().message;
  auto outputs = (*model)->run(data.inputs);
  if (!outputs) return outputs.error().message;
  if (outputs->size() < data.outputs.size()) return fmt::format("{} outputs, expected {}", outputs->size(), data.outputs.size());
  for (size_t i = 0; i < data.outputs.size(); ++i)
    if (const std::string why = difference((*outputs)[i], data.outputs[i], data.tolerance); !why.empty())
      return fmt::format("output {}: {}", i, why);
  return std::nullopt;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  return text;
}

}  // namespace

Runner::Runner() {
  if (!test::plugin_path()) {
    add_processor();
    return;
  }
  auto device = test::open_plugin();
  const std::string name = device->name();
  engines_.push_back({name, kernels::make_cpu_backend({.onednn_path = "none"}), std::move(device)});
}

void Runner::add_processor() {
  const auto add = [&](const std::string& name, const kernels::CpuOptions& options) {
    engines_.push_back({name, kernels::make_cpu_backend(options), nullptr});
  };
  add("ref", {.onednn_path = "none", .reference_only = true});
  for (const auto isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    const std::string name(kernels::isa_name(isa));
    if (isa <= kernels::best_isa())
      add(name, {.isa = isa, .onednn_path = "none"});
    else
      missing_ += (missing_.empty() ? "" : ", ") + name;
  }
  std::string note;
  auto onednn = kernels::make_cpu_backend({.onednn_path = SERIN_ONEDNN_PLUGIN}, &note);
  if (note.find("no oneDNN") == std::string::npos)
    engines_.push_back({std::string(kernels::isa_name(kernels::best_isa())) + "+onednn", std::move(onednn), nullptr});
  else
    missing_ += (missing_.empty() ? "" : ", ") + std::string("oneDNN");
}

std::string Runner::describe() const {
  std::string text;
  for (const Engine& engine : engines_) text += (text.empty() ? "" : ", ") + engine.name;
  return text + "; each with graph passes off and on" + (missing_.empty() ? "" : "; not here: " + missing_);
}

std::optional<std::string> Runner::run_here(const Case& test) const {
  const auto graph = formats::read_onnx(test.folder + "/model.onnx");
  if (!graph) return graph.error().message;
  const auto data = read_test_data(test, *graph);
  if (!data) return data.error().message;
  for (const Engine& engine : engines_)
    for (const bool passes : {false, true})
      if (auto error = run_on(*graph, *engine.backend, engine.device.get(), passes, *data))
        return fmt::format("{}{}: {}", engine.name, passes ? " with passes" : "", *error);
  return std::nullopt;
}

/// The error, empty where there is none. An exception must not leave the child: the test framework above would go on with the next test.
std::string Runner::run_caught(const Case& test) const {
  try {
    return run_here(test).value_or("");
  } catch (const std::exception& e) {
    return fmt::format("throws: {}", e.what());
  }
}

std::optional<std::string> Runner::run(const Case& test) const {
  if (test::plugin_path()) return run_here(test);  // a child cannot use the device that its parent has opened
  int ends[2];
  if (::pipe(ends) != 0) return fmt::format("pipe: {}", std::strerror(errno));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::alarm(kLimitSeconds);
    const std::string error = run_caught(test).substr(0, kLongestError);
    const bool written = ::write(ends[1], error.data(), error.size()) == static_cast<ssize_t>(error.size());
    ::_exit(error.empty() && written ? 0 : 1);
  }
  ::close(ends[1]);
  const std::string error = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return std::string("no process could be started");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return fmt::format("runs longer than {} s", kLimitSeconds);
  if (WIFSIGNALED(status)) return fmt::format("crashes: {}", ::strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 0) return std::nullopt;
  return error.empty() ? fmt::format("ends with exit code {}", WEXITSTATUS(status)) : error;
}

}  // namespace serin::conformance
