// eval.h: `serin eval` measures how good a model's answers are, and whether it is worse than another one. Its exit code is a gate.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/offline/eval_flags.h"
#include "runtime/cli/offline/run_flags.h"

namespace serin::cli {

struct EvalOptions : EvalFlags {
  RunFlags run;
  std::string slice, against, training, out, html;
  std::string margin;  ///< empty: the comparison is reported, it is no gate
  std::vector<std::string> metrics, requirements;
  double confidence = 0.95;
  bool latency = false, json = false;
};

/// Returns the exit code.
int run_eval(const EvalOptions& options);

}  // namespace serin::cli
