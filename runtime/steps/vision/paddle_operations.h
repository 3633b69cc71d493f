// paddle_operations.h: one operation on pictures of a Paddle export. Internal to runtime/steps/vision.
#pragma once

#include <string_view>

#include "runtime/base/config.h"
#include "runtime/base/result.h"
#include "runtime/steps/vision/paddle_model.h"

namespace serin::steps {

/// Of PaddleOCR, PaddleX and PaddleClas. Appends to model.before, or sets model.color. `settings` may be null.
Status read_paddle_operation(std::string_view name, const config::Node& settings, PaddleExport& model);

/// Of PaddleDetection, whose operations of the same names have other settings.
Status read_detection_operation(std::string_view name, const config::Node& settings, PaddleExport& model);

/// All of PaddleDetection's file but for its operations.
Result<DetectStep> read_detection(const config::Node& file);

}  // namespace serin::steps
