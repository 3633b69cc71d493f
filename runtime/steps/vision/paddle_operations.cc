// paddle_operations.cc: defaults are those of the projects' own classes, where an export leaves a setting out.

#include "runtime/steps/vision/paddle_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/number.h"
#include "runtime/steps/vision/paddle_values.h"

namespace serin::steps {
namespace {

using config::Node;

constexpr int kStrideOfWidths = 128;  // of resize_long

/// A number, or a quotient, which exports keep as text: "1./255.".
Result<float> quotient_of(const Node& settings, std::string_view key, float fallback) {
  const auto node = settings.find(key);
  if (!node) return fallback;
  SERIN_TRY(const std::string text, node->text());
  const size_t slash = text.find('/');
  const auto number = [](std::string_view word) {  // "1." has no digit behind its point
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (word.ends_with('.')) word.remove_suffix(1);
    return parse_number<double>(word);
  };
  const auto above = number(std::string_view(text).substr(0, slash));
  const auto below = slash == std::string::npos ? std::optional(1.) : number(std::string_view(text).substr(slash + 1));
  if (!above || !below || !(std::abs(*above) <= 1e6) || !(std::abs(*below) >= 1e-6 && std::abs(*below) <= 1e6))
    return node->error(fmt::format("must be a number or a quotient such as 1./255., not '{}'", text));
  return static_cast<float>(*above / *below);
}

Status read_decode(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"img_mode", "channel_first", "to_rgb", "ignore_orientation"}));
  SERIN_TRY(const bool channels_first, settings.boolean("channel_first", false));
  if (channels_first) return settings.error("channel_first must be false");
  SERIN_TRY(const bool rgb, settings.boolean("to_rgb", true));
  model.color = rgb ? Color::kRgb : Color::kBgr;
  if (const auto mode = settings.find("img_mode")) {
    SERIN_TRY(const std::string name, mode->one_of({"RGB", "BGR", "GRAY"}));
    model.color = name == "RGB" ? Color::kRgb : name == "BGR" ? Color::kBgr : Color::kGray;
  }
  return {};
}

Result<Resample> interpolation_of(const Node& settings) {
  SERIN_TRY(const std::string backend, settings.text("backend", "cv2"));
  const auto node = settings.find("interpolation");
  if (backend == "cv2") {
    if (!node) return Resample::kCvLinear;
    SERIN_TRY(const std::string name, node->one_of({"nearest", "bilinear", "bicubic", "area"}));
    return name == "nearest"   ? Resample::kCvNearest
           : name == "bicubic" ? Resample::kCvCubic
           : name == "area"    ? Resample::kCvArea
                               : Resample::kCvLinear;
  }
  if (backend != "pil") return settings.error(fmt::format("backend must be cv2 or pil, not '{}'", backend));
  if (!node) return Resample::kPilBilinear;
  SERIN_TRY(const std::string name, node->one_of({"nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"}));
  if (name == "bilinear") return Resample::kPilBilinear;
  if (name == "bicubic") return Resample::kPilBicubic;
  if (name == "box") return Resample::kPilBox;
  if (name == "hamming") return Resample::kPilHamming;
  return name == "lanczos" ? Resample::kPilLanczos : Resample::kPilNearest;
}

Status read_resize_image(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"size", "resize_short", "interpolation", "backend"}));
  ResizeStep step;
  SERIN_TRY(step.interpolation, interpolation_of(settings));
  if (const auto side = settings.find("resize_short")) {
    step.rule = ResizeStep::Rule::kShortest;
    SERIN_TRY(step.side, side_of(*side));
  } else {
    SERIN_TRY(const Node size, settings.at("size"));
    SERIN_TRY(step.size, size_of(size));
  }
  model.before.emplace_back(step);
  return {};
}

Status read_crop(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"size"}));
  SERIN_TRY(const Node size, settings.at("size"));
  CropStep step;
  SERIN_TRY(step.size, size_of(size));
  model.before.emplace_back(step);
  return {};
}

/// `order` says how the array lies that Paddle's scripts hold; it changes no value.
Status read_normalise(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"scale", "mean", "std", "order", "channel_num", "output_fp16"}));
  SERIN_TRY(const bool half, settings.boolean("output_fp16", false));
  if (half) return settings.error("output_fp16 is not supported");
  if (const auto order = settings.find("order")) SERIN_CHECK(order->one_of({"hwc", "chw", ""}));
  NormaliseStep step;
  SERIN_TRY(step.scale, quotient_of(settings, "scale", step.scale));
  SERIN_TRY(step.mean, channels_of(settings, "mean", {0.485F, 0.456F, 0.406F}));
  SERIN_TRY(step.std, channels_of(settings, "std", {0.229F, 0.224F, 0.225F}));
  if (step.mean.size() != step.std.size()) return settings.error("mean and std have different numbers of channels");
  model.before.emplace_back(std::move(step));
  return {};
}

Status read_channels_first(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({}));
  model.before.emplace_back(ChannelsFirstStep());
  return {};
}

Status read_detector_input(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"image_shape", "keep_ratio", "limit_side_len", "limit_type", "resize_long", "max_side_limit"}));
  DetectorInputOptions step;
  if (const auto shape = settings.find("image_shape")) {
    SERIN_TRY(const Size size, turned_size_of(*shape));
    step.exact = size;
    SERIN_TRY(step.keep_ratio, settings.boolean("keep_ratio", false));
  } else if (settings.has("limit_side_len") || !settings.has("resize_long")) {
    SERIN_TRY(step.side, side_of(settings, "limit_side_len", step.side));
    const auto node = settings.find("limit_type");
    SERIN_TRY(const std::string type, node ? node->one_of({"min", "max", "resize_long"}) : Result<std::string>("min"));
    step.limit = type == "min" ? SideLimit::kShortest : type == "max" ? SideLimit::kLongest : SideLimit::kExact;
  } else {
    step.limit = SideLimit::kExactUp;
    step.multiple = kStrideOfWidths;
    SERIN_TRY(step.side, side_of(settings, "resize_long", 0));
  }
  SERIN_TRY(step.largest, side_of(settings, "max_side_limit", step.largest));
  model.before.emplace_back(step);
  return {};
}

Status read_recogniser_input(const Node& settings, PaddleExport& model) {
  SERIN_CHECK(settings.allow_only({"image_shape", "infer_mode", "eval_mode", "padding", "character_dict_path"}));
  SERIN_TRY(const bool padding, settings.boolean("padding", true));
  if (!padding) return settings.error("padding must be true");
  SERIN_TRY(const Node shape, settings.at("image_shape"));
  SERIN_TRY(const std::vector<int> sides, sides_of(shape, 3));
  if (sides[0] != 1 && sides[0] != 3) return shape.error("must begin with 1 or 3 channels");
  RecogniserInputStep step{.channels = sides[0], .options = {.height = sides[1], .width = sides[2]}};
  step.options.largest_width = std::max(step.options.largest_width, step.options.width);
  model.before.emplace_back(step);
  return {};
}

/// Labels for training; nothing happens to the picture.
Status skip_labels(const Node& /*settings*/, PaddleExport& /*model*/) { return {}; }

constexpr PaddleOperation kOperations[] = {
    {"DecodeImage", read_decode},
    {"ResizeImage", read_resize_image},
    {"CropImage", read_crop},
    {"NormalizeImage", read_normalise},
    {"ToCHWImage", read_channels_first},
    {"DetResizeForTest", read_detector_input},
    {"RecResizeImg", read_recogniser_input},
    {"DetLabelEncode", skip_labels},
    {"CTCLabelEncode", skip_labels},
    {"MultiLabelEncode", skip_labels},
    {"KeepKeys", skip_labels},
};

}  // namespace

Status read_paddle_operation(std::string_view name, const Node& settings, PaddleExport& model) {
  return read_operation(kOperations, name, settings, model);
}

}  // namespace serin::steps
