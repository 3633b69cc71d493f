// text_boxes.cc: contours of the map above its threshold, a rectangle around each, the mean within it, and the rectangle made larger.
//
// DB maps are trained on texts that were made smaller ("Real-time Scene Text Detection with Differentiable Binarization", 2020), hence the
// growth at the end. Numbers are floats and are rounded or truncated where PaddleOCR's arrays are, so that corners are equal.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <polyclipping/clipper.hpp>

#include "runtime/steps/vision/opencv/parts.h"

namespace serin::steps::vision {
namespace {

constexpr float kLeastSide = 3;            // of a contour's rectangle, and of an answer
constexpr int64_t kMostRuns = 1 << 18;     // each may begin a contour, for which OpenCV allocates memory
constexpr int64_t kMostTimesCovered = 16;  // bounds the time of nested contours
constexpr int64_t kAlwaysCovered = 1 << 22;

Error noise(std::string_view what) { return {Code::kTooLarge, fmt::format("the probability map is noise, not text: {}", what)}; }

struct Rectangle {
  Quad corners;
  float least_side = 0;
};

/// The corners of the smallest rectangle, from the upper left one clockwise.
Rectangle rectangle_around(const cv::Mat& points) {
  const cv::RotatedRect found = cv::minAreaRect(points);
  std::array<cv::Point2f, 4> by_x;
  found.points(by_x.data());
  std::ranges::stable_sort(by_x, {}, &cv::Point2f::x);
  if (!(by_x[1].y > by_x[0].y)) std::swap(by_x[0], by_x[1]);  // left: the upper one, the lower one
  if (!(by_x[3].y > by_x[2].y)) std::swap(by_x[2], by_x[3]);
  const auto point = [&](size_t i) { return Point{by_x[i].x, by_x[i].y}; };
  return {{point(0), point(2), point(3), point(1)}, std::min(found.size.width, found.size.height)};
}

/// Means of a map within polygons.
class Scores {
 public:
  explicit Scores(const cv::Mat& map) : map_(map), left_(kMostTimesCovered * map.rows * map.cols + kAlwaysCovered) {}

  /// Nothing: there were too many pixels in all polygons.
  std::optional<float> within(const Quad& corners) {
    const auto [left, right] = std::ranges::minmax(corners, {}, &Point::x);
    const auto [top, bottom] = std::ranges::minmax(corners, {}, &Point::y);
    const cv::Rect place = clipped(std::floor(left.x), std::floor(top.y), std::ceil(right.x), std::ceil(bottom.y));
    std::vector<cv::Point> polygon;
    for (const Point& point : corners)
      polygon.emplace_back(static_cast<int>(point.x - static_cast<float>(place.x)),
                           static_cast<int>(point.y - static_cast<float>(place.y)));
    return within(polygon, place);
  }

  std::optional<float> within(const std::vector<cv::Point>& contour) {
    const cv::Rect around = cv::boundingRect(contour);
    std::vector<cv::Point> polygon = contour;
    for (cv::Point& point : polygon) point -= around.tl();
    return within(polygon, around);
  }

 private:
  cv::Rect clipped(float left, float top, float right, float bottom) const {
    const auto within_map = [](float value, int size) { return static_cast<int>(std::clamp(value, 0.F, static_cast<float>(size - 1))); };
    const cv::Point first(within_map(left, map_.cols), within_map(top, map_.rows));
    const cv::Point last(within_map(right, map_.cols), within_map(bottom, map_.rows));
    return {first, last + cv::Point(1, 1)};
  }

  std::optional<float> within(const std::vector<cv::Point>& polygon, const cv::Rect& place) {
    left_ -= int64_t{place.width} * place.height;
    if (left_ < 0) return std::nullopt;
    mask_.create(place.size(), CV_8UC1);
    mask_.setTo(0);
    cv::fillPoly(mask_, std::vector<std::vector<cv::Point>>{polygon}, 1);
    return static_cast<float>(cv::mean(map_(place), mask_)[0]);
  }

  cv::Mat map_, mask_;
  int64_t left_;  // pixels
};

/// The polygon around the corners at a distance of area x ratio / circumference, with round corners; nothing: it fell apart or vanished.
std::optional<cv::Mat> grown(const Quad& corners, float ratio) {
  double doubled = 0, around = 0;
  ClipperLib::Path path;
  for (size_t i = 0; i < 4; ++i) {
    const Point& a = corners[i];
    const Point& b = corners[(i + 1) % 4];
    doubled += static_cast<double>(a.x) * b.y - static_cast<double>(b.x) * a.y;
    around += std::hypot(static_cast<double>(b.x) - a.x, static_cast<double>(b.y) - a.y);
    path.emplace_back(static_cast<ClipperLib::cInt>(a.x), static_cast<ClipperLib::cInt>(a.y));
  }
  if (!(around > 0)) return std::nullopt;
  ClipperLib::ClipperOffset offset;
  offset.AddPath(path, ClipperLib::jtRound, ClipperLib::etClosedPolygon);
  ClipperLib::Paths made;
  offset.Execute(made, std::abs(doubled) / 2 * ratio / around);
  if (made.size() != 1 || made[0].empty()) return std::nullopt;
  cv::Mat points(static_cast<int>(made[0].size()), 1, CV_32SC2);
  for (int i = 0; i < points.rows; ++i) {
    const ClipperLib::IntPoint& point = made[0][static_cast<size_t>(i)];
    points.at<cv::Point>(i) = {static_cast<int>(point.X), static_cast<int>(point.Y)};
  }
  return points;
}

/// Whole pixels of the source; its far edges are still allowed.
Point in_source(const Point& point, Size map, Size source) {
  const auto place = [](float value, int from, int to) {
    return std::clamp(std::nearbyint(value / static_cast<float>(from) * static_cast<float>(to)), 0.F, static_cast<float>(to));
  };
  return {place(point.x, map.width, source.width), place(point.y, map.height, source.height)};
}

/// By the sums and differences of the coordinates, the first one of equal ones (order_points_clockwise).
Quad clockwise(const Quad& corners) {
  const auto sum = [](const Point& point) { return point.x + point.y; };
  const auto difference = [](const Point& point) { return point.y - point.x; };
  const auto first = std::ranges::min_element(corners, {}, sum), third = std::ranges::max_element(corners, {}, sum);
  std::vector<Point> others;
  for (auto corner = corners.begin(); corner != corners.end(); ++corner)
    if (corner != first && corner != third) others.push_back(*corner);
  return {*first, *std::ranges::min_element(others, {}, difference), *third, *std::ranges::max_element(others, {}, difference)};
}

/// What the caller of DBPostProcess does: nothing for a box with a side of at most 3 pixels (filter_tag_det_res).
std::optional<Quad> answer_of(const Quad& of_map, Size map, Size source) {
  Quad corners;
  std::ranges::transform(of_map, corners.begin(), [&](const Point& point) { return in_source(point, map, source); });
  corners = clockwise(corners);
  for (Point& point : corners) {
    point.x = std::min(point.x, static_cast<float>(source.width - 1));
    point.y = std::min(point.y, static_cast<float>(source.height - 1));
  }
  const auto side = [&](const Point& a, const Point& b) {
    return static_cast<int>(std::sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)));
  };
  if (side(corners[0], corners[1]) <= kLeastSide || side(corners[0], corners[3]) <= kLeastSide) return std::nullopt;
  return corners;
}

Status check(std::span<const float> map, Size size, Size source, const TextBoxOptions& options) {
  for (const auto& [name, value] : {std::pair("map", size), std::pair("source", source)})
    if (std::min(value.width, value.height) < 1 || std::max(value.width, value.height) > kLargestSide)
      return invalid(
          fmt::format("text detection: the {} is {} x {}; sides are from 1 to {}", name, value.width, value.height, kLargestSide));
  if (map.size() != static_cast<size_t>(size.width) * static_cast<size_t>(size.height))
    return invalid(fmt::format("text detection: the map of {} x {} has {} values", size.width, size.height, map.size()));
  if (!std::isfinite(options.unclip_ratio) || options.unclip_ratio < 0 || options.unclip_ratio > 100)
    return invalid(fmt::format("text detection: unclip_ratio is {}; it is from 0 to 100", options.unclip_ratio));
  return {};
}

/// 255 where the map is above the threshold.
Result<cv::Mat> above(const cv::Mat& map, const TextBoxOptions& options) {
  cv::Mat bits(map.size(), CV_8UC1);
  const float threshold = options.threshold;
  for (int y = 0; y < map.rows; ++y) {
    const float* const from = map.ptr<float>(y);
    uint8_t* const to = bits.ptr<uint8_t>(y);
    int infinite = 0;
    for (int x = 0; x < map.cols; ++x) {
      infinite |= static_cast<int>(!(std::abs(from[x]) <= std::numeric_limits<float>::max()));
      to[x] = from[x] > threshold ? 255 : 0;
    }
    if (infinite != 0) return invalid(fmt::format("text detection: row {} of the map has a value that is not finite", y));
  }
  if (options.dilate) cv::dilate(bits, bits, cv::Mat::ones(2, 2, CV_8UC1));
  int64_t runs = 0;
  for (int y = 0; y < bits.rows; ++y) {
    const uint8_t* const row = bits.ptr<uint8_t>(y);
    int begun = row[0] & 1;
    for (int x = 1; x < bits.cols; ++x) begun += row[x] & ~row[x - 1] & 1;
    runs += begun;
  }
  if (runs > kMostRuns)
    return noise(fmt::format("its rows have {} runs of pixels above {}, {} are the limit", runs, options.threshold, kMostRuns));
  return bits;
}

/// What one contour becomes, in pixels of the map.
struct Candidate {
  Quad corners;
  float score = 0;
};

Result<std::optional<Candidate>> candidate_of(const std::vector<cv::Point>& contour, Scores& scores, const TextBoxOptions& options) {
  const Rectangle small = rectangle_around(cv::Mat(contour));
  if (small.least_side < kLeastSide) return std::optional<Candidate>();
  const auto score = options.slow_score ? scores.within(contour) : scores.within(small.corners);
  if (!score) return noise(fmt::format("its contours cover it more than {} times", kMostTimesCovered));
  if (options.box_threshold > *score) return std::optional<Candidate>();
  const auto polygon = grown(small.corners, options.unclip_ratio);
  if (!polygon) return std::optional<Candidate>();
  const Rectangle large = rectangle_around(*polygon);
  if (large.least_side < kLeastSide + 2) return std::optional<Candidate>();
  return std::optional(Candidate{large.corners, *score});
}

}  // namespace

Result<std::vector<TextBox>> find_text_boxes(std::span<const float> map, Size map_size, Size source, const TextBoxOptions& options) {
  SERIN_CHECK(check(map, map_size, source, options));
  const cv::Mat values(map_size.height, map_size.width, CV_32FC1, const_cast<float*>(map.data()));  // which nothing here writes to
  SERIN_TRY(const cv::Mat bits, above(values, options));
  std::vector<std::vector<cv::Point>> contours;
  cv::findContours(bits, contours, cv::RETR_LIST, cv::CHAIN_APPROX_SIMPLE);
  if (contours.size() > static_cast<size_t>(std::max(options.most, 0))) contours.resize(static_cast<size_t>(std::max(options.most, 0)));

  Scores scores(values);
  std::vector<TextBox> boxes;
  for (const std::vector<cv::Point>& contour : contours) {
    SERIN_TRY(const std::optional<Candidate> found, candidate_of(contour, scores, options));
    if (!found) continue;
    if (const auto corners = answer_of(found->corners, map_size, source)) boxes.push_back({*corners, found->score});
  }
  return boxes;
}

}  // namespace serin::steps::vision
