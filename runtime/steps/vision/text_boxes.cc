// text_boxes.cc: opens libserin_vision.so. OpenCV is a plugin because `serin` starts in milliseconds, and most models need none of it.
//
// The plugin is never closed: OpenCV keeps objects for each thread, which end after any call.

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/steps/vision/opencv/plugin.h"
#include "runtime/steps/vision/text_boxes.h"

namespace serin::steps {
namespace {

constexpr const char* kVisionFile = "libserin_vision.so";
constexpr float kSameLine = 10;  // pixels

std::vector<std::string> vision_candidates(const std::string& path) {
  if (!path.empty()) return {path};
  const std::string folder = program_folder();
  return {folder + "/" + kVisionFile, folder + "/../lib/" + kVisionFile};
}

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
  void* library = nullptr;
  std::string reasons;
  for (const std::string& candidate : vision_candidates(path)) {
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
  }
  if (!library) return Error{Code::kNotFound, fmt::format("text boxes, crops and cubic resizing need {}: {}", kVisionFile, reasons)};
  const auto entry = reinterpret_cast<vision::PluginEntry>(dlsym(library, vision::kPluginEntry));
  if (!entry) return Error{Code::kNotFound, fmt::format("{} is no plugin of Serin: {}", path, dlerror())};
  const auto plugin = std::make_shared<vision::Plugin>();
  if (!entry(vision::kPluginVersion, plugin.get()))
    return Error{Code::kFailedPrecondition, fmt::format("{} is of another build than this program", kVisionFile)};
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
