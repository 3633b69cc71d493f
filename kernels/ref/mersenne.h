// mersenne.h: Random numbers as NumPy's RandomState draws them (MT19937), as in ONNX's own reference implementation.
//
// The same seed gives the same numbers in both.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>

namespace serin::kernels::ref {

class RandomState {
 public:
  explicit RandomState(uint32_t seed) : engine_(seed) {}

  /// In [0, 1), with 53 bits.
  double uniform() {
    const uint32_t high = static_cast<uint32_t>(engine_()) >> 5, low = static_cast<uint32_t>(engine_()) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  /// With mean 0 and variance 1, by Marsaglia's polar method: it makes two at a time and keeps the second one.
  double normal() {
    if (kept_) {
      const double value = *kept_;
      kept_.reset();
      return value;
    }
    double x = 0, y = 0, radius = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      radius = x * x + y * y;
    } while (radius >= 1 || radius == 0);
    const double factor = std::sqrt(-2 * std::log(radius) / radius);
    kept_ = factor * x;
    return factor * y;
  }

  /// One with probability p.
  bool bernoulli(double p) { return p <= 0.5 ? uniform() > 1 - p : uniform() <= p; }

 private:
  std::mt19937 engine_;
  std::optional<double> kept_;
};

}  // namespace serin::kernels::ref
