// paddle_export.h: reads how a model of PaddleOCR, PaddleX, PaddleClas or PaddleDetection must be fed and read, from the file next to it:
// inference.yml, infer_cfg.yml.
//
//   SERIN_TRY(const PaddleExport model, load_paddle_export("PP-OCRv5_mobile_det/inference.yml"));
//   for (const PictureStep& step : model.before) std::visit(..., step);     // in this order
//
// An operation or a setting that is not listed here is an error that names it: a model that is fed in another way gives wrong answers.
// Sections that say nothing of pictures (Global, Hpi, tracker settings) are not read.
#pragma once

#include <string>

#include "runtime/base/config.h"
#include "runtime/base/result.h"
#include "runtime/steps/vision/paddle_model.h"

namespace serin::steps {

/// Errors: those of Node::load(), kInvalidArgument with the line and the name of the operation.
Result<PaddleExport> load_paddle_export(const std::string& path);
Result<PaddleExport> read_paddle_export(const config::Node& file);

}  // namespace serin::steps
