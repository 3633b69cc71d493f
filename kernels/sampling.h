// sampling.h: Reads between the elements of an image: the elements of a GridSample's point, and the samples of a RoiAlign.
//
// One source for all backends; C is the type of the coordinates.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/float16.h"

namespace serin::kernels {

enum class GridMode : uint8_t { kNearest, kLinear, kCubic };
enum class GridPadding : uint8_t { kZeros, kBorder, kReflection };

/// The attributes of a GridSample.
struct GridRule {
  GridMode mode = GridMode::kLinear;
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;

  /// The maximum number of elements that a coordinate reads along an axis.
  int64_t most_taps() const { return mode == GridMode::kNearest ? 1 : mode == GridMode::kLinear ? 2 : 4; }
};

template <class C>
SERIN_HD inline C clamped(C x, C low, C high) {
  return x < low ? low : x > high ? high : x;
}

/// R. Keys, Cubic Convolution Interpolation for Digital Image Processing (1981).
template <class C>
SERIN_HD inline C keys(C x, C a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

// ---- GridSample ----

/// One axis of at least one element, for the points of a GridSample.
template <class C>
struct SampledAxis {
  GridRule rule;
  int64_t size;

  /// The elements that a coordinate reads (`normalised`: -1 to 1 over the axis; NaN is outside) and their weights; index -1: zero, skipped.
  /// kTaps is that of the mode (GridRule::most_taps).
  template <int kTaps>
  SERIN_HD void find(C normalised, int64_t (&index)[kTaps], C (&weight)[kTaps]) const {
    const C x = coordinate(normalised);
    // x is within a few elements of the axis; std::floor is a call if there is no instruction.
    auto whole = static_cast<int64_t>(x);
    if (static_cast<C>(whole) > x) --whole;
    const C part = x - static_cast<C>(whole);
    for (int k = 0; k < kTaps; ++k) {
      const int step = kTaps == 4 ? k - 1 : k;
      weight[k] = kTaps == 1 ? C(1) : kTaps == 2 ? (k == 0 ? C(1) - part : part) : keys(part - static_cast<C>(step), C(-0.75));
      index[k] = seen(whole + step);
    }
  }

 private:
  SERIN_HD C low() const { return rule.align_corners ? C(0) : C(-0.5); }
  SERIN_HD C high() const { return static_cast<C>(size) - (rule.align_corners ? C(1) : C(0.5)); }

  /// x mirrored at both ends of the axis until it is between them.
  SERIN_HD C reflected(C x) const {
    const C span = high() - low();
    if (span <= 0) return low();
    const C distance = x < low() ? low() - x : x > high() ? x - high() : C(-1);
    if (distance < 0) return x;
    const C turns = std::floor(distance / span), rest = distance - turns * span;
    const bool from_low = (x < low()) == (std::fmod(turns, C(2)) == 0);
    return from_low ? low() + rest : high() - rest;
  }

  SERIN_HD C coordinate(C normalised) const {
    const auto length = static_cast<C>(size);
    C x = rule.align_corners ? (normalised + 1) / 2 * (length - 1) : ((normalised + 1) * length - 1) / 2;
    if (x != x) return C(-4);
    if (rule.mode == GridMode::kNearest) x = std::nearbyint(x);
    if (x < low() || x > high()) {
      if (rule.padding == GridPadding::kBorder) x = clamped(x, C(0), length - 1);
      if (rule.padding == GridPadding::kReflection) x = reflected(x);
    }
    return clamped(x, C(-4), length + 4);  // further out there are no elements
  }

  SERIN_HD int64_t seen(int64_t index) const {
    if (index >= 0 && index < size) return index;
    if (rule.padding == GridPadding::kZeros) return -1;
    if (rule.padding == GridPadding::kReflection) index = static_cast<int64_t>(reflected(static_cast<C>(index)));
    return clamped<int64_t>(index, 0, size - 1);
  }
};

// ---- RoiAlign ----

/// A sample between elements `low` and `high` of an axis, at the fraction `part` between them.
template <class C>
struct AlignedSample {
  int64_t low, high;
  C part;
};

/// One axis of a box: `per_bin` samples in each of its bins.
template <class C>
struct AlignedAxis {
  static constexpr int64_t kMostSamples = 1 << 20;  ///< a box with a million elements in a bin is invalid

  C begin, bin;
  int64_t per_bin;  ///< -1: more than kMostSamples

  SERIN_HD AlignedAxis(C first, C last, int64_t bins, int64_t sampling_ratio, bool half_pixel) : begin(first) {
    const C length = half_pixel || !(last - first <= 1) ? last - first : C(1);  // NaN stays
    bin = length / static_cast<C>(bins);
    const C samples = sampling_ratio > 0 ? static_cast<C>(sampling_ratio) : std::ceil(bin);
    per_bin = !(samples <= static_cast<C>(kMostSamples)) ? -1 : samples > 0 ? static_cast<int64_t>(samples) : 0;
  }
  /// Sample i of a bin; false if it is outside the `size` elements of the image and has no weight.
  SERIN_HD bool sample(int64_t of_bin, int64_t i, int64_t size, AlignedSample<C>& found) const {
    const C at = begin + static_cast<C>(of_bin) * bin + (static_cast<C>(i) + C(0.5)) * bin / static_cast<C>(per_bin);
    if (!(at >= -1 && at <= static_cast<C>(size))) return false;
    const C inside = at > 0 ? at : C(0);
    const auto whole = static_cast<int64_t>(inside);
    const bool is_last = whole >= size - 1;
    found.low = is_last ? size - 1 : whole;
    found.high = is_last ? found.low : found.low + 1;
    found.part = is_last ? C(0) : inside - static_cast<C>(found.low);
    return true;
  }
};

}  // namespace serin::kernels
