// calibration.h: between which numbers the values of a model lie on samples, and which part of that 256 bytes stand for best.
//
//   Calibration calibration(values.size());
//   calibration.see(i, span);        // each value on each sample
//   calibration.count(i, span);      // the same once more
//   const auto range = calibration.range(i);
//
// The whole range makes steps as wide as one outlier demands; a narrower one cuts that outlier off. The range chosen makes the sum of the squares of both errors
// least, which is computed from a histogram (Banner et al., https://arxiv.org/abs/1810.05723, do the same for given distributions).
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
  void count(size_t value, std::span<const float> numbers);  ///< after every sample was seen

  /// Nothing where some number was not finite.
  std::optional<graph::Range> range(size_t value) const;

 private:
  static constexpr size_t kBins = 2048;
  struct Seen {
    float low = 0, high = 0;
    bool finite = true;
    std::vector<uint64_t> bins;  ///< equal parts of low to high; zeros, which bytes stand for exactly, are not counted
  };
  std::vector<Seen> seen_;
};

}  // namespace serin::samples
