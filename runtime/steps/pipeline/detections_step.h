// detections_step.h: from a detector's outputs to boxes with labels, in pixels of the client's picture.
//
//   post:
//     - detections: output0                YOLOv8: [4 + classes, candidates]
//       transposed: true
//       iou: 0.7
//       labels: labels.txt
//
// Clients see one output instead, `detections` (BYTES): JSON of each picture (vision/answer_json.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/steps/pipeline/model_files.h"
#include "runtime/steps/pipeline/step.h"
#include "runtime/steps/vision/detection.h"

namespace serin::steps {

struct DetectionsSettings {
  std::vector<std::string> outputs;  ///< boxes with their scores in one, or boxes and scores
  bool suppressed = false;  ///< rows of label, score, x1, y1, x2, y2 in pixels of the client's picture: the model has done the rest
  bool relative = false;    ///< boxes are fractions of the model's input
  bool in_source = false;   ///< boxes are in pixels of the client\'s picture already
  HeadOptions head;
  SuppressOptions suppress;
  std::vector<std::string> labels;
  std::string name = "detections";

  friend bool operator==(const DetectionsSettings&, const DetectionsSettings&) = default;
};

/// Reads an item of `post`. Errors name file, line and key.
Result<DetectionsSettings> read_detections_step(const config::Node& node, const FindFile& files);

/// `model`: its outputs. Those that it reads are of numbers and have two axes for one row. kInvalidArgument: there is none, or it has
/// another form.
Result<std::shared_ptr<const PostStep>> make_detections_step(DetectionsSettings settings, std::span<const TensorFacts> model);

}  // namespace serin::steps
