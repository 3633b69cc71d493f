// calibration.h: predicts the time of steps on this CPU from steps that were measured on it.
//
//   SERIN_TRY(Calibration calibration, Calibration::read(path));
//   calibration.fill(answer.models[0]);        // Bucket::seconds
//
// For each kernel, time is fitted as a x FLOPs + b x bytes + c, with relative errors. The error of measured steps of similar size then corrects the
// fit, for caches and shapes bend the line. A kernel without measurements is predicted by those of all kernels, and counts as unknown.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/describe.h"
#include "runtime/planner/answer.h"
#include "runtime/planner/fit_line.h"

namespace serin::planner {

struct Sample {
  std::string model, kernel;
  int threads = 1;
  StepSize size;
  double ns = 0;  ///< of a fast run
};

struct Prediction {
  double seconds = 0;
  bool known = false;  ///< whether the kernel was measured
};

class Calibration {
 public:
  /// kNotFound: there is no such file; kInvalidArgument: it is none, or of another CPU or build.
  static Result<Calibration> read(const std::string& path, const std::string& machine);
  Status write(const std::string& path, const std::string& machine) const;

  /// Replaces those of the same model.
  void add(const std::string& model, std::vector<Sample> samples);
  bool empty() const { return samples_.empty(); }

  /// As if nothing of `without` had been measured; empty: everything counts.
  void fill(ModelAnswer& answer, std::string_view without = {}) const;

 private:
  std::vector<Sample> samples_;
};

StepSize size_of(const engine::StepInfo& step);

/// Runs the models for `seconds` in all, and adds the times of their steps.
Status calibrate(const Machine& machine, const std::vector<std::string>& places, const Question& question, double seconds,
                 Calibration& calibration);

/// "AMD EPYC 7763, cpu avx2, oneDNN 3.2.0, serin 0.1.0": a calibration is valid there only.
std::string machine_name(const Machine& machine);
/// serin/plan.json in $XDG_CACHE_HOME or in ~/.cache; empty: there is no such folder.
std::string calibration_path();

}  // namespace serin::planner
