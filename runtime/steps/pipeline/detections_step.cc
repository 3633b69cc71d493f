#include "runtime/steps/pipeline/detections_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/steps/pipeline/numbers.h"
#include "runtime/steps/vision/answer_json.h"
#include "runtime/steps/vision/placement.h"

namespace serin::steps {
namespace {

constexpr int64_t kMostDetections = 100'000;

/// A tensor as two axes: those of length 1 in front are left out. One box may lack the axis of boxes.
Result<Shape> two_axes(const TensorView& tensor, const std::string& name) {
  std::span<const int64_t> dims = tensor.shape.dims();
  while (dims.size() > 2 && dims.front() == 1) dims = dims.subspan(1);
  if (dims.size() == 2) return Shape(dims);
  if (dims.size() == 1) return Shape{1, dims[0]};
  return Error{Code::kInternal, fmt::format("output '{}' is {} and not a list of boxes", name, tensor.shape.str())};
}

class DetectionsStep final : public PostStep {
 public:
  explicit DetectionsStep(DetectionsSettings settings) : settings_(std::move(settings)), makes_{{settings_.name, DType::kString, {}}} {}

  std::span<const std::string> reads() const override { return settings_.outputs; }
  std::span<const TensorFacts> makes() const override { return makes_; }
  std::string_view part() const override { return "detections"; }
  bool quick() const override { return settings_.suppressed; }

  Result<std::vector<Made>> run(std::span<const TensorView> read, const RowFacts& facts) const override {
    std::vector<float> copy;
    SERIN_TRY(const std::span<const float> first, read_floats(read[0], copy));
    SERIN_TRY(const Shape shape, two_axes(read[0], settings_.outputs[0]));
    auto found = settings_.suppressed
                     ? read_final_rows({first, shape[0], shape[1]}, settings_.head.score_threshold, settings_.suppress.most)
                     : candidates(first, shape, read, facts);
    if (!found) return Error{Code::kInternal, fmt::format("output '{}': {}", settings_.outputs[0], found.error().message)};
    if (!settings_.suppressed) {
      *found = suppress(std::move(*found), settings_.suppress);
      if (facts.picture.source_width > 0 && !settings_.in_source) place_in_source(*found, facts.picture);
    }
    std::vector<Made> made;
    made.push_back(Made::strings({detections_as_json(*found, settings_.labels)}, {}));
    return made;
  }

 private:
  Result<std::vector<Detection>> candidates(std::span<const float> first, const Shape& shape, std::span<const TensorView> read,
                                            const RowFacts& facts) const {
    HeadOptions options = settings_.head;
    if (settings_.relative) {
      if (facts.input_width == 0) return invalid("'relative' boxes need a step that reads a picture");
      options.scale_x = static_cast<float>(facts.input_width);
      options.scale_y = static_cast<float>(facts.input_height);
    }
    const auto matrix = [](std::span<const float> values, const Shape& axes, bool columns_first) {
      return columns_first ? Matrix{values, axes[1], axes[0]} : Matrix{values, axes[0], axes[1]};
    };
    if (read.size() == 1) return read_joined_head(matrix(first, shape, options.columns_first), options);
    std::vector<float> copy;
    SERIN_TRY(const std::span<const float> scores, read_floats(read[1], copy));
    SERIN_TRY(const Shape axes, two_axes(read[1], settings_.outputs[1]));
    return read_split_head(matrix(first, shape, false), matrix(scores, axes, options.columns_first), options);
  }

  const DetectionsSettings settings_;
  const std::vector<TensorFacts> makes_;
};

Status read_head(const config::Node& node, DetectionsSettings& settings) {
  HeadOptions& head = settings.head;
  if (const auto form = node.find("form")) {
    SERIN_TRY(const std::string word, form->one_of({"centre", "corners", "corner_size", "suppressed"}));
    settings.suppressed = word == "suppressed";
    head.form = word == "corners" ? BoxForm::kCorners : word == "corner_size" ? BoxForm::kCornerSize : BoxForm::kCentre;
  }
  if (const auto activation = node.find("activation")) {
    SERIN_TRY(const std::string word, activation->one_of({"none", "sigmoid", "softmax"}));
    head.activation = word == "sigmoid" ? Activation::kSigmoid : word == "softmax" ? Activation::kSoftmax : Activation::kNone;
  }
  SERIN_TRY(head.columns_first, node.boolean("transposed", false));
  SERIN_TRY(head.objectness, node.boolean("objectness", false));
  SERIN_TRY(head.last_is_background, node.boolean("background", false));
  SERIN_TRY(head.every_class, node.boolean("every_class", false));
  SERIN_TRY(settings.relative, node.boolean("relative", false));
  SERIN_TRY(settings.in_source, node.boolean("in_source", false));
  SERIN_TRY(const double score, node.number("score", 0, 1, head.score_threshold));
  head.score_threshold = static_cast<float>(score);
  if (head.objectness && settings.outputs.size() > 1)
    return node.at("objectness")->error("belongs to boxes with their scores in one output");
  if (settings.suppressed && settings.outputs.size() > 1) return node.at("form")->error("'suppressed' rows are one output");
  return {};
}

}  // namespace

Result<DetectionsSettings> read_detections_step(const config::Node& node, const FindFile& files) {
  SERIN_CHECK(node.allow_only({"detections", "form", "transposed", "objectness", "activation", "background", "every_class", "relative",
                               "in_source", "score", "iou", "most", "across_labels", "labels", "name"}));
  DetectionsSettings settings;
  SERIN_TRY(const config::Node outputs, node.at("detections"));
  const auto items = outputs.is_list() ? outputs.items() : std::vector{outputs};
  if (items.empty() || items.size() > 2) return outputs.error("must be an output, or a list of two: [boxes, scores]");
  for (const config::Node& item : items) {
    SERIN_TRY(std::string name, item.text());
    settings.outputs.push_back(std::move(name));
  }
  SERIN_CHECK(read_head(node, settings));
  SERIN_TRY(const double iou, node.number("iou", 0, 1, settings.suppress.iou));
  settings.suppress.iou = static_cast<float>(iou);
  SERIN_TRY(const int64_t most, node.integer("most", 1, kMostDetections, static_cast<int64_t>(settings.suppress.most)));
  settings.suppress.most = static_cast<size_t>(most);
  SERIN_TRY(settings.suppress.across_labels, node.boolean("across_labels", false));
  if (const auto labels = node.find("labels")) {
    SERIN_TRY(settings.labels, read_lines_of(*labels, files));
  }
  SERIN_TRY(settings.name, node.text("name", settings.name));
  return settings;
}

Result<std::shared_ptr<const PostStep>> make_detections_step(DetectionsSettings settings, std::span<const TensorFacts> model) {
  for (const std::string& name : settings.outputs) {
    const TensorFacts* const output = find_tensor(model, name);
    if (!output) return invalid(fmt::format("step 'detections: {}': the model has no such output", name));
    if (!is_number(output->dtype) || output->shape.is_scalar())
      return invalid(fmt::format("step 'detections: {}': the output is {} {} for one row, and not a list of boxes", name,
                                 dtype_name(output->dtype), output->shape.str()));
  }
  return std::shared_ptr<const PostStep>(std::make_shared<const DetectionsStep>(std::move(settings)));
}

}  // namespace serin::steps
