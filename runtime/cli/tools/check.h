// check.h: `serin check` runs a model on stored inputs and compares its outputs with stored ones.
#pragma once

#include <map>
#include <string>

#include "runtime/cli/engine_flags.h"

namespace serin::cli {

struct CheckOptions {
  std::string model, folder;
  EngineFlags engine;
  double rtol = 1e-4, atol = 1e-5;            ///< |a-b| <= atol*max|b| + rtol*|b|; see compare.h
  std::map<std::string, double> output_atol;  ///< replaces atol, by the output's name
  bool absolute_atol = false;                 ///< |a-b| <= atol + rtol*|b|, as in NumPy and ONNX's own test data
  bool json = false;
};

/// Returns the exit code.
int run_check(const CheckOptions& options);

}  // namespace serin::cli
