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

/// How long runs of a model took in a server, and how long they were planned to take.
struct Correction {
  std::string digest;  ///< of the model's files
  std::string model;   ///< its path, as in Sample
  int threads = 1;
  double rows = 1;                   ///< of a run, on average
  double planned = 0, measured = 0;  ///< seconds of a run; both above 0
  double runs = 0;                   ///< that were measured
  std::string source;                ///< the server: "127.0.0.1:8002/metrics"

  double factor() const { return measured / planned; }
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

  /// Replaces those of the same model, and drops its corrections, which were of other plans.
  void add(const std::string& model, std::vector<Sample> samples);
  /// Replaces that of the same model, threads and about as many rows.
  void keep(Correction correction);
  bool empty() const { return samples_.empty(); }
  bool corrects() const { return !corrections_.empty(); }

  /// As if nothing of `without` had been measured; empty: everything counts.
  void fill(ModelAnswer& answer, std::string_view without = {}) const;
  /// After fill(): multiplies the times of the model with that digest by the factor that was kept for the most similar number of rows.
  void correct(ModelAnswer& answer, std::string_view digest) const;

 private:
  std::vector<Sample> samples_;
  std::vector<Correction> corrections_;
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
