// precision.h: `precision: auto`, decided on samples of what a model will be asked.
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

/// Every fourth of four samples or more: answers are compared on these, ranges are seen on the others, or a range that fits one sample would be praised for it.
/// Of fewer samples, all for both.
bool is_judged(const Samples& samples, size_t i);
bool is_fitted(const Samples& samples, size_t i);
Samples judged(const Samples& samples);

/// |a - b| / |b| over all elements of each f32 output of each sample, the largest of them: `model` against `exact`, by sample.
Result<double> worst_error(engine::Model& model, const Samples& samples, const std::vector<std::vector<engine::Value>>& exact);

/// The inputs of the data sets in a folder (data_sets.h); the first kMostSamples of them.
Result<Samples> stored_samples(const std::string& folder, const engine::Model& model);
/// Random ones. A dimension that `sizes` leave open has `batch` rows where it is the batch, 16 elements otherwise.
Result<Samples> made_up_samples(const engine::Model& model, graph::Bindings sizes, int64_t batch);

/// The model in a lower precision; loaded when it is tried, let go before the next one is.
struct Candidate {
  std::string precision;
  std::function<Result<std::shared_ptr<engine::Model>>()> load;
};

struct PrecisionDecision {
  std::string precision = "fp32";  ///< or that of a candidate
  std::string why;                 ///< in words, with numbers
};

/// Runs all on the judged samples. Kept is the fastest of those whose outputs stay within kAllowedError and that are faster than fp32. An error where fp32 cannot
/// run the samples.
Result<PrecisionDecision> decide_precision(engine::Model& exact, std::span<const Candidate> candidates, const Samples& samples);

/// Largest relative L2 error of any output. bf16 keeps 8 bits of significand: rounding alone costs 2^-9 to a product, and a network of a dozen layers
/// answers within half a percent. f16 and tf32 keep 11: an eighth of that, where nothing overflows.
inline constexpr double kAllowedError = 0.01;

}  // namespace serin::samples
