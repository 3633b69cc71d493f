// grid_sample.cc: the coordinates of GridSample (grid_sample.h).

#include "kernels/grid_sample.h"

#include <algorithm>
#include <cmath>

namespace serin::kernels {

namespace {

/// x mirrored at low and high until it lies between them.
double reflect(double x, double low, double high) {
  const double span = high - low;
  if (span <= 0) return low;
  const double distance = x < low ? low - x : x > high ? x - high : -1;
  if (distance < 0) return x;
  const double turns = std::floor(distance / span), rest = distance - turns * span;
  const bool from_low = (x < low) == (std::fmod(turns, 2) == 0);
  return from_low ? low + rest : high - rest;
}

double keys(double x) {  // Keys' cubic kernel with a = -0.75
  constexpr double kA = -0.75;
  x = std::fabs(x);
  if (x <= 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * kA - 4 * kA : 0;
}

}  // namespace

std::optional<GridRule> grid_rule(const Attributes& attributes, std::string& why) {
  const std::string mode = attributes.text("mode", "linear"), padding = attributes.text("padding_mode", "zeros");
  if (mode != "nearest" && mode != "linear" && mode != "cubic") {
    why = "mode '" + mode + "' is unknown";
    return std::nullopt;
  }
  if (padding != "zeros" && padding != "border" && padding != "reflection") {
    why = "padding_mode '" + padding + "' is unknown";
    return std::nullopt;
  }
  return GridRule{.mode = mode == "nearest"  ? GridMode::kNearest
                          : mode == "linear" ? GridMode::kLinear
                                             : GridMode::kCubic,
                  .padding = padding == "zeros"    ? GridPadding::kZeros
                             : padding == "border" ? GridPadding::kBorder
                                                   : GridPadding::kReflection,
                  .align_corners = attributes.integer("align_corners", 0) != 0};
}

GridAxis::GridAxis(const GridRule& rule, int64_t size)
    : rule_(rule),
      size_(size),
      low_(rule.align_corners ? 0 : -0.5),
      high_(rule.align_corners ? static_cast<double>(size - 1) : static_cast<double>(size) - 0.5) {}

double GridAxis::coordinate(double normalised) const {
  const auto size = static_cast<double>(size_);
  double x = rule_.align_corners ? (normalised + 1) / 2 * (size - 1) : ((normalised + 1) * size - 1) / 2;
  if (x != x) return -4;
  if (rule_.mode == GridMode::kNearest) x = std::nearbyint(x);
  if (x < low_ || x > high_) {
    if (rule_.padding == GridPadding::kBorder) x = std::clamp(x, 0.0, size - 1);
    if (rule_.padding == GridPadding::kReflection) x = reflect(x, low_, high_);
  }
  return std::clamp(x, -4.0, size + 4);  // further out there is nothing to see
}

GridTaps GridAxis::at(double normalised) const {
  const double x = coordinate(normalised);
  auto whole = static_cast<int64_t>(x);
  if (static_cast<double>(whole) > x) --whole;
  const double part = x - static_cast<double>(whole);
  const int64_t first = rule_.mode == GridMode::kCubic ? whole - 1 : whole, end = first + rule_.most_taps();
  GridTaps taps;
  for (int64_t i = first; i < end; ++i) {
    int64_t index = i;
    if (index < 0 || index >= size_) {
      if (rule_.padding == GridPadding::kZeros) continue;
      if (rule_.padding == GridPadding::kReflection) index = static_cast<int64_t>(reflect(static_cast<double>(index), low_, high_));
      index = std::clamp<int64_t>(index, 0, size_ - 1);
    }
    taps.taps[static_cast<size_t>(taps.count++)] = {index, weight(part, i - whole)};
  }
  return taps;
}

/// Of the element `i` after that before x, from which x is `part` away.
double GridAxis::weight(double part, int64_t i) const {
  switch (rule_.mode) {
    case GridMode::kNearest: return 1;
    case GridMode::kLinear: return i == 0 ? 1 - part : part;
    case GridMode::kCubic: break;
  }
  return keys(part - static_cast<double>(i));
}

}  // namespace serin::kernels
