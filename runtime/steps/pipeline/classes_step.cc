#include "runtime/steps/pipeline/classes_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/steps/pipeline/numbers.h"

namespace serin::steps {
namespace {

constexpr int64_t kMostClasses = 1'000'000;

void softmax(std::vector<float>& scores) {
  const float most = *std::ranges::max_element(scores);
  double sum = 0;
  for (float& score : scores) sum += score = std::exp(score - most);
  for (float& score : scores) score = static_cast<float>(score / sum);
}

/// Indices of the highest scores, the best first, among equals the lowest index; NaN last.
std::vector<size_t> best_of(std::span<const float> scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto better = [&](size_t a, size_t b) {
    const float x = scores[a], y = scores[b];
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
    return x != y && !std::isnan(x) ? x > y : a < b;
  };
  std::ranges::partial_sort(order, order.begin() + static_cast<ptrdiff_t>(count), better);
  order.resize(count);
  return order;
}

class ClassesStep final : public PostStep {
 public:
  explicit ClassesStep(ClassesSettings settings) : settings_(std::move(settings)), reads_{settings_.output} {
    const DType type = settings_.labels.empty() ? DType::kInt64 : DType::kString;
    makes_ = {{settings_.label, type, {settings_.top}}, {settings_.score, DType::kFloat32, {settings_.top}}};
  }

  std::span<const std::string> reads() const override { return reads_; }
  std::span<const TensorFacts> makes() const override { return makes_; }
  std::string_view part() const override { return "classes"; }
  bool quick() const override { return true; }

  Result<std::vector<Made>> run(std::span<const TensorView> read, const RowFacts& /*facts*/) const override {
    SERIN_TRY(std::vector<float> scores, floats_of(read.front()));
    const auto top = static_cast<size_t>(settings_.top);
    if (scores.size() < top)
      return Error{Code::kInternal,
                   fmt::format("output '{}' has {} classes, step 'classes' answers {}", reads_.front(), scores.size(), top)};
    if (settings_.function == ClassesSettings::Function::kSoftmax) softmax(scores);
    if (settings_.function == ClassesSettings::Function::kSigmoid)
      for (float& score : scores) score = 1 / (1 + std::exp(-score));
    const std::vector<size_t> best = best_of(scores, top);

    std::vector<Made> made;
    if (settings_.labels.empty()) {
      made.push_back(Made::numbers(DType::kInt64, {settings_.top}));
      std::ranges::copy(best, made.back().view().as<int64_t>());
    } else {
      std::vector<std::string> labels;
      for (const size_t index : best) {
        if (index >= settings_.labels.size())
          return Error{Code::kInternal,
                       fmt::format("class {} of output '{}' has no label: there are {}", index, reads_.front(), settings_.labels.size())};
        labels.push_back(settings_.labels[index]);
      }
      made.push_back(Made::strings(std::move(labels), {settings_.top}));
    }
    made.push_back(Made::numbers(DType::kFloat32, {settings_.top}));
    std::ranges::transform(best, made.back().view().as<float>(), [&](size_t index) { return scores[index]; });
    return made;
  }

 private:
  const ClassesSettings settings_;
  const std::vector<std::string> reads_;
  std::vector<TensorFacts> makes_;
};

}  // namespace

Result<ClassesSettings> read_classes_step(const config::Node& node, const FindFile& files) {
  SERIN_CHECK(node.allow_only({"classes", "softmax", "sigmoid", "top", "labels", "label", "score"}));
  ClassesSettings settings;
  SERIN_TRY(const config::Node output, node.at("classes"));
  SERIN_TRY(settings.output, output.text());
  SERIN_TRY(const bool softmax, node.boolean("softmax", false));
  SERIN_TRY(const bool sigmoid, node.boolean("sigmoid", false));
  if (softmax && sigmoid) return node.at("sigmoid")->error("'softmax' and 'sigmoid' exclude each other");
  settings.function = softmax   ? ClassesSettings::Function::kSoftmax
                      : sigmoid ? ClassesSettings::Function::kSigmoid
                                : ClassesSettings::Function::kNone;
  SERIN_TRY(settings.top, node.integer("top", 1, kMostClasses, 1));
  if (const auto labels = node.find("labels")) {
    SERIN_TRY(settings.labels, read_lines_of(*labels, files));
    if (settings.labels.empty()) return labels->error("the file has no lines");
  }
  SERIN_TRY(settings.label, node.text("label", settings.labels.empty() ? "class" : "label"));
  SERIN_TRY(settings.score, node.text("score", settings.score));
  return settings;
}

Result<std::shared_ptr<const PostStep>> make_classes_step(ClassesSettings settings, std::span<const TensorFacts> model) {
  const TensorFacts* const scores = find_tensor(model, settings.output);
  if (!scores) return invalid(fmt::format("step 'classes: {}': the model has no such output", settings.output));
  if (!is_number(scores->dtype))
    return invalid(fmt::format("step 'classes: {}': the output is {}, which has no order", scores->name, dtype_name(scores->dtype)));
  if (const auto classes = scores->shape.checked_elements()) {
    if (settings.top > *classes)
      return invalid(fmt::format("step 'classes: {}': 'top: {}' is more than its {} classes", scores->name, settings.top, *classes));
    if (!settings.labels.empty() && settings.labels.size() < static_cast<size_t>(*classes))
      return invalid(fmt::format("step 'classes: {}': {} labels for {} classes", scores->name, settings.labels.size(), *classes));
  }
  return std::shared_ptr<const PostStep>(std::make_shared<const ClassesStep>(std::move(settings)));
}

}  // namespace serin::steps
