// resize_cv2.cc: linear with weights of 11 bits after the point, rounded twice as OpenCV's vector code does; area with sums in float.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/steps/resize.h"

namespace serin::steps {
namespace {

constexpr int kOne = 2048;

uint8_t to_byte(float value) { return static_cast<uint8_t>(std::clamp(std::lrintf(value), 0L, 255L)); }

/// Two neighbours and their weights.
struct Pair {
  int first, second;
  int32_t weight[2];
};

Pair pair_at(int first, float fraction, int last, bool clamp_weights) {
  if (clamp_weights && first < 0) first = 0, fraction = 0;
  if (clamp_weights && first >= last) first = last, fraction = 0;
  return {std::clamp(first, 0, last),
          std::clamp(first + 1, 0, last),
          {static_cast<int32_t>(std::lrintf((1.F - fraction) * kOne)), static_cast<int32_t>(std::lrintf(fraction * kOne))}};
}

/// `area`: the rule of INTER_AREA where it enlarges.
std::vector<Pair> pairs_of(int from, int to, bool area, bool clamp_weights) {
  const double inverse = static_cast<double>(to) / from, scale = 1. / inverse;
  std::vector<Pair> pairs;
  for (int i = 0; i < to; ++i) {
    if (area) {
      const int first = static_cast<int>(std::floor(i * scale));
      const auto beyond = static_cast<float>((i + 1) - (first + 1) * inverse);
      pairs.push_back(pair_at(first, beyond <= 0 ? 0.F : beyond - std::floor(beyond), from - 1, clamp_weights));
    } else {
      const auto place = static_cast<float>((i + 0.5) * scale - 0.5);
      const float first = std::floor(place);
      pairs.push_back(pair_at(static_cast<int>(first), place - first, from - 1, clamp_weights));
    }
  }
  return pairs;
}

Image resize_linear(const Image& image, int width, int height, bool area) {
  const std::vector<Pair> columns = pairs_of(image.width, width, area, true), rows = pairs_of(image.height, height, area, false);
  const int channels = image.channels;
  const auto line = static_cast<size_t>(width) * static_cast<size_t>(channels);
  Image made = blank_image(width, height, channels);
  std::vector<int32_t> kept[2] = {std::vector<int32_t>(line), std::vector<int32_t>(line)};
  int held[2] = {-1, -1};  // the rows that `kept` was made of
  const auto line_of = [&](int y) -> const std::vector<int32_t>& {
    const size_t slot = static_cast<size_t>(y) & 1;
    if (held[slot] == y) return kept[slot];
    held[slot] = y;
    int32_t* to = kept[slot].data();
    for (const Pair& pair : columns) {
      const uint8_t* const first = image.at(pair.first, y);
      const uint8_t* const second = image.at(pair.second, y);
      for (int c = 0; c < channels; ++c) *to++ = first[c] * pair.weight[0] + second[c] * pair.weight[1];
    }
    return kept[slot];
  };
  for (int y = 0; y < height; ++y) {
    const Pair& pair = rows[static_cast<size_t>(y)];
    const std::vector<int32_t>& above = line_of(pair.first);
    const std::vector<int32_t>& below = line_of(pair.second);
    uint8_t* const to = made.row(y);
    for (size_t i = 0; i < line; ++i) {
      const int32_t sum = ((pair.weight[0] * (above[i] >> 4)) >> 16) + ((pair.weight[1] * (below[i] >> 4)) >> 16);
      to[i] = static_cast<uint8_t>(std::clamp((sum + 2) >> 2, 0, 255));
    }
  }
  return made;
}

/// Whole blocks of pixels: their mean.
Image mean_of_blocks(const Image& image, int width, int height) {
  const int across = image.width / width, down = image.height / height, channels = image.channels;
  Image made = blank_image(width, height, channels);
  const float share = 1.F / static_cast<float>(across * down);
  for (int y = 0; y < height; ++y) {
    uint8_t* to = made.row(y);
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c, ++to) {
        int sum = 0;
        for (int j = 0; j < down; ++j)
          for (int i = 0; i < across; ++i) sum += image.at(x * across + i, y * down + j)[c];
        *to = across == 2 && down == 2 ? static_cast<uint8_t>((sum + 2) >> 2) : to_byte(static_cast<float>(sum) * share);
      }
    }
  }
  return made;
}

/// A pixel below a result, and the share of the result that it covers.
struct Share {
  int to, from;
  float part;
};

std::vector<Share> shares_of(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  std::vector<Share> shares;
  for (int i = 0; i < to; ++i) {
    const double begin = i * scale, end = begin + scale, cell = std::min(scale, from - begin);
    int first = static_cast<int>(std::ceil(begin)), last = static_cast<int>(std::floor(end));
    last = std::min(last, from - 1);
    first = std::min(first, last);
    if (first - begin > 1e-3) shares.push_back({i, first - 1, static_cast<float>((first - begin) / cell)});
    for (int x = first; x < last; ++x) shares.push_back({i, x, static_cast<float>(1.0 / cell)});
    if (end - last > 1e-3) shares.push_back({i, last, static_cast<float>(std::min(std::min(end - last, 1.), cell) / cell)});
  }
  return shares;
}

Image resize_area(const Image& image, int width, int height) {
  const std::vector<Share> columns = shares_of(image.width, width), rows = shares_of(image.height, height);
  const int channels = image.channels;
  const auto line = static_cast<size_t>(width) * static_cast<size_t>(channels);
  Image made = blank_image(width, height, channels);
  std::vector<float> sums(line), parts(line);
  int current = 0;
  const auto finish = [&](int y) {
    std::ranges::transform(sums, made.row(y), to_byte);
    std::ranges::fill(sums, 0.F);
  };
  for (const Share& row : rows) {
    if (row.to != current) finish(std::exchange(current, row.to));
    std::ranges::fill(parts, 0.F);
    for (const Share& column : columns)
      for (int c = 0; c < channels; ++c)
        parts[static_cast<size_t>(column.to) * static_cast<size_t>(channels) + static_cast<size_t>(c)] +=
            static_cast<float>(image.at(column.from, row.from)[c]) * column.part;
    for (size_t i = 0; i < line; ++i) sums[i] += row.part * parts[i];
  }
  finish(current);
  return made;
}

Image nearest_like_cv2(const Image& image, int width, int height) {
  const double across = 1. / (static_cast<double>(width) / image.width), down = 1. / (static_cast<double>(height) / image.height);
  Image made = blank_image(width, height, image.channels);
  const auto channels = static_cast<size_t>(image.channels);
  for (int y = 0; y < height; ++y) {
    const uint8_t* const from = image.row(std::min(static_cast<int>(std::floor(y * down)), image.height - 1));
    uint8_t* to = made.row(y);
    for (int x = 0; x < width; ++x, to += channels)
      std::memcpy(to, from + static_cast<size_t>(std::min(static_cast<int>(std::floor(x * across)), image.width - 1)) * channels, channels);
  }
  return made;
}

}  // namespace

Image resize_like_cv2(const Image& image, int width, int height, Resample rule) {
  if (width == image.width && height == image.height) return image;
  if (rule == Resample::kCvNearest) return nearest_like_cv2(image, width, height);
  const bool blocks = image.width % width == 0 && image.height % height == 0;
  const bool halves = blocks && image.width / width == 2 && image.height / height == 2;
  if (rule == Resample::kCvLinear) return halves ? mean_of_blocks(image, width, height) : resize_linear(image, width, height, false);
  if (width > image.width || height > image.height) return resize_linear(image, width, height, true);
  return blocks ? mean_of_blocks(image, width, height) : resize_area(image, width, height);
}

}  // namespace serin::steps
