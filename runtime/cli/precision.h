// precision.h: `--precision auto`.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/commands.h"

namespace serin::cli {

struct PrecisionDecision {
  std::string precision;  ///< "fp32" or "bf16"
  std::string why;        ///< in words, with numbers
};

/// Runs the model in fp32 and in bf16 on made-up inputs and keeps bf16 where it is faster and its outputs stay within kAllowedError.
Result<PrecisionDecision> decide_precision(const std::string& model, const EngineFlags& flags, int64_t batch);

/// Largest relative L2 error of any output. bf16 keeps 8 bits of significand: rounding alone costs 2^-9 to a product, and a network of a dozen layers
/// answers within half a percent.
inline constexpr double kAllowedError = 0.01;

/// `flags` with "auto" replaced by what was decided, which is said on standard error.
Result<EngineFlags> with_decided_precision(EngineFlags flags, const std::string& model, int64_t batch);

}  // namespace serin::cli
