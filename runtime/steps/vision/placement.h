// placement.h: puts a detector's boxes back into the picture.
#pragma once

#include <vector>

#include "runtime/steps/vision/detection.h"

namespace serin::steps {

/// A pixel x of the source is at x * scale_x + left of the input.
struct Placement {
  float scale_x = 1, scale_y = 1, left = 0, top = 0;
  int source_width = 0, source_height = 0;
};

/// Moves boxes from the input to the source picture and clips them there. Boxes that have no area then are left out.
void place_in_source(std::vector<Detection>& detections, const Placement& placement);

}  // namespace serin::steps
