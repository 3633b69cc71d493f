// trees.h: reads models of LightGBM and XGBoost as Graphs.
//
//   booster.save_model("model.txt")                        // LightGBM
//   booster.save_model("model.json"), ("model.ubj")        // XGBoost
//
// input f32[batch, features]; a classifier's output is `probabilities` f32[batch, classes], any other's `prediction` f32[batch]
// (f32[batch, outputs] where there are several). Missing values are NaN.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::formats {

/// Largest file that is read.
inline constexpr size_t kTreeFileBytes = size_t{2} << 30;

/// Errors: kNotFound, kPermissionDenied, kInvalidArgument (not a regular file), kTooLarge, kUnsupported (linear trees, objectives without a
/// known link function), kCorrupt (cut off, contradictory; names the tree).
Result<graph::Graph> read_lightgbm(const std::string& path);
Result<graph::Graph> read_lightgbm_text(std::string_view text);

/// JSON, or UBJSON if it is that. The same errors; gblinear and trees with several outputs in each leaf are kUnsupported.
Result<graph::Graph> read_xgboost(const std::string& path);
Result<graph::Graph> read_xgboost_bytes(std::string bytes);

}  // namespace serin::formats
