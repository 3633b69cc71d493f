// predict.h: `serin predict` runs a model over all rows of a file and writes what it answers.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/offline/run_flags.h"

namespace serin::cli {

struct PredictOptions {
  RunFlags run;
  std::string out;
  std::vector<std::string> keep;
  bool json = false;
};

/// Returns the exit code.
int run_predict(const PredictOptions& options);

}  // namespace serin::cli
