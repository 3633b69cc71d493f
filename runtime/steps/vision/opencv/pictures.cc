// pictures.cc: crops and cubic resizing.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "runtime/steps/vision/opencv/parts.h"

namespace serin::steps::vision {
namespace {

constexpr int64_t kMostPixels = 64'000'000;
constexpr float kFarOutside = 100'000;

/// A view, which is only read.
cv::Mat view_of(const Image& image) {
  return cv::Mat(image.height, image.width, CV_8UC(image.channels), const_cast<uint8_t*>(image.pixels.data()));
}

cv::Mat view_of(Image& image) { return cv::Mat(image.height, image.width, CV_8UC(image.channels), image.pixels.data()); }

Status check(const Image& image) {
  const bool sides = std::min(image.width, image.height) >= 1 && std::max(image.width, image.height) <= kLargestSide;
  if (!sides || image.channels < 1 || image.channels > 4 || image.pixels.size() != image.offset(0, image.height))
    return invalid(fmt::format("a picture of {} x {} with {} channels: sides are from 1 to {}, channels from 1 to 4", image.width,
                               image.height, image.channels, kLargestSide));
  return {};
}

Status check(Size size) {
  if (std::min(size.width, size.height) < 1 || std::max(size.width, size.height) > kLargestSide)
    return invalid(fmt::format("a picture cannot be made {} x {}: sides are from 1 to {}", size.width, size.height, kLargestSide));
  if (int64_t{size.width} * size.height > kMostPixels)
    return Error{Code::kTooLarge, fmt::format("a picture of {} x {} has more than {} pixels", size.width, size.height, kMostPixels)};
  return {};
}

float longer(const Point& a, const Point& b, const Point& c, const Point& d) {
  const auto length = [](const Point& from, const Point& to) {
    const float x = to.x - from.x, y = to.y - from.y;
    return std::sqrt(x * x + y * y);
  };
  return std::max(length(a, b), length(c, d));
}

}  // namespace

Result<Image> crop(const Image& image, const Quad& corners) {
  SERIN_CHECK(check(image));
  for (const Point& point : corners)
    if (!(std::abs(point.x) <= kFarOutside && std::abs(point.y) <= kFarOutside))
      return invalid(fmt::format("the corner ({}, {}) is far outside of the picture", point.x, point.y));
  const Size size{.width = static_cast<int>(longer(corners[0], corners[1], corners[2], corners[3])),
                  .height = static_cast<int>(longer(corners[0], corners[3], corners[1], corners[2]))};
  if (size.width < 1 || size.height < 1) return invalid("the four corners are closer than a pixel; there is nothing to crop");
  SERIN_CHECK(check(size));
  std::array<cv::Point2f, 4> from;
  std::ranges::transform(corners, from.begin(), [](const Point& point) { return cv::Point2f(point.x, point.y); });
  const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
  const std::array<cv::Point2f, 4> to = {cv::Point2f(0, 0), cv::Point2f(width, 0), cv::Point2f(width, height), cv::Point2f(0, height)};
  const cv::Mat transform = cv::getPerspectiveTransform(from.data(), to.data());

  Image straight = blank_image(size.width, size.height, image.channels);
  cv::Mat view = view_of(straight);
  cv::warpPerspective(view_of(image), view, transform, view.size(), cv::INTER_CUBIC, cv::BORDER_REPLICATE);
  if (static_cast<double>(size.height) / size.width < 1.5) return straight;
  Image turned = blank_image(size.height, size.width, image.channels);
  cv::Mat turned_view = view_of(turned);
  cv::rotate(view, turned_view, cv::ROTATE_90_COUNTERCLOCKWISE);
  return turned;
}

Result<Image> resize_cubic(const Image& image, Size size) {
  SERIN_CHECK(check(image));
  SERIN_CHECK(check(size));
  Image made = blank_image(size.width, size.height, image.channels);
  cv::Mat view = view_of(made);
  cv::resize(view_of(image), view, view.size(), 0, 0, cv::INTER_CUBIC);
  return made;
}

}  // namespace serin::steps::vision
