// latency.h: predicts how long a batch runs: of each step, what takes longer, arithmetic or memory.
//
// seconds = max(FLOPs / (peak x compute), bytes / (bandwidth x memory)) + launch, over all steps. (Williams, Waterman, Patterson: Roofline,
// https://doi.org/10.1145/1498765.1498785.) Without a calibration the efficiencies are a range, and so is the answer.
#pragma once

#include <string>

#include "runtime/planner/answer.h"
#include "runtime/planner/catalogue.h"

namespace serin::planner {

struct Latency {
  double least = 0, most = 0;  ///< seconds of one batch
  bool calibrated = false;     ///< false: from a range of efficiencies that are usual
};

/// FLOPs and bytes in a second that `threads` cores of a CPU, or a whole accelerator, have in that precision; zeros if the catalogue has no
/// such figure.
struct Roof {
  double flops = 0, bandwidth = 0;

  double ridge() const { return bandwidth > 0 ? flops / bandwidth : 0; }  ///< FLOPs for each byte
};
Roof roof_of(const Device& device, const std::string& precision, int threads);

Latency predict(const Bucket& bucket, const Device& device, const std::string& precision, int threads);

}  // namespace serin::planner
