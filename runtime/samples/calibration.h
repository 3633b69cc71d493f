// calibration.h: finds the value ranges of a model on samples, and the part of each range that 256 byte values represent best.
//
//   Calibration calibration(values.size());
//   calibration.see(i, span);        // each value on each sample
//   calibration.count(i, span);      // the same once more
//   const auto range = calibration.range(i);
//
// The whole range makes the steps as wide as one outlier requires; a narrower range cuts that outlier off. The chosen range minimises the
// sum of the squares of both errors, computed from a histogram. Banner et al., https://arxiv.org/abs/1810.05723, do the same for given
// distributions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/graph/int8/int8.h"

namespace serin::samples {

class Calibration {
 public:
  explicit Calibration(size_t values) : seen_(values) {}

  void see(size_t value, std::span<const float> numbers);
  void count(size_t value, std::span<const float> numbers);  ///< after see() has had every sample

  /// Returns nothing if some number was not finite.
  std::optional<graph::Range> range(size_t value) const;

 private:
  static constexpr size_t kBins = 2048;
  struct Seen {
    float low = 0, high = 0;
    bool finite = true;
    std::vector<uint64_t> bins;  ///< equal parts of low to high; zeros, which bytes represent exactly, are not counted
  };
  std::vector<Seen> seen_;
};

}  // namespace serin::samples
