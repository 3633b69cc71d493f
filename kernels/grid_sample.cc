// grid_sample.cc: the coordinates of GridSample (grid_sample.h).

#include "kernels/grid_sample.h"

namespace serin::kernels {

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

namespace {

template <int kTaps>
GridTaps find(const SampledAxis<double>& axis, double normalised) {
  int64_t index[kTaps];
  double weight[kTaps];
  axis.find<kTaps>(normalised, index, weight);
  GridTaps taps;
  for (int k = 0; k < kTaps; ++k) {
    if (index[k] >= 0) taps.taps[static_cast<size_t>(taps.count++)] = {index[k], weight[k]};
  }
  return taps;
}

}  // namespace

GridTaps GridAxis::at(double normalised) const {
  const SampledAxis<double> axis{rule_, size_};
  switch (rule_.mode) {
    case GridMode::kNearest: return find<1>(axis, normalised);
    case GridMode::kLinear: return find<2>(axis, normalised);
    case GridMode::kCubic: break;
  }
  return find<4>(axis, normalised);
}

}  // namespace serin::kernels
