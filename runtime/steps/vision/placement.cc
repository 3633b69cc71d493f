#include "runtime/steps/vision/placement.h"

#include <algorithm>

namespace serin::steps {

void place_in_source(std::vector<Detection>& detections, const Placement& placement) {
  const auto width = static_cast<float>(placement.source_width), height = static_cast<float>(placement.source_height);
  for (Detection& one : detections) {
    one.x1 = std::clamp((one.x1 - placement.left) / placement.scale_x, 0.F, width);
    one.x2 = std::clamp((one.x2 - placement.left) / placement.scale_x, 0.F, width);
    one.y1 = std::clamp((one.y1 - placement.top) / placement.scale_y, 0.F, height);
    one.y2 = std::clamp((one.y2 - placement.top) / placement.scale_y, 0.F, height);
  }
  std::erase_if(detections, [](const Detection& one) { return !(one.x2 > one.x1 && one.y2 > one.y1); });
}

}  // namespace serin::steps
