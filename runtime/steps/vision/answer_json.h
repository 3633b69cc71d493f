// answer_json.h: writes detections and texts as JSON.
//
// Coordinates that are whole numbers have no point: 12, not 12.0. A number that is not finite is null.
#pragma once

#include <span>
#include <string>

#include "runtime/base/result.h"
#include "runtime/steps/vision/ctc.h"
#include "runtime/steps/vision/detection.h"
#include "runtime/steps/vision/geometry.h"

namespace serin::steps {

/// [{"bbox":[x,y,width,height],"category_id":0,"category":"person","score":0.9}, ...]: COCO's result format, of which pycocotools
/// computes the mAP once "image_id" is added. Without a label for a number there is no "category".
std::string detections_as_json(std::span<const Detection> detections, std::span<const std::string> labels);

struct TextLine {
  TextBox box;
  Reading reading;
};

/// [{"confidence":0.9,"text":"...","text_region":[[x,y],[x,y],[x,y],[x,y]]}, ...]: as PaddleOCR's servers answer.
std::string texts_as_json(std::span<const TextLine> lines);

}  // namespace serin::steps
