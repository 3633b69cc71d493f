// precision.h: `precision: auto`, decided on samples of what a model will be asked.
//
//   SERIN_TRY(const Samples samples, folder.empty() ? made_up_samples(*exact, {}, 1) : stored_samples(folder, *exact));
//   SERIN_TRY(const PrecisionDecision decision, decide_precision(*exact, *fast, "bf16", samples));   // fast: the same file on a backend with bf16
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/engine.h"

namespace serin::samples {

struct Samples {
  std::vector<std::vector<engine::Value>> inputs;  ///< by sample, in the model's order
  std::string source;                              ///< "made-up inputs", "inputs of calibration"
};

/// The inputs of the data sets in a folder (data_sets.h); the first kMostSamples of them.
Result<Samples> stored_samples(const std::string& folder, const engine::Model& model);
/// Random ones. A dimension that `sizes` leave open has `batch` rows where it is the batch, 16 elements otherwise.
Result<Samples> made_up_samples(const engine::Model& model, graph::Bindings sizes, int64_t batch);

struct PrecisionDecision {
  bool fast = false;
  std::string why;  ///< in words, with numbers
};

/// Runs both on every sample and keeps the fast one, whose precision is called `name`, where it is faster and its outputs stay within kAllowedError. An error
/// where fp32 cannot run them.
Result<PrecisionDecision> decide_precision(engine::Model& exact, engine::Model& fast, std::string_view name, const Samples& samples);

/// Largest relative L2 error of any output. bf16 keeps 8 bits of significand: rounding alone costs 2^-9 to a product, and a network of a dozen layers
/// answers within half a percent.
inline constexpr double kAllowedError = 0.01;

}  // namespace serin::samples
