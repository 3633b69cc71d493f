// eval_drift.h: whether the inputs of an evaluation look like those that a model was trained on. A model that is good on data that no longer
// come is good for nothing, and its metrics do not say so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/offline/run_flags.h"

namespace serin::cli {

/// Of one input: its element whose distribution differs most.
struct InputDrift {
  std::string input;
  int64_t elements = 0, worst = 0;
  double distance = 0;  ///< of Kolmogorov and Smirnov
  double p_value = 1;   ///< times the number of elements, at most 1 (Bonferroni)
};

struct EvalDrift {
  std::string training, sha256;
  int64_t rows = 0, training_rows = 0;  ///< that were compared: at most 10,000, evenly spaced
  std::vector<InputDrift> inputs;       ///< those of numbers with a fixed size

  /// The largest distance; 0: nothing was compared.
  double largest() const;
};

/// `training`: data with the same columns. kInvalidArgument, kNotFound, kUnsupported (no input is of numbers with a fixed size).
Result<EvalDrift> measure_drift(const OpenRun& run, const std::string& training, const std::vector<std::string>& map);

}  // namespace serin::cli
