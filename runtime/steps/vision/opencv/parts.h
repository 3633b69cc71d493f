// parts.h: the functions that plugin.cc gives away.
#pragma once

#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/image.h"
#include "runtime/steps/vision/geometry.h"
#include "runtime/steps/vision/text_box_options.h"

namespace serin::steps::vision {

inline constexpr int kLargestSide = 32'766;  ///< OpenCV counts pixels of a picture that it warps in 16 bits

/// They may throw exceptions of OpenCV and of the standard library.
Result<std::vector<TextBox>> find_text_boxes(std::span<const float> map, Size map_size, Size source, const TextBoxOptions& options);
Result<Image> crop(const Image& image, const Quad& corners);
Result<Image> resize_cubic(const Image& image, Size size);

}  // namespace serin::steps::vision
