// bench.cc: `serin bench`: how long one run of a model takes, without a server around it.
//
// Random inputs, a warm-up, then runs one after the other until the time is over; each is timed by itself, so that the median is not blurred
// by a machine that does something else now and then. items_per_s is what the whole stretch achieved. With --on-request the same is done again
// for each line on standard input, so that a script can measure several engines in turn, each of them warm. --profile takes runs of its own
// afterwards: there the clock is read around each step, which a small model would feel.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>

#include "kernels/device.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/tools/profile.h"
#include "runtime/samples/made_up_tensors.h"

namespace serin::cli {

namespace {

struct BenchOptions {
  std::string model;
  EngineFlags engine;
  int64_t batch = 1;
  double seconds = 3;
  bool on_request = false;  ///< run again for each line on standard input
  bool profile = false;     ///< then report the time of each step
  bool json = false;
};

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

int fail_bench(const Error& error, int code) {
  std::fprintf(stderr, "serin bench: %s\n", error.message.c_str());
  return code;
}

struct Timing {
  std::vector<double> runs;  // milliseconds, sorted
  double seconds = 0;
  double quantile(double q) const { return runs[std::min(runs.size() - 1, static_cast<size_t>(q * static_cast<double>(runs.size())))]; }
};

/// One run of what is measured, on the same inputs every time.
using Run = std::function<Status()>;

/// Where a device copies from and to by itself, inputs and outputs lie there, as the rows of a server's batch do. `step_ns`: Executor::run.
Run run_of(engine::Executor& executor, std::span<int64_t> step_ns = {}) {
  auto inputs = std::make_shared<samples::Tensors>(executor.inputs()), outputs = std::make_shared<samples::Tensors>(executor.outputs());
  inputs->randomise();
  const std::vector<TensorView> staged_inputs = executor.staged_inputs(), staged_outputs = executor.staged_outputs();
  for (size_t i = 0; i < staged_inputs.size(); ++i) {
    if (!staged_inputs[i].data) continue;
    std::memcpy(staged_inputs[i].data, inputs->views()[i].data, staged_inputs[i].bytes());
    inputs->views()[i] = staged_inputs[i];
  }
  for (size_t i = 0; i < staged_outputs.size(); ++i) {
    if (staged_outputs[i].data) outputs->views()[i] = staged_outputs[i];
  }
  return [&executor, inputs, outputs, step_ns] { return executor.run(inputs->views(), outputs->views(), step_ns); };
}

/// For a model without a plan: inputs of the sizes given.
Result<Run> run_of(engine::Model& model, const graph::Bindings& bindings) {
  SERIN_TRY(const std::vector<engine::Value> values, samples::made_up_values(model, bindings));
  return Run([&model, values]() -> Status {
    SERIN_CHECK(model.run(values));
    return {};
  });
}

/// Milliseconds of each run.
Result<std::vector<double>> run_for(const Run& run, double seconds, size_t at_least) {
  std::vector<double> runs;
  const auto start = Clock::now();
  while (runs.size() < at_least || milliseconds(Clock::now() - start) < seconds * 1e3) {
    const auto begin = Clock::now();
    SERIN_CHECK(run());
    runs.push_back(milliseconds(Clock::now() - begin));
  }
  return runs;
}

/// `again`: it has run before, and somebody waits; one run is enough to warm up, and one to count.
Result<Timing> measure(const Run& run, double seconds, bool again) {
  SERIN_CHECK(run_for(run, again ? 0 : std::min(0.2 * seconds, 1.0), again ? 1 : 2));
  Timing timing;
  const auto start = Clock::now();
  SERIN_TRY(timing.runs, run_for(run, seconds, again ? 1 : 3));
  timing.seconds = milliseconds(Clock::now() - start) / 1e3;
  std::sort(timing.runs.begin(), timing.runs.end());
  return timing;
}

/// Mean times of the steps, over runs that follow those of measure().
Result<std::vector<StepTime>> profile(engine::Executor& executor, double seconds) {
  std::vector<engine::StepInfo> steps = engine::steps(executor.plan());
  std::vector<int64_t> step_ns(steps.size());
  SERIN_TRY(const std::vector<double> runs, run_for(run_of(executor, step_ns), seconds, 3));
  std::vector<StepTime> times;
  times.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    times.push_back({std::move(steps[i]), static_cast<double>(step_ns[i]) / 1e6 / static_cast<double>(runs.size())});
  }
  return times;
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

boost::json::object figures(const BenchOptions& options, const Timing& timing) {
  const auto runs = timing.runs.size();
  return {{"model", options.model},
          {"precision", options.engine.precision},
          {"batch", options.batch},
          {"threads", options.engine.threads},
          {"runs", runs},
          {"median_ms", timing.quantile(0.5)},
          {"p95_ms", timing.quantile(0.95)},
          {"min_ms", timing.runs.front()},
          {"items_per_s", static_cast<double>(options.batch) * static_cast<double>(runs) / timing.seconds},
          {"peak_rss_bytes", peak_rss_bytes()}};
}

void print(const boost::json::object& result, bool json) {
  if (json) {
    std::cout << boost::json::serialize(result) << "\n" << std::flush;
    return;
  }
  for (const auto& [key, value] : result) {
    std::cout << std::string(key) << std::string(key.size() < 16 ? 16 - key.size() : 1, ' ');
    if (value.is_double())
      std::printf("%.4g", value.get_double());
    else if (value.is_string())
      std::cout << std::string(value.get_string());
    else
      std::cout << boost::json::serialize(value);
    std::cout << "\n" << std::flush;
  }
}

int run_bench(const BenchOptions& given) {
  BenchOptions options = given;
  if (options.profile && options.on_request) return fail_bench({Code::kInvalidArgument, "--profile does not go with --on-request"}, kUsage);
  if (!(options.seconds > 0)) return fail_bench({Code::kInvalidArgument, "--seconds must be more than 0"}, kUsage);
  auto flags = with_decided_precision(options.engine, options.model, options.batch);
  if (!flags) return fail_bench(flags.error(), flags.error().code == Code::kInvalidArgument ? kUsage : kCannotRun);
  options.engine = std::move(*flags);
  auto engine = make_engine(options.engine);
  if (!engine) return fail_bench(engine.error(), kUsage);

  const auto start = Clock::now();
  const auto loaded = load_model(options.engine, *engine, options.model, options.batch);
  if (!loaded) return fail_bench(loaded.error(), loaded.error().code == Code::kInvalidArgument ? kUsage : kCannotRun);
  const std::shared_ptr<engine::Model>& model = loaded->model;
  const auto bindings = bindings_of(*model, options.engine, options.batch);
  if (!bindings) return fail_bench(bindings.error(), kUsage);
  if (const auto rows = bindings->find(model->batchable().symbol); rows != bindings->end()) options.batch = rows->second;  // --dim wins
  std::unique_ptr<engine::Executor> executor;
  Run run;
  if (model->planned()) {
    auto made = model->executor(*bindings);
    if (!made) return fail_bench(made.error(), made.error().code == Code::kInvalidArgument ? kUsage : kCannotRun);
    executor = std::move(*made);
    run = run_of(*executor);
  } else {
    if (options.profile)
      return fail_bench({Code::kUnsupported, "--profile times the steps of a plan, but there is no plan: " + model->why_interpreted()},
                        kCannotRun);
    const auto made = run_of(*model, *bindings);
    if (!made) return fail_bench(made.error(), kCannotRun);
    run = *made;
  }
  const double load_ms = milliseconds(Clock::now() - start);

  bool again = false;
  std::string line;
  do {
    const auto timing = measure(run, options.seconds, again);
    if (!timing) return fail_bench(timing.error(), kCannotRun);
    boost::json::object result = figures(options, *timing);
    result["backend"] = engine->note;
    if (executor) result["arena_bytes"] = executor->arena_bytes();
    result["weight_bytes"] = model->weight_bytes();
    if (engine->device) {
      const engine::DeviceBytes held = model->device_bytes();
      const kernels::Device& device = *engine->device->device();
      result["device_bytes"] = {{"weights", held.weights},
                                {"arena", held.arena},
                                {"staging", held.staging},
                                {"taken_by_all", device.info().memory_bytes - std::min(device.free_bytes(), device.info().memory_bytes)}};
    }
    result["load_ms"] = load_ms;
    std::string table;
    if (options.profile) {
      const auto times = profile(*executor, options.seconds);
      if (!times) return fail_bench(times.error(), kCannotRun);
      if (options.json) result["profile"] = profile_rows(*times);
      table = "\n" + profile_table(*times);
    }
    print(result, options.json);
    if (!options.json) std::cout << table << std::flush;
    again = true;
  } while (options.on_request && std::getline(std::cin, line));
  return kYes;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("bench", "Measure how long one run of a model takes, without a server");
  auto options = std::make_shared<BenchOptions>();
  command->add_option("model", options->model, "file or folder of a model")->required();
  command->add_option("--batch", options->batch, "rows in one run")->capture_default_str();
  command->add_option("--seconds", options->seconds, "seconds to measure")->capture_default_str();
  command->add_flag("--profile", options->profile, "then print the time of each kernel, and the slowest steps");
  command->add_flag("--on-request", options->on_request, "measure again for each line on standard input");
  command->add_flag("--json", options->json, "print one JSON object");
  add_sizes(*command, options->engine);
  add_engine_flags(*command, options->engine);
  command->callback([options, &exit_code] { exit_code = run_bench(*options); });
}

}  // namespace serin::cli
