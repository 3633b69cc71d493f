// paddle_model.cc: sizes are rounded as Python and OpenCV round, to the nearest even number.

#include "runtime/steps/vision/paddle_model.h"

#include <algorithm>
#include <cmath>

namespace serin::steps {

Size ResizeStep::size_of(Size picture) const {
  if (rule == Rule::kExact) return size;
  const auto [shorter, longer] = std::minmax(picture.width, picture.height);
  const auto [least, most] = std::minmax(size.width, size.height);
  const double ratio = rule == Rule::kShortest ? static_cast<double>(side) / shorter
                                               : std::min(static_cast<double>(least) / shorter, static_cast<double>(most) / longer);
  const auto scaled = [ratio](int length) { return static_cast<int>(std::clamp(std::nearbyint(length * ratio), 1., 1e9)); };
  return {scaled(picture.width), scaled(picture.height)};
}

}  // namespace serin::steps
