// paddle_detection.cc: PaddleDetection's operations and its other settings, with the defaults of its own classes.

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "runtime/steps/vision/paddle_operations.h"
#include "runtime/steps/vision/paddle_values.h"

namespace serin::steps {
namespace {

using config::Node;

/// Numbers of OpenCV.
Result<Resample> interp_of(const Node& settings) {
  SERIN_TRY(const int64_t number, settings.integer("interp", 0, 4, 1));
  constexpr Resample kNumbered[] = {Resample::kCvNearest, Resample::kCvLinear, Resample::kCvCubic, Resample::kCvArea};
  if (number >= std::ssize(kNumbered)) return settings.error(fmt::format("interp {} is not supported", number));
  return kNumbered[number];
}

Status read_detection_resize(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"type", "interp", "keep_ratio", "target_size"}));
  ResizeStep step;
  SERIN_TRY(step.interpolation, interp_of(settings));
  SERIN_TRY(const Node size, settings.at("target_size"));
  SERIN_TRY(step.size, turned_size_of(size));
  SERIN_TRY(const bool keep_ratio, settings.boolean("keep_ratio", true));
  if (keep_ratio) step.rule = ResizeStep::Rule::kWithin;
  model.before.emplace_back(step);
  return {};
}

Status read_detection_normalise(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"type", "is_scale", "norm_type", "mean", "std"}));
  NormaliseStep step;
  SERIN_TRY(const bool scaled, settings.boolean("is_scale", true));
  if (!scaled) step.scale = 1;
  const auto node = settings.find("norm_type");
  SERIN_TRY(const std::string type, node ? node->one_of({"mean_std", "none"}) : Result<std::string>("mean_std"));
  if (type == "mean_std") {
    SERIN_TRY(step.mean, channels_of(settings, "mean", {}));
    SERIN_TRY(step.std, channels_of(settings, "std", {}));
    if (step.mean.empty() || step.mean.size() != step.std.size()) return settings.error("needs mean and std, a number for each channel");
  }
  model.before.emplace_back(std::move(step));
  return {};
}

Status read_permute(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"type", "to_bgr", "channel_first"}));
  SERIN_TRY(const bool bgr, settings.boolean("to_bgr", false));
  if (bgr) return settings.error("to_bgr is not supported");
  model.before.emplace_back(ChannelsFirstStep());
  return {};
}

Status read_pad_stride(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"type", "stride"}));
  SERIN_TRY(const int stride, side_of(settings, "stride", 32));
  model.before.emplace_back(PadStep{stride});
  return {};
}

constexpr PaddleOperation kDetectionOperations[] = {
    {"Resize", read_detection_resize},
    {"NormalizeImage", read_detection_normalise},
    {"Permute", read_permute},
    {"PadStride", read_pad_stride},
};

Result<DetectStep::Suppression> read_suppression(const Node& settings) {
  SERIN_CHECK(settings.allow_only({"name", "background_label", "keep_top_k", "nms_threshold", "nms_top_k", "score_threshold", "normalized",
                                   "nms_eta", "return_index", "return_rois_num", "trt"}));
  if (const auto name = settings.find("name")) SERIN_CHECK(name->one_of({"MultiClassNMS"}));
  DetectStep::Suppression found;
  SERIN_TRY(found.score_threshold, share_of(settings, "score_threshold", 0.05));
  SERIN_TRY(found.iou, share_of(settings, "nms_threshold", 0.5));
  SERIN_TRY(found.candidates, count_of(settings, "nms_top_k", 1000));
  SERIN_TRY(found.most, count_of(settings, "keep_top_k", 100));
  return found;
}

}  // namespace

Status read_detection_operation(std::string_view name, const config::Node& settings, PaddleExport& model) {
  return read_operation(kDetectionOperations, name, settings, model);
}

Result<DetectStep> read_detection(const config::Node& file) {
  DetectStep step;
  SERIN_TRY(step.architecture, file.text("arch", ""));
  SERIN_TRY(step.score_threshold, share_of(file, "draw_threshold", 0.5));
  if (const auto list = file.find("label_list")) {
    SERIN_TRY(step.labels, texts_of(*list));
  }
  if (const auto settings = file.find("NMS")) {
    SERIN_TRY(step.suppression, read_suppression(*settings));
  }
  return step;
}

}  // namespace serin::steps
