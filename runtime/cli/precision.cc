// precision.cc: the two precisions are compared on the same inputs, the largest error of several of them against what is allowed, the shortest of several
// runs against each other. Made-up inputs say what rounding does to the network, not what its users send: who has samples compares them with
// `serin check --precision bf16`.

#include "runtime/cli/precision.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "runtime/cli/engine_flags.h"
#include "runtime/cli/made_up_tensors.h"

namespace serin::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kSamples = 3;
constexpr int64_t kUnnamedSize = 16;  // of a dimension that the user gave no size

struct Trial {
  std::vector<std::vector<engine::Value>> outputs;  // by sample
  double milliseconds = std::numeric_limits<double>::infinity();
};

Result<std::vector<engine::Value>> sample(const engine::Model& model, const EngineFlags& flags, int64_t batch, uint32_t seed) {
  graph::Bindings bindings(flags.dims.begin(), flags.dims.end());
  if (!model.batchable().symbol.empty()) bindings.emplace(model.batchable().symbol, batch);
  for (const std::string& symbol : model.symbols()) bindings.emplace(symbol, symbol == "batch" ? batch : kUnnamedSize);
  return made_up_values(model, bindings, seed);
}

Result<Trial> try_precision(const std::string& path, EngineFlags flags, int64_t batch, const std::string& precision) {
  flags.precision = precision;
  SERIN_TRY(const Engine engine, make_engine(flags));
  SERIN_TRY(const auto model, engine::Model::load(path, *engine.backend, engine.options));
  Trial trial;
  for (uint32_t seed = 1; seed <= kSamples; ++seed) {
    SERIN_TRY(const auto inputs, sample(*model, flags, batch, seed));
    SERIN_TRY(auto outputs, model->run(inputs));  // plans it, too
    trial.outputs.push_back(std::move(outputs));
    const auto start = Clock::now();
    SERIN_CHECK(model->run(inputs));
    trial.milliseconds = std::min(trial.milliseconds, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return trial;
}

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
    const double error = size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
    if (!(error <= worst)) worst = error;  // NaN counts as the worst
  }
  return worst;
}

}  // namespace

Result<PrecisionDecision> decide_precision(const std::string& model, const EngineFlags& flags, int64_t batch) {
  SERIN_TRY(const Trial exact, try_precision(model, flags, batch, "fp32"));
  const auto fast = try_precision(model, flags, batch, "bf16");
  if (!fast) return PrecisionDecision{"fp32", "bf16 cannot run here: " + fast.error().message};
  double error = 0;
  for (size_t i = 0; i < exact.outputs.size(); ++i) {
    const double sample_error = relative_error(fast->outputs[i], exact.outputs[i]);
    if (!(sample_error <= error)) error = sample_error;
  }
  const bool keep = error <= kAllowedError && fast->milliseconds < exact.milliseconds;
  return PrecisionDecision{
      keep ? "bf16" : "fp32",
      fmt::format("{}: bf16 differs by {:.2g} (allowed: {:.2g}; relative L2, the worst of {} made-up inputs) and takes {:.4g} ms, "
                  "fp32 {:.4g} ms",
                  keep ? "bf16" : "fp32", error, kAllowedError, kSamples, fast->milliseconds, exact.milliseconds)};
}

Result<EngineFlags> with_decided_precision(EngineFlags flags, const std::string& model, int64_t batch) {
  if (flags.precision != "auto") return flags;
  SERIN_TRY(const PrecisionDecision decision, decide_precision(model, flags, batch));
  fmt::print(stderr, "precision: {}\n", decision.why);
  flags.precision = decision.precision;
  return flags;
}

}  // namespace serin::cli
