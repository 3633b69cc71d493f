// text_inputs.cc: sizes are truncated and rounded where PaddleOCR's scripts do; their round() goes to the nearest even number.

#include "runtime/steps/vision/text_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/steps/levels.h"
#include "runtime/steps/resize.h"

namespace serin::steps {
namespace {

constexpr int kLargestTextSide = 1 << 20;
constexpr int64_t kMostInputPixels = 64'000'000;
constexpr int kSmallTogether = 64, kSmallSide = 32;
constexpr int kStrideOfExact = 32;

Status check_input(Size picture, const DetectorInputOptions& options) {
  if (std::min(picture.width, picture.height) < 1 || std::max(picture.width, picture.height) > kLargestTextSide)
    return invalid(
        fmt::format("text detection: a picture of {} x {}; sides are from 1 to {}", picture.width, picture.height, kLargestTextSide));
  const auto sensible = [](int value, int least) { return value >= least && value <= kLargestTextSide; };
  if (options.exact && !(sensible(options.exact->width, 1) && sensible(options.exact->height, 1)))
    return invalid(fmt::format("text detection: an input of {} x {}; sides are from 1 to {}", options.exact->width, options.exact->height,
                               kLargestTextSide));
  if (!sensible(options.side, 1) || !sensible(options.multiple, 1) || !sensible(options.largest, 0))
    return invalid(fmt::format("text detection: limit_side_len {}, multiples of {}, max_side_limit {}: they are from 1 to {}", options.side,
                               options.multiple, options.largest, kLargestTextSide));
  return {};
}

double ratio_of(Size picture, const DetectorInputOptions& options) {
  const int longer = std::max(picture.width, picture.height), shorter = std::min(picture.width, picture.height);
  const double side = options.side;
  switch (options.limit) {
    case SideLimit::kLongest: return longer > options.side ? side / longer : 1;
    case SideLimit::kShortest: return shorter < options.side ? side / shorter : 1;
    case SideLimit::kExact:
    case SideLimit::kExactUp: break;
  }
  return side / longer;
}

struct Sides {
  double width, height;
};

Sides exact_sides(Size picture, const DetectorInputOptions& options) {
  const double width = options.exact->width, height = options.exact->height;
  if (!options.keep_ratio) return {width, height};
  return {std::ceil(picture.width * height / picture.height / kStrideOfExact) * kStrideOfExact, height};
}

Sides limited_sides(Size picture, const DetectorInputOptions& options) {
  const double ratio = ratio_of(picture, options);
  double width = std::trunc(picture.width * ratio), height = std::trunc(picture.height * ratio);
  if (options.largest > 0 && std::max(width, height) > options.largest) {
    const double smaller = options.largest / std::max(width, height);
    width = std::trunc(width * smaller), height = std::trunc(height * smaller);
  }
  const double multiple = options.multiple;
  const auto multiple_of = [&](double side) {
    const double count = options.limit == SideLimit::kExactUp ? std::ceil(side / multiple) : std::nearbyint(side / multiple);
    return std::max(count, 1.) * multiple;
  };
  return {multiple_of(width), multiple_of(height)};
}

Image with_black_border(const Image& image) {
  Image made = blank_image(std::max(image.width, kSmallSide), std::max(image.height, kSmallSide), image.channels);
  for (int y = 0; y < image.height; ++y)
    std::memcpy(made.row(y), image.row(y), static_cast<size_t>(image.width) * static_cast<size_t>(image.channels));
  return made;
}

Status check_recogniser(const RecogniserOptions& options) {
  if (options.height < 1 || options.height > 4096 || options.width < 1 || options.largest_width < options.width ||
      options.largest_width > 1 << 16)
    return invalid(
        fmt::format("text recognition: an input {} high and from {} to {} wide", options.height, options.width, options.largest_width));
  return {};
}

}  // namespace

Result<Size> detector_input_size(Size picture, const DetectorInputOptions& options) {
  SERIN_CHECK(check_input(picture, options));
  const auto [width, height] = options.exact ? exact_sides(picture, options) : limited_sides(picture, options);
  if (width * height > kMostInputPixels)
    return Error{Code::kTooLarge, fmt::format("text detection: the input of a picture of {} x {} would have more than {} pixels",
                                              picture.width, picture.height, kMostInputPixels)};
  return Size{static_cast<int>(width), static_cast<int>(height)};
}

Result<Image> detector_input(const Image& image, const DetectorInputOptions& options) {
  SERIN_CHECK(check_input({image.width, image.height}, options));
  if (image.width + image.height < kSmallTogether) {
    const Image larger = with_black_border(image);
    SERIN_TRY(const Size size, detector_input_size({larger.width, larger.height}, options));
    return resize(larger, size.width, size.height, Resample::kCvLinear);
  }
  SERIN_TRY(const Size size, detector_input_size({image.width, image.height}, options));
  return resize(image, size.width, size.height, Resample::kCvLinear);
}

Result<int> recogniser_width(std::span<const Size> pictures, const RecogniserOptions& options) {
  SERIN_CHECK(check_recogniser(options));
  double widest = static_cast<double>(options.width) / options.height;
  for (const Size& picture : pictures) {
    if (picture.width < 1 || picture.height < 1)
      return invalid(fmt::format("text recognition: a picture of {} x {}", picture.width, picture.height));
    widest = std::max(widest, static_cast<double>(picture.width) / picture.height);
  }
  return static_cast<int>(std::min(options.height * widest, static_cast<double>(options.largest_width)));
}

Status write_recogniser_input(const Image& image, int width, const RecogniserOptions& options, std::span<float> out) {
  SERIN_CHECK(check_recogniser(options));
  if (image.width < 1 || image.height < 1 || width < 1 || width > options.largest_width)
    return invalid(fmt::format("text recognition: a picture of {} x {} for an input {} wide", image.width, image.height, width));
  const auto channels = static_cast<size_t>(image.channels), line = static_cast<size_t>(width);
  const size_t plane = line * static_cast<size_t>(options.height);
  if (out.size() != channels * plane)
    return invalid(
        fmt::format("text recognition: an input of {} x {} x {} does not fit {} values", channels, options.height, width, out.size()));

  const double wanted = std::ceil(options.height * (static_cast<double>(image.width) / image.height));
  const Image scaled =
      resize(image, std::max(static_cast<int>(std::min(wanted, static_cast<double>(width))), 1), options.height, Resample::kCvLinear);
  const auto levels = make_levels<float>(channels, [](float level, size_t) { return (level / 255.F - 0.5F) / 0.5F; });
  write_levels(scaled, width, options.height, levels, /*channels_first=*/true, out.data());
  return {};
}

}  // namespace serin::steps
