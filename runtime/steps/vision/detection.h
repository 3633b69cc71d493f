// detection.h: reads the output tensors of a detector, and keeps the best of boxes that overlap.
//
//   SERIN_TRY(std::vector<Detection> found, read_joined_head({values, 84, 8400}, {.columns_first = true}));   // YOLOv8: [4 + 80, 8400]
//   found = suppress(std::move(found), {.iou = 0.45F, .most = 300});
//   place_in_source(found, fitted.placement);                                                                 // placement.h
//
// Values are hostile. A candidate with a score or a corner that is not finite is left out. All functions may be called by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/result.h"

namespace serin::steps {

/// A box with its label, in pixels: of the model's input first, of the source picture after place_in_source().
struct Detection {
  int64_t label = 0;
  float score = 0;
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;  ///< upper left corner, lower right corner

  bool operator==(const Detection&) const = default;
};

/// The memory of a tensor with two axes that are longer than 1.
struct Matrix {
  std::span<const float> values;
  int64_t rows = 0, columns = 0;  ///< rows are candidates
};

enum class BoxForm : uint8_t {
  kCentre,      ///< centre x, centre y, width, height: YOLO, DETR
  kCorners,     ///< x1, y1, x2, y2: PP-YOLOE
  kCornerSize,  ///< x1, y1, width, height
};

enum class Activation : uint8_t { kNone, kSigmoid, kSoftmax };

struct HeadOptions {
  bool columns_first = false;  ///< the memory of a joined head, or of split scores, is [columns, rows]: YOLOv8, PP-YOLOE
  BoxForm form = BoxForm::kCentre;
  bool objectness = false;  ///< a joined head has it behind the box; it multiplies the scores of the classes: YOLOv5, YOLOX
  Activation activation = Activation::kNone;
  bool last_is_background = false;  ///< the last class means "no object": DETR
  bool every_class = false;         ///< each class above the threshold makes a detection; otherwise only the best one of a row
  float score_threshold = 0.25F;    ///< only greater scores count
  float scale_x = 1, scale_y = 1;   ///< multiply boxes; the size of the input where boxes are fractions of it
  size_t most = 30'000;             ///< only the candidates with the highest scores are kept

  friend bool operator==(const HeadOptions&, const HeadOptions&) = default;
};

/// [rows, 4 + classes], or [rows, 5 + classes] with objectness. `head.columns` counts all of them. The answer is in order of the scores.
/// Errors: kInvalidArgument where the sizes do not fit.
Result<std::vector<Detection>> read_joined_head(const Matrix& head, const HeadOptions& options);

/// Boxes [rows, 4] and scores [rows, classes] of two tensors.
Result<std::vector<Detection>> read_split_head(const Matrix& boxes, const Matrix& scores, const HeadOptions& options);

/// [rows, 6] of a model that has suppressed by itself: label, score, x1, y1, x2, y2 (PaddleDetection). Rows with a negative label are
/// padding. Their boxes are pixels of the source picture already.
Result<std::vector<Detection>> read_final_rows(const Matrix& rows, float score_threshold, size_t most);

struct SuppressOptions {
  float iou = 0.45F;           ///< a greater intersection over union with a better box of the same label suppresses
  size_t most = 300;           ///< detections kept, of all labels together
  bool across_labels = false;  ///< boxes of other labels suppress, too

  friend bool operator==(const SuppressOptions&, const SuppressOptions&) = default;
};

/// Greedy suppression of each label by itself, as torchvision.ops.batched_nms; the IoU is computed in floats, equal scores keep their
/// order. cv2.dnn.NMSBoxes has the same rule, on boxes of one label. The answer is in order of the scores. Time: detections x most.
std::vector<Detection> suppress(std::vector<Detection> detections, const SuppressOptions& options);

}  // namespace serin::steps
