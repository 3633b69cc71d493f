// precision.cc: compares the precisions on the same inputs. It compares the largest error of several inputs with the allowed error, and the
// shortest of several runs with each other. Generated inputs show how rounding affects the network, but not what users send; stored inputs
// show both.

#include "runtime/samples/precision.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "runtime/samples/data_sets.h"
#include "runtime/samples/made_up_tensors.h"

namespace serin::samples {

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kMadeUp = 3;
constexpr size_t kMostSamples = 32;  // a model is decided on before it is served
constexpr size_t kOneJudgedOf = 4;
constexpr int64_t kUnnamedSize = 16;  // of a dimension that the user gave no size

struct Trial {
  std::vector<std::vector<engine::Value>> outputs;  // by sample
  double milliseconds = 0;                          // the sum over the samples of the shorter of two runs
};

Result<Trial> run_all(engine::Model& model, const Samples& samples) {
  Trial trial;
  for (const std::vector<engine::Value>& inputs : samples.inputs) {
    double shortest = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 3; ++run) {  // the first plans it, too
      const auto start = Clock::now();
      SERIN_TRY(auto outputs, model.run(inputs));
      const double took = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      if (run > 0) shortest = std::min(shortest, took);
      if (run == 0) trial.outputs.push_back(std::move(outputs));
    }
    trial.milliseconds += shortest;
  }
  return trial;
}

/// NaN is the worst there is.
double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// |a - b| / |b| over all elements of the f32 outputs of one sample, the largest of them.
double relative_error(const std::vector<engine::Value>& fast, const std::vector<engine::Value>& exact) {
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (!exact[i].is_tensor() || !exact[i].tensor || exact[i].tensor->dtype != DType::kFloat32) continue;
    const auto a = fast[i].tensor->span<float>(), b = exact[i].tensor->span<float>();
    if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
    double difference = 0, size = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      difference += (double{a[j]} - double{b[j]}) * (double{a[j]} - double{b[j]});
      size += double{b[j]} * double{b[j]};
    }
    worst = worse(worst, size > 0 ? std::sqrt(difference / size) : std::sqrt(difference));
  }
  return worst;
}

struct Measured {
  double error = 0, milliseconds = 0;
};

Result<Measured> measure(const Candidate& candidate, const Trial& wanted, const Samples& samples) {
  SERIN_TRY(const auto model, candidate.load());
  SERIN_TRY(const Trial trial, run_all(*model, samples));
  Measured measured{0, trial.milliseconds};
  for (size_t i = 0; i < wanted.outputs.size(); ++i) {
    measured.error = worse(measured.error, relative_error(trial.outputs[i], wanted.outputs[i]));
  }
  return measured;
}

}  // namespace

bool is_judged(const Samples& samples, size_t i) { return samples.inputs.size() < kOneJudgedOf || i % kOneJudgedOf == kOneJudgedOf - 1; }
bool is_fitted(const Samples& samples, size_t i) { return samples.inputs.size() < kOneJudgedOf || !is_judged(samples, i); }

Samples judged(const Samples& samples) {
  Samples some{{}, samples.source};
  for (size_t i = 0; i < samples.inputs.size(); ++i) {
    if (is_judged(samples, i)) some.inputs.push_back(samples.inputs[i]);
  }
  return some;
}

Result<double> worst_error(engine::Model& model, const Samples& samples, const std::vector<std::vector<engine::Value>>& exact) {
  double worst = 0;
  for (size_t i = 0; i < samples.inputs.size(); ++i) {
    SERIN_TRY(const auto outputs, model.run(samples.inputs[i]));
    worst = worse(worst, relative_error(outputs, exact[i]));
  }
  return worst;
}

Result<Samples> stored_samples(const std::string& folder, const engine::Model& model) {
  SERIN_TRY(const std::vector<DataSet> sets, find_data_sets(folder));
  Samples samples{{}, "inputs of " + std::filesystem::path(folder).lexically_normal().string()};
  for (const DataSet& set : sets) {
    if (samples.inputs.size() == kMostSamples) break;
    auto inputs = read_values(set, "input", model.inputs());
    if (!inputs) return inputs.error().in(set.folder);
    samples.inputs.push_back(std::move(*inputs));
  }
  return samples;
}

Result<Samples> made_up_samples(const engine::Model& model, graph::Bindings sizes, int64_t batch) {
  if (!model.batchable().symbol.empty()) sizes.emplace(model.batchable().symbol, batch);
  for (const std::string& symbol : model.symbols()) sizes.emplace(symbol, symbol == "batch" ? batch : kUnnamedSize);
  Samples samples{{}, "made-up inputs"};
  for (uint32_t seed = 1; seed <= kMadeUp; ++seed) {
    SERIN_TRY(auto inputs, made_up_values(model, sizes, seed));
    samples.inputs.push_back(std::move(inputs));
  }
  return samples;
}

Result<PrecisionDecision> decide_precision(engine::Model& exact, std::span<const Candidate> candidates, const Samples& all) {
  const Samples samples = judged(all);
  SERIN_TRY(const Trial wanted, run_all(exact, samples));
  PrecisionDecision decision;
  double shortest = wanted.milliseconds;
  const auto runs = static_cast<double>(samples.inputs.size());
  std::string tried;
  for (const Candidate& candidate : candidates) {
    const auto measured = measure(candidate, wanted, samples);
    if (!measured) {
      tried += fmt::format("{} cannot run: {}; ", candidate.precision, measured.error().message);
      continue;
    }
    tried += fmt::format("{} differs by {:.2g} and takes {:.4g} ms; ", candidate.precision, measured->error, measured->milliseconds / runs);
    if (!(measured->error <= kAllowedError) || measured->milliseconds >= shortest) continue;
    shortest = measured->milliseconds;
    decision.precision = candidate.precision;
  }
  decision.why = fmt::format("{}: {}fp32 takes {:.4g} ms (allowed: {:.2g}, relative L2, the worst of {} {})", decision.precision, tried,
                             wanted.milliseconds / runs, kAllowedError, samples.inputs.size(), samples.source);
  return decision;
}

}  // namespace serin::samples
