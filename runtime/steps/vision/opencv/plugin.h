// plugin.h: the interface to libserin_vision.so, the only part that links OpenCV and Clipper.
//
// Both sides are built from the same tree, and the version proves it. The version changes with everything that crosses the interface: this
// file, geometry.h, image.h, text_boxes.h, result.h. No exception crosses it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/image.h"
#include "runtime/steps/vision/geometry.h"
#include "runtime/steps/vision/text_box_options.h"

namespace serin::steps::vision {

inline constexpr uint32_t kPluginVersion = 1;
inline constexpr const char* kPluginEntry = "serin_vision_plugin";

/// Each function checks its arguments; text_boxes.h describes them. Boxes are not sorted yet.
struct Plugin {
  std::string library;  ///< "OpenCV 4.6.0"
  Result<std::vector<TextBox>> (*find_text_boxes)(std::span<const float> map, Size map_size, Size source, const TextBoxOptions& options);
  Result<Image> (*crop)(const Image& image, const Quad& corners);
  Result<Image> (*resize_cubic)(const Image& image, Size size);
};

/// Fills `plugin` and keeps OpenCV to the calling thread. Returns true if `version` is its own kPluginVersion.
using PluginEntry = bool (*)(uint32_t version, Plugin* plugin);

}  // namespace serin::steps::vision
