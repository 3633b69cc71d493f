// resize.h: the rules by which libraries resize pictures of 8 bits, to the last bit. A model was trained behind one of them, and another one
// changes its answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/steps/image.h"

namespace serin::steps {

/// Named as the libraries name them. Those of PIL take all pixels below the filter (antialias); those of cv2, but for area, the nearest ones.
/// Sources: OpenCV's modules/imgproc/src/resize.cpp, Pillow's src/libImaging/Resample.c and Geometry.c, as their wheels answer.
enum class Resample : uint8_t {
  kCvNearest,
  kCvLinear,
  kCvArea,
  kCvCubic,  ///< by Vision::resize_cubic of vision/text_boxes.h only
  kPilNearest,
  kPilBox,
  kPilBilinear,
  kPilHamming,
  kPilBicubic,
  kPilLanczos,
};

/// "cv2.linear", "pil.bicubic" ...
std::optional<Resample> find_resample(std::string_view name);

/// `width` and `height` are at least 1. Not for kCvCubic.
Image resize(const Image& image, int width, int height, Resample rule);

/// A part of a picture, within it.
struct Window {
  int left = 0, top = 0, width = 0, height = 0;
};

/// The part of what resize() makes, to the last bit. PIL's rules compute that part only.
Image resize_window(const Image& image, int width, int height, Resample rule, const Window& window);

Image cut(const Image& image, const Window& window);

/// One file each. `window`: of the result.
Image resize_like_cv2(const Image& image, int width, int height, Resample rule);
Image resize_like_pil(const Image& image, int width, int height, Resample rule, const Window& window);

}  // namespace serin::steps
