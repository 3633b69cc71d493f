#include "runtime/steps/pipeline/paddle_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace serin::steps {
namespace {

/// Fills the settings of the step `picture` with one operation after the other.
class OperationReader {
 public:
  explicit OperationReader(PictureSettings& settings) : settings_(settings) {}

  Status operator()(const ResizeStep& step) {
    using Fit = PictureSettings::Fit;
    SERIN_CHECK(begin(Stage::kResize, "a resize"));
    const bool shortest = step.rule == ResizeStep::Rule::kShortest;
    settings_.resize = {.to = shortest ? Size{step.side, step.side} : step.size,
                        .fit = shortest                                 ? Fit::kShortest
                               : step.rule == ResizeStep::Rule::kWithin ? Fit::kTurned
                                                                        : Fit::kExact,
                        .rule = step.interpolation,
                        .rounding = Rounding::kNearest};
    return {};
  }
  Status operator()(const CropStep& step) {
    SERIN_CHECK(begin(Stage::kCrop, "a crop"));
    settings_.crop = {.to = step.size, .rounding = Rounding::kDown};
    return {};
  }
  Status operator()(const NormaliseStep& step) {
    SERIN_CHECK(begin(Stage::kValues, "a normalisation"));
    settings_.scale = step.scale;
    settings_.mean.assign(step.mean.begin(), step.mean.end());
    settings_.std.assign(step.std.begin(), step.std.end());
    return {};
  }
  Status operator()(const ChannelsFirstStep& /*step*/) {
    settings_.layout = PictureSettings::Layout::kChannelsFirst;
    return {};
  }
  Status operator()(const PadStep& step) {
    SERIN_CHECK(begin(Stage::kPad, "padding"));
    settings_.pad = {.to = {}, .multiple = step.stride, .after_values = true};
    return {};
  }
  Status operator()(const DetectorInputOptions& /*step*/) { return refusal("DetResizeForTest"); }
  Status operator()(const RecogniserInputStep& /*step*/) { return refusal("RecResizeImg"); }

 private:
  enum class Stage : uint8_t { kNothing, kResize, kCrop, kValues, kPad };

  static Error refusal(std::string_view operation) {
    return {Code::kUnsupported, fmt::format("{} at this place is not supported", operation)};
  }
  Status begin(Stage stage, std::string_view operation) {
    if (stage <= stage_) return refusal(operation);
    stage_ = stage;
    return {};
  }

  PictureSettings& settings_;
  Stage stage_ = Stage::kNothing;
};

/// PaddleDetection's models take sizes by these names.
constexpr std::string_view kShapeInput = "im_shape", kScaleInput = "scale_factor";

Status name_inputs(PictureSettings& settings, std::span<const TensorFacts> inputs) {
  std::vector<std::string> pixels;
  for (const TensorFacts& input : inputs) {
    if (input.name == kShapeInput)
      settings.shape_to = input.name;
    else if (input.name == kScaleInput)
      settings.scale_to = input.name;
    else
      pixels.push_back(input.name);
  }
  if (pixels.size() != 1) return Error{Code::kUnsupported, fmt::format("the model has {} inputs for pixels", pixels.size())};
  settings.to = pixels.front();
  return {};
}

Result<DetectionsSettings> detections_of(const DetectStep& step, std::span<const TensorFacts> outputs) {
  DetectionsSettings settings;
  settings.labels = step.labels;
  settings.head.score_threshold = step.score_threshold;
  if (!step.suppression) {
    settings.outputs = {outputs.front().name};
    settings.suppressed = true;
    return settings;
  }
  if (outputs.size() != 2) return Error{Code::kUnsupported, fmt::format("the model has {} outputs, not boxes and scores", outputs.size())};
  settings.outputs = {outputs[0].name, outputs[1].name};
  settings.head.form = BoxForm::kCorners;
  settings.head.columns_first = true;
  settings.head.every_class = true;
  settings.head.score_threshold = std::max(step.score_threshold, step.suppression->score_threshold);
  settings.head.most = static_cast<size_t>(step.suppression->candidates);
  settings.suppress.iou = step.suppression->iou;
  settings.suppress.most = static_cast<size_t>(step.suppression->most);
  settings.in_source = true;
  return settings;
}

}  // namespace

std::optional<std::string> find_paddle_export(const std::string& folder) {
  std::error_code error;
  for (const char* const name : {"inference.yml", "infer_cfg.yml"})
    if (const auto path = std::filesystem::path(folder) / name; std::filesystem::is_regular_file(path, error)) return path.string();
  return std::nullopt;
}

Result<std::optional<StepsSettings>> steps_of_paddle(const PaddleExport& model, std::span<const TensorFacts> inputs,
                                                     std::span<const TensorFacts> outputs) {
  StepsSettings steps;
  if (outputs.empty()) return Error{Code::kUnsupported, "the model has no output"};
  if (const auto* const rank = std::get_if<RankStep>(&model.after)) {
    ClassesSettings classes;
    classes.output = outputs.front().name;
    const auto most = outputs.front().shape.checked_elements();
    classes.top = most && *most > 0 ? std::min<int64_t>(*most, rank->most) : rank->most;
    classes.labels = rank->labels;
    classes.label = rank->labels.empty() ? "class" : "label";
    steps.post.emplace_back(std::move(classes));
  } else if (const auto* const detect = std::get_if<DetectStep>(&model.after)) {
    SERIN_TRY(DetectionsSettings detections, detections_of(*detect, outputs));
    steps.post.emplace_back(std::move(detections));
  } else {
    return std::optional<StepsSettings>();
  }
  PictureSettings picture;
  picture.input = "image";
  picture.decode = {.color = model.color, .max_pixels = PictureSettings::kMostPixels};
  picture.scale = 1;  // where nothing normalises
  OperationReader reader(picture);
  for (const PictureStep& step : model.before) SERIN_CHECK(std::visit(reader, step));
  SERIN_CHECK(name_inputs(picture, inputs));
  steps.pre.emplace_back(std::move(picture));
  return std::optional(std::move(steps));
}

}  // namespace serin::steps
