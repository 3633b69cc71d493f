// resize_pil.cc: first along the rows, then along the columns, with weights of 22 bits after the point. A pass that changes nothing is left
// out, as Pillow does. Nearest follows a line through the picture instead.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "runtime/steps/resize.h"
#include "runtime/steps/resize_loops.h"

namespace serin::steps {
namespace {

double sinc(double x) { return x == 0 ? 1 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi); }

double weight(Resample rule, double x) {
  const double distance = std::abs(x);
  switch (rule) {
    case Resample::kPilBox: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case Resample::kPilBilinear: return distance < 1 ? 1 - distance : 0;
    case Resample::kPilHamming: {
      if (x == 0) return 1;
      const double turn = distance * std::numbers::pi;
      return distance >= 1 ? 0 : std::sin(turn) / turn * (0.54 + 0.46 * std::cos(turn));
    }
    case Resample::kPilBicubic: {
      constexpr double kSharpness = -0.5;
      if (distance < 1) return ((kSharpness + 2) * distance - (kSharpness + 3)) * distance * distance + 1;
      return distance < 2 ? (((distance - 5) * distance + 8) * distance - 4) * kSharpness : 0;
    }
    case Resample::kPilLanczos: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    default: return 0;
  }
}

double support_of(Resample rule) {
  switch (rule) {
    case Resample::kPilBox: return 0.5;
    case Resample::kPilBicubic: return 2;
    case Resample::kPilLanczos: return 3;
    default: return 1;
  }
}

std::vector<Taps> taps_of(int from, int to, Resample rule) {
  const double scale = static_cast<double>(from) / to, stretch = std::max(scale, 1.0), support = support_of(rule) * stretch;
  std::vector<Taps> all(static_cast<size_t>(to));
  std::vector<double> exact;
  for (int i = 0; i < to; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(std::floor(center - support + 0.5)), 0),
              end = std::min(static_cast<int>(std::floor(center + support + 0.5)), from);
    exact.clear();
    double sum = 0;
    for (int x = first; x < end; ++x) {
      exact.push_back(weight(rule, (x - center + 0.5) * (1 / stretch)));
      sum += exact.back();
    }
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = first;
    for (const double each : exact) {
      const double share = sum == 0 ? each : each / sum;
      taps.weights.push_back(static_cast<int32_t>(share * (1 << kTapBits) + (share < 0 ? -0.5 : 0.5)));
    }
  }
  return all;
}

/// Makes columns of the result, of rows from `first` to before `end`.
Image along_rows(const Image& image, std::span<const Taps> taps, int first, int end) {
  Image made = blank_image(static_cast<int>(taps.size()), end - first, image.channels);
  const uint8_t* const memory_end = image.pixels.data() + image.pixels.size();
  for (int y = first; y < end; ++y) resize_loops().across(image.row(y), memory_end, taps, image.channels, made.row(y - first));
  return made;
}

/// Makes rows of the result. `first`: the number of the first row that `image` has.
Image along_columns(const Image& image, std::span<const Taps> taps, int first) {
  Image made = blank_image(image.width, static_cast<int>(taps.size()), image.channels);
  const auto line = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  for (size_t y = 0; y < taps.size(); ++y)
    resize_loops().down(image.row(taps[y].first - first), line, taps[y].weights, line, made.row(static_cast<int>(y)));
  return made;
}

/// Positions are summed up, with the rounding errors that this brings.
std::vector<int> nearest_places(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  std::vector<int> places;
  double at = scale * 0.5;
  for (int i = 0; i < to; ++i, at += scale) places.push_back(std::clamp(static_cast<int>(at), 0, from - 1));
  return places;
}

Image nearest_like_pil(const Image& image, int width, int height) {
  const std::vector<int> columns = nearest_places(image.width, width), rows = nearest_places(image.height, height);
  Image made = blank_image(width, height, image.channels);
  const auto channels = static_cast<size_t>(image.channels);
  for (int y = 0; y < height; ++y) {
    uint8_t* to = made.row(y);
    const uint8_t* const from = image.row(rows[static_cast<size_t>(y)]);
    for (const int column : columns) {
      std::memcpy(to, from + static_cast<size_t>(column) * channels, channels);
      to += channels;
    }
  }
  return made;
}

}  // namespace

Image resize_like_pil(const Image& image, int width, int height, Resample rule, const Window& window) {
  if (rule == Resample::kPilNearest) {
    Image whole = nearest_like_pil(image, width, height);
    return window.width == width && window.height == height ? whole : cut(whole, window);
  }
  const std::vector<Taps> rows = taps_of(image.height, height, rule), columns = taps_of(image.width, width, rule);
  const auto down = std::span(rows).subspan(static_cast<size_t>(window.top), static_cast<size_t>(window.height));
  const auto across = std::span(columns).subspan(static_cast<size_t>(window.left), static_cast<size_t>(window.width));
  if (height == image.height) {
    if (width == image.width) return cut(image, window);
    return along_rows(image, across, window.top, window.top + window.height);
  }
  int first = image.height, end = 0;  // rows that the result is made of
  for (const Taps& each : down) {
    first = std::min(first, each.first);
    end = std::max(end, each.first + static_cast<int>(each.weights.size()));
  }
  if (width == image.width) return along_columns(cut(image, {window.left, first, window.width, end - first}), down, first);
  return along_columns(along_rows(image, across, first, end), down, first);
}

}  // namespace serin::steps
