// detection.h: the average precision of a detector, as COCO defines it and pycocotools computes it (areas of all sizes, 100 boxes a picture):
// https://cocodataset.org/#detection-eval
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/evaluation/metric.h"

namespace serin::evaluation {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  int32_t category = 0;
  double score = 0;    ///< of a detection
  bool crowd = false;  ///< of the truth: it counts neither as found nor as missed
};

struct DetectionSamples {
  std::vector<std::string> categories;
  std::vector<int64_t> pictures;  ///< number of each row's picture: detections of equal score are in their order
  std::vector<std::vector<Box>> truth, found;
};

/// Intersection over union; over the area of the detection where the truth is a crowd.
double overlap(const Box& found, const Box& truth);

/// map (IoU 0.5 to 0.95), map50, map75, and iou (the mean overlap of detections that are right at 0.5). The samples may go after that.
std::vector<Metric> detection_metrics(const DetectionSamples& samples);

}  // namespace serin::evaluation
