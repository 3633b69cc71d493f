// resample.cc: the taps of a Resize, as resample.h says.

#include "kernels/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "kernels/functors.h"
#include "kernels/sampling.h"

namespace serin::kernels {

namespace {

template <class E, size_t N>
bool find(const std::array<std::pair<std::string_view, E>, N>& names, const std::string& name, E& value) {
  const auto found = std::ranges::find(names, name, &std::pair<std::string_view, E>::first);
  if (found == names.end()) return false;
  value = found->second;
  return true;
}

using Mode = ResampleMode;
using Coordinates = ResampleCoordinates;
using Nearest = ResampleNearest;

constexpr std::array<std::pair<std::string_view, Mode>, 3> kModes = {
    {{"nearest", Mode::kNearest}, {"linear", Mode::kLinear}, {"cubic", Mode::kCubic}}};
constexpr std::array<std::pair<std::string_view, Coordinates>, 7> kCoordinates = {
    {{"half_pixel", Coordinates::kHalfPixel},
     {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
     {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
     {"align_corners", Coordinates::kAlignCorners},
     {"asymmetric", Coordinates::kAsymmetric},
     {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNearest},
     {"tf_crop_and_resize", Coordinates::kTfCropAndResize}}};
constexpr std::array<std::pair<std::string_view, Nearest>, 5> kNearest = {{{"round_prefer_floor", Nearest::kRoundPreferFloor},
                                                                           {"round_prefer_ceil", Nearest::kRoundPreferCeil},
                                                                           {"floor", Nearest::kFloor},
                                                                           {"ceil", Nearest::kCeil},
                                                                           {"simple", Nearest::kSimple}}};

/// The input coordinate that output `x` shows.
double original(const ResampleRule& rule, const ResampleAxis& axis, int64_t x) {
  const auto at = static_cast<double>(x), input = static_cast<double>(axis.input), output = static_cast<double>(axis.output);
  const double length = axis.scale * input;  // of the output, before it was rounded
  // Coordinates that are whole numbers must come out as such. Where the scale is the quotient of the sizes they do in double; a scale that somebody wrote
  // (0.6) is a rounded float, and dividing in float rounds that away again.
  const bool exact = axis.scale == output / input;
  const auto scaled = [&](double value) {
    return exact ? value * input / output : static_cast<double>(static_cast<float>(value) / static_cast<float>(axis.scale));
  };
  switch (rule.coordinates) {
    case Coordinates::kAlignCorners: return length == 1 ? 0 : at * (input - 1) / (length - 1);
    case Coordinates::kAsymmetric: return scaled(at);
    case Coordinates::kTfHalfPixelForNearest: return scaled(at + 0.5);
    case Coordinates::kPytorchHalfPixel: return axis.output == 1 ? 0 : scaled(at + 0.5) - 0.5;
    case Coordinates::kHalfPixelSymmetric: return input / 2 * (1 - output / length) + scaled(at + 0.5) - 0.5;
    case Coordinates::kTfCropAndResize: {
      const double span = (axis.roi_end - axis.roi_begin) * (input - 1);
      return axis.roi_begin * (input - 1) + (output == 1 ? span / 2 : at * span / (output - 1));
    }
    case Coordinates::kHalfPixel: break;
  }
  return scaled(at + 0.5) - 0.5;
}

double round_nearest(Nearest how, double x, bool shrinks) {
  switch (how) {
    case Nearest::kRoundPreferFloor: return std::ceil(x - 0.5);
    case Nearest::kRoundPreferCeil: return std::floor(x + 0.5);
    case Nearest::kFloor: return std::floor(x);
    case Nearest::kCeil: return std::ceil(x);
    case Nearest::kSimple: break;
  }
  return shrinks ? std::ceil(x) : std::floor(x);
}

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

/// The kernel around a coordinate, stretched by 1 / shrink, as taps from floor(coordinate) + first on.
struct Footprint {
  double shrink;
  int64_t first, count;
  Footprint(const ResampleRule& rule, const ResampleAxis& axis) : shrink(rule.antialias ? std::min(axis.scale, 1.0) : 1.0) {
    const double radius = rule.mode == Mode::kCubic ? 2 : 1;
    const double most = 4.0 * static_cast<double>(axis.input) + 4;  // wider than the input on both sides, whatever the scale says
    first = static_cast<int64_t>(std::floor(-std::min(radius / shrink, most))) + 1;
    count = 2 - 2 * first;
  }
};

void add_weighted(const ResampleRule& rule, const ResampleAxis& axis, const Footprint& footprint, double x, ResampleTaps& taps) {
  const double base = std::floor(x);
  std::vector<double> weights(static_cast<size_t>(footprint.count));
  double sum = 0;
  for (int64_t i = 0; i < footprint.count; ++i) {
    const double at = base + static_cast<double>(footprint.first + i);
    const double distance = (at - x) * footprint.shrink;
    double& weight = weights[static_cast<size_t>(i)];
    weight = rule.mode == Mode::kCubic ? keys(distance, rule.cubic_a) : triangle(distance);
    if (rule.exclude_outside && (at < 0 || at > static_cast<double>(axis.input - 1))) weight = 0;
    sum += weight;
    taps.index.push_back(static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(axis.input - 1))));
  }
  const bool normalise = (rule.exclude_outside || rule.antialias) && sum != 0;
  for (const double weight : weights) taps.weight.push_back(normalise ? weight / sum : weight);
}

}  // namespace

std::optional<ResampleRule> resample_rule(const Attributes& attributes, std::string& why) {
  ResampleRule rule;
  const auto read = [&](std::string_view key, std::string_view fallback, const auto& names, auto& value) {
    const std::string name = attributes.text(key, fallback);
    if (find(names, name, value)) return true;
    why.assign(key).append(" '").append(name).append("' is unknown");
    return false;
  };
  if (!read("mode", "nearest", kModes, rule.mode)) return std::nullopt;
  if (!read("coordinate_transformation_mode", "half_pixel", kCoordinates, rule.coordinates)) return std::nullopt;
  if (!read("nearest_mode", "round_prefer_floor", kNearest, rule.nearest)) return std::nullopt;
  rule.cubic_a = attributes.number("cubic_coeff_a", -0.75);
  rule.extrapolation = attributes.number("extrapolation_value", 0);
  rule.exclude_outside = attributes.integer("exclude_outside", 0) != 0;
  rule.antialias = attributes.integer("antialias", 0) != 0;
  return rule;
}

ResampleTaps resample_taps(const ResampleRule& rule, const ResampleAxis& axis) {
  ResampleTaps taps;
  const auto last = static_cast<double>(axis.input - 1);
  const Footprint footprint(rule, axis);
  taps.count = rule.mode == Mode::kNearest ? 1 : footprint.count;
  taps.index.reserve(static_cast<size_t>(axis.output * taps.count));
  for (int64_t i = 0; i < axis.output; ++i) {
    double x = original(rule, axis, i);
    if (rule.coordinates == Coordinates::kTfCropAndResize) taps.outside.push_back(!(x >= 0 && x <= last));
    x = x != x ? 0 : std::clamp(x, -2.0, last + 2);  // further out only edges are seen
    if (rule.mode == Mode::kNearest) {
      taps.index.push_back(static_cast<int64_t>(std::clamp(round_nearest(rule.nearest, x, axis.scale < 1), 0.0, last)));
    } else {
      add_weighted(rule, axis, footprint, x, taps);
    }
  }
  return taps;
}

namespace {

/// Element i of a floating point operand.
double number_at(const TensorView& x, int64_t i) {
  switch (x.dtype) {
    case DType::kFloat32: return x.as<const float>()[i];
    case DType::kFloat64: return x.as<const double>()[i];
    case DType::kFloat16: return to_float(x.as<const Half>()[i]);
    case DType::kBFloat16: return to_float(x.as<const BFloat16>()[i]);
    case DType::kInt64: return static_cast<double>(x.as<const int64_t>()[i]);
    default: return 1;
  }
}

bool has_elements(const TensorView* x) { return x && x->elements() != 0; }

}  // namespace

std::optional<std::vector<ResampleAxis>> resample_axes(const Attributes& attributes, const Shape& x, const Shape& y, const TensorView* roi,
                                                       const TensorView* scales, const TensorView* sizes, std::string& why) {
  std::vector<ResampleAxis> axes(x.rank());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = {x[i], y[i]};
  std::vector<int64_t> which = attributes.integers("axes");
  if (!attributes.has("axes")) {
    for (size_t i = 0; i < x.rank(); ++i) which.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<int64_t>(which.size());
  const TensorView* given = has_elements(scales) ? scales : sizes;
  if (!has_elements(given) || given->elements() != count) {
    why = "scales or sizes must have " + std::to_string(count) + " elements";
    return std::nullopt;
  }
  if (has_elements(roi) && roi->elements() != 2 * count) {
    why = "roi has " + std::to_string(roi->elements()) + " elements for " + std::to_string(count) + " axes";
    return std::nullopt;
  }
  const std::string policy = attributes.text("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = which[static_cast<size_t>(i)];
    const auto axis = static_cast<size_t>(number < 0 ? number + static_cast<int64_t>(x.rank()) : number);
    if (axis >= axes.size()) {
      why = "axis " + std::to_string(number) + " is out of range";
      return std::nullopt;
    }
    ResampleAxis& at = axes[axis];
    at.scale = given == scales ? number_at(*given, i) : number_at(*given, i) / static_cast<double>(at.input);
    if (at.output != 0 && (at.input == 0 || !(at.scale > 0 && std::isfinite(at.scale)))) {
      why = "axis " + std::to_string(axis) + " of size " + std::to_string(at.input) + " cannot become " + std::to_string(at.output);
      return std::nullopt;
    }
    common = i == 0 ? at.scale : policy == "not_larger" ? std::min(common, at.scale) : std::max(common, at.scale);
    if (has_elements(roi)) at.roi_begin = number_at(*roi, i), at.roi_end = number_at(*roi, i + count);
  }
  if (given == scales || policy == "stretch") return axes;
  for (const int64_t number : which)
    axes[static_cast<size_t>(number < 0 ? number + static_cast<int64_t>(x.rank()) : number)].scale = common;
  return axes;
}

}  // namespace serin::kernels
