// eval_pixels.h: the classes of a picture's pixels, by its label and by a model's answer.
#pragma once

#include "runtime/cli/offline/eval_records.h"
#include "runtime/datasets/dataset.h"

namespace serin::cli {

/// Labels of pixels that do not count, as PaddleSeg and torchvision have them: this one, and negative ones.
inline constexpr int64_t kIgnoredPixel = 255;

/// Counts the pixels of each class, as evaluation::PixelSamples has them: in `record.truth_numbers` those of the label, and in
/// `answer.numbers` those of the answer, followed by those of both. The error says what does not fit.
///
/// `output` is of one of these forms:
/// - classes [H, W], of a type of whole numbers;
/// - scores [C, H, W] or [H, W, C];
/// - one score from 0 to 1 for each pixel, [H, W] or [1, H, W]. From 0.5 on the pixel is of class 1.
Status count_pixels(const datasets::Cell& label, const TensorView& output, EvalRecord& record, EvalAnswer& answer);

}  // namespace serin::cli
