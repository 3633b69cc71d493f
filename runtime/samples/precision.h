// precision.h: decides `precision: auto` on samples of a model's requests.
//
//   SERIN_TRY(const Samples samples, folder.empty() ? made_up_samples(*exact, {}, 1) : stored_samples(folder, *exact));
//   const Candidate bf16{"bf16", [&] { return engine::Model::load(path, backend_with_bf16, options); }};
//   SERIN_TRY(const PrecisionDecision decision, decide_precision(*exact, {{bf16}}, samples));
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/engine.h"

namespace serin::samples {

struct Samples {
  std::vector<std::vector<engine::Value>> inputs;  ///< by sample, in the model's order
  std::string source;                              ///< "made-up inputs", "inputs of calibration"
};

/// Of four samples or more, every fourth is judged (answers are compared on it) and the others are fitted (ranges are taken from them).
/// Otherwise a range that fits one sample would be judged by that same sample. Fewer than four samples serve both purposes.
bool is_judged(const Samples& samples, size_t i);
bool is_fitted(const Samples& samples, size_t i);
Samples judged(const Samples& samples);

/// Returns the largest |a - b| / |b| over all elements of each f32 output of each sample. It compares `model` with `exact`, which is by
/// sample.
Result<double> worst_error(engine::Model& model, const Samples& samples, const std::vector<std::vector<engine::Value>>& exact);

/// Reads the inputs of the data sets in a folder (data_sets.h), the first kMostSamples of them.
Result<Samples> stored_samples(const std::string& folder, const engine::Model& model);
/// Makes random samples. A dimension that `sizes` leave open has `batch` rows if it is the batch, otherwise 16 elements.
Result<Samples> made_up_samples(const engine::Model& model, graph::Bindings sizes, int64_t batch);

/// The model in a lower precision. It is loaded for its trial and released before the next trial.
struct Candidate {
  std::string precision;
  std::function<Result<std::shared_ptr<engine::Model>>()> load;
};

struct PrecisionDecision {
  std::string precision = "fp32";  ///< or the precision of a candidate
  std::string why;                 ///< explanation with numbers
};

/// Runs all candidates on the judged samples. It chooses the fastest of those that are faster than fp32 and stay within kAllowedError.
/// Returns an error if fp32 cannot run the samples.
Result<PrecisionDecision> decide_precision(engine::Model& exact, std::span<const Candidate> candidates, const Samples& samples);

/// Largest relative L2 error of any output. bf16 keeps 8 bits of significand: rounding alone costs 2^-9 to a product, and a network of a
/// dozen layers answers within half a percent. f16 and tf32 keep 11 bits: an eighth of that error, unless something overflows.
inline constexpr double kAllowedError = 0.01;

}  // namespace serin::samples
