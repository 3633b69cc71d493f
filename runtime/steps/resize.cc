// resize.cc: the names of the rules.

#include "runtime/steps/resize.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace serin::steps {
namespace {

constexpr std::pair<std::string_view, Resample> kNames[] = {
    {"cv2.nearest", Resample::kCvNearest},    {"cv2.linear", Resample::kCvLinear},    {"cv2.area", Resample::kCvArea},
    {"cv2.cubic", Resample::kCvCubic},        {"pil.nearest", Resample::kPilNearest}, {"pil.box", Resample::kPilBox},
    {"pil.bilinear", Resample::kPilBilinear}, {"pil.hamming", Resample::kPilHamming}, {"pil.bicubic", Resample::kPilBicubic},
    {"pil.lanczos", Resample::kPilLanczos},
};

}  // namespace

std::optional<Resample> find_resample(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &std::pair<std::string_view, Resample>::first);
  return found == std::end(kNames) ? std::nullopt : std::optional(found->second);
}

Image resize(const Image& image, int width, int height, Resample rule) {
  return resize_window(image, width, height, rule, {0, 0, width, height});
}

Image resize_window(const Image& image, int width, int height, Resample rule, const Window& window) {
  if (rule > Resample::kCvCubic) return resize_like_pil(image, width, height, rule, window);
  Image whole = resize_like_cv2(image, width, height, rule);
  return window.width == width && window.height == height ? whole : cut(whole, window);
}

Image cut(const Image& image, const Window& window) {
  Image out = blank_image(window.width, window.height, image.channels);
  const size_t row_bytes = static_cast<size_t>(window.width) * static_cast<size_t>(image.channels);
  for (int y = 0; y < window.height; ++y) std::memcpy(out.row(y), image.at(window.left, window.top + y), row_bytes);
  return out;
}

}  // namespace serin::steps
