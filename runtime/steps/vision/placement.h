// placement.h: puts a picture into the input of a detector, and the detector's boxes back into the picture.
//
//   SERIN_TRY(const Fitted fitted, fit_image(picture, {.width = 640, .height = 640}));     // YOLOv5 to YOLO11: a letterbox
//   ... run, decode, suppress (detection.h) ...
//   place_in_source(found, fitted.placement);
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/image.h"
#include "runtime/steps/resize.h"
#include "runtime/steps/vision/detection.h"

namespace serin::steps {

/// A pixel x of the source is at x * scale_x + left of the input.
struct Placement {
  float scale_x = 1, scale_y = 1, left = 0, top = 0;
  int source_width = 0, source_height = 0;
};

enum class Fit : uint8_t {
  kCentred,    ///< keeps the ratio, with borders on both sides: YOLOv5, YOLOv8. Sizes are rounded
  kUpperLeft,  ///< keeps the ratio, with borders on the right and below: YOLOX. Sizes are truncated
  kStretched,  ///< fills the input: PP-YOLOE, DETR
};

struct FitOptions {
  int width = 640, height = 640;
  Fit fit = Fit::kCentred;
  uint8_t fill = 114;   ///< of the borders, in each channel
  bool enlarge = true;  ///< otherwise a small picture keeps its size (YOLOv5: scaleup)
  int stride = 0;       ///< not 0: borders only up to a multiple of it (YOLOv5: auto); the input is then smaller than asked
  Resample rule = Resample::kCvLinear;
};

struct Fitted {
  Image image;
  Placement placement;
};

/// Errors: kInvalidArgument for a picture without pixels, sizes out of 1 to 16384, a stride below 0.
Result<Fitted> fit_image(const Image& image, const FitOptions& options);

/// Moves boxes from the input to the source picture and clips them there. Boxes that have no area then are left out.
void place_in_source(std::vector<Detection>& detections, const Placement& placement);

}  // namespace serin::steps
