// plan_smoke.h: the gate of `serin plan --smoke`: a model is loaded and warmed up on this machine as a pod would serve it, and checked on stored data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/places.h"

namespace serin::cli {

struct SmokeQuestion {
  const planner::FoundModel& model;
  std::string settings;            ///< serin.yaml in place of the model's own; empty: its own
  std::vector<std::string> flags;  ///< of `serin serve`
  std::string precision;           ///< of `serin check`
  int threads = 1;
  std::string data;  ///< folder for `serin check`; empty: that of the model, if it has data sets
  std::optional<double> rtol, atol;
};

/// Runs `serin serve --check`, then `serin check`, each in a process of its own. Returns a line for users. kFailedPrecondition: the model
/// does not load, does not warm up, or differs; the message says which. Throws ReleaseInterrupted.
Result<std::string> run_smoke(const SmokeQuestion& question);

}  // namespace serin::cli
