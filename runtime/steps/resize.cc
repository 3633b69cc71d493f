// resize.cc: the names of the rules.

#include "runtime/steps/resize.h"

#include <algorithm>
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
  return rule <= Resample::kCvArea ? resize_like_cv2(image, width, height, rule) : resize_like_pil(image, width, height, rule);
}

}  // namespace serin::steps
