// text_boxes.cc: opens libserin_vision.so. OpenCV is a plugin because `serin` starts in milliseconds, and most models need none of it.
//
// The plugin is never closed: OpenCV keeps objects for each thread, which end after any call.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/plugin_file.h"
#include "runtime/steps/vision/opencv/plugin.h"
#include "runtime/steps/vision/text_boxes.h"

namespace serin::steps {
namespace {

constexpr const char* kVisionFile = "libserin_vision.so";
constexpr float kSameLine = 10;  // pixels

}  // namespace

void sort_as_read(std::vector<TextBox>& boxes) {
  std::ranges::stable_sort(boxes, {}, [](const TextBox& box) { return std::pair(box.points[0].y, box.points[0].x); });
  for (size_t i = 1; i < boxes.size(); ++i) {
    for (size_t j = i; j > 0; --j) {
      const Point& upper = boxes[j - 1].points[0];
      const Point& lower = boxes[j].points[0];
      if (!(std::abs(lower.y - upper.y) < kSameLine && lower.x < upper.x)) break;
      std::swap(boxes[j - 1], boxes[j]);
    }
  }
}

Result<Vision> Vision::open(const std::string& path) {
  const auto plugin = std::make_shared<vision::Plugin>();
  SERIN_CHECK(open_plugin({.file = kVisionFile,
                           .entry = vision::kPluginEntry,
                           .missing = fmt::format("text boxes, crops and cubic resizing need {}", kVisionFile),
                           .path = path},
                          vision::kPluginVersion, *plugin));
  return Vision(plugin);
}

Result<std::vector<TextBox>> Vision::find_text_boxes(std::span<const float> map, Size map_size, Size source,
                                                     const TextBoxOptions& options) const {
  SERIN_TRY(std::vector<TextBox> boxes, plugin_->find_text_boxes(map, map_size, source, options));
  sort_as_read(boxes);
  return boxes;
}

Result<Image> Vision::crop(const Image& image, const Quad& corners) const { return plugin_->crop(image, corners); }

Result<Image> Vision::resize_cubic(const Image& image, Size size) const { return plugin_->resize_cubic(image, size); }

const std::string& Vision::library() const { return plugin_->library; }

}  // namespace serin::steps
