// calibrate.cc: runs models for real and times their steps. Of several runs a fast one counts, since others use the machine, too. Looking at the clock takes
// as long as a small step; runs without it tell how long.

#include <algorithm>
#include <chrono>
#include <numeric>

#include "runtime/planner/calibration.h"
#include "runtime/planner/places.h"
#include "runtime/planner/plan_model.h"
#include "runtime/samples/made_up_tensors.h"

namespace serin::planner {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kFewestRuns = 3, kMostRuns = 2000;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The time of one of the fast runs: one of eight is faster.
double fast(std::vector<double>& times) {
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 8);
  std::ranges::nth_element(times, at);
  return *at;
}

/// Nanoseconds of each step, after a first run.
Result<std::vector<double>> step_times(engine::Executor& executor, size_t steps, double seconds) {
  samples::Tensors inputs(executor.inputs()), outputs(executor.outputs());
  inputs.randomise();
  std::vector<int64_t> once(steps, 0);
  SERIN_CHECK(executor.run(inputs.views(), outputs.views(), once));
  std::vector<std::vector<double>> times(steps);
  std::vector<double> whole;
  const auto start = Clock::now();
  for (size_t run = 0; run < kMostRuns && (run < kFewestRuns || seconds_since(start) < seconds); ++run) {
    std::ranges::fill(once, 0);
    SERIN_CHECK(executor.run(inputs.views(), outputs.views(), once));
    for (size_t i = 0; i < steps; ++i) times[i].push_back(static_cast<double>(once[i]));
    const auto began = Clock::now();
    SERIN_CHECK(executor.run(inputs.views(), outputs.views()));
    whole.push_back(seconds_since(began) * 1e9);
  }
  std::vector<double> of_steps;
  of_steps.reserve(times.size());
  for (auto& of_step : times) of_steps.push_back(fast(of_step));
  const double sum = std::accumulate(of_steps.begin(), of_steps.end(), 0.0), run = fast(whole);
  const double clock = std::max(0.0, (sum - run) / static_cast<double>(std::max<size_t>(1, steps)));
  double left = 0;
  for (double& ns : of_steps) left += ns = std::max(ns - clock, 0.1 * ns);
  for (double& ns : of_steps) ns *= left > 0 ? run / left : 1;  // so that they add up to the run
  return of_steps;
}

Result<std::vector<Sample>> measure(const FoundModel& found, const Machine& machine, const Question& question, double seconds) {
  serving::ModelSettings settings = found.settings;
  SERIN_TRY(const LoadedModel loaded, load_model(found, machine, /*only_plans=*/false));
  SERIN_TRY(const std::vector<graph::Bindings> sizes, sizes_of(*loaded.model, question, settings));
  std::vector<Sample> samples;
  for (const graph::Bindings& each : sizes) {
    SERIN_TRY(const auto executor, loaded.model->executor(each));
    const std::vector<engine::StepInfo> steps = engine::steps(executor->plan());
    SERIN_TRY(const std::vector<double> times, step_times(*executor, steps.size(), seconds / static_cast<double>(sizes.size())));
    for (size_t i = 0; i < steps.size(); ++i)
      if (times[i] > 0) samples.push_back({found.path, steps[i].kernel, settings.threads, size_of(steps[i]), times[i]});
  }
  return samples;
}

}  // namespace

Status calibrate(const Machine& machine, const std::vector<std::string>& places, const Question& question, double seconds,
                 Calibration& calibration) {
  SERIN_TRY(std::vector<FoundModel> found, find_models(places, question.settings ? &*question.settings : nullptr));
  for (FoundModel& each : found) {
    if (question.threads) each.settings.threads = *question.threads;
    if (question.precision) each.settings.precision = *question.precision;
    auto samples = measure(each, machine, question, seconds / static_cast<double>(found.size()));
    if (!samples) return samples.error().in("model '" + each.name + "' version " + each.version);
    calibration.add(each.path, *std::move(samples));
  }
  return {};
}

}  // namespace serin::planner
