#include "runtime/steps/pipeline/embedding_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/steps/pipeline/numbers.h"

namespace serin::steps {
namespace {

class EmbeddingStep final : public PostStep {
 public:
  EmbeddingStep(EmbeddingSettings settings, int64_t width)
      : settings_(std::move(settings)), reads_{settings_.output}, makes_{{settings_.name, DType::kFloat32, {width}}} {}

  std::span<const std::string> reads() const override { return reads_; }
  std::span<const TensorFacts> makes() const override { return makes_; }
  std::string_view part() const override { return "embedding"; }
  bool quick() const override { return true; }

  Result<std::vector<Made>> run(std::span<const TensorView> read, const RowFacts& facts) const override {
    const TensorView& output = read.front();
    std::vector<float> copy;
    SERIN_TRY(const std::span<const float> values, read_floats(output, copy));
    const auto width = static_cast<size_t>(output.shape.rank() > 0 ? output.shape.back() : 0);
    const size_t tokens = width == 0 ? 0 : values.size() / width;
    if (tokens == 0) return Error{Code::kInternal, fmt::format("output '{}' is {}, which is empty", reads_.front(), output.shape.str())};
    if (!facts.mask.empty() && tokens > 1 && facts.mask.size() != tokens)
      return Error{Code::kInternal, fmt::format("output '{}' has {} vectors for {} tokens", reads_.front(), tokens, facts.mask.size())};
    const auto counts = [&](size_t token) { return tokens == 1 || facts.mask.empty() || facts.mask[token] != 0; };

    std::vector<double> pooled(width, settings_.pooling == EmbeddingSettings::Pooling::kMax ? -std::numeric_limits<double>::infinity() : 0);
    size_t counted = 0;
    for (size_t token = 0; token < tokens; ++token) {
      if (!counts(token)) continue;
      ++counted;
      const std::span<const float> vector = values.subspan(token * width, width);
      for (size_t i = 0; i < width; ++i)
        pooled[i] = settings_.pooling == EmbeddingSettings::Pooling::kMax ? std::max<double>(pooled[i], vector[i]) : pooled[i] + vector[i];
      if (settings_.pooling == EmbeddingSettings::Pooling::kFirst) break;
    }
    double scale = settings_.pooling == EmbeddingSettings::Pooling::kMean && counted > 0 ? 1.0 / static_cast<double>(counted) : 1;
    if (settings_.normalize) {
      double squares = 0;
      for (const double value : pooled) squares += value * value;
      constexpr double kShortest = 1e-12;  // as torch.nn.functional.normalize
      scale /= std::max(std::sqrt(squares) * scale, kShortest);
    }
    std::vector<Made> made;
    made.push_back(Made::numbers(DType::kFloat32, {static_cast<int64_t>(width)}));
    std::ranges::transform(pooled, made.front().view().as<float>(), [&](double value) { return static_cast<float>(value * scale); });
    return made;
  }

 private:
  const EmbeddingSettings settings_;
  const std::vector<std::string> reads_;
  const std::vector<TensorFacts> makes_;
};

}  // namespace

Result<EmbeddingSettings> read_embedding_step(const config::Node& node) {
  using Pooling = EmbeddingSettings::Pooling;
  SERIN_CHECK(node.allow_only({"embedding", "pooling", "normalize", "name"}));
  EmbeddingSettings settings;
  SERIN_TRY(const config::Node output, node.at("embedding"));
  SERIN_TRY(settings.output, output.text());
  if (const auto pooling = node.find("pooling")) {
    SERIN_TRY(const std::string word, pooling->one_of({"mean", "cls", "max"}));
    settings.pooling = word == "mean" ? Pooling::kMean : word == "cls" ? Pooling::kFirst : Pooling::kMax;
  }
  SERIN_TRY(settings.normalize, node.boolean("normalize", false));
  SERIN_TRY(settings.name, node.text("name", settings.name));
  return settings;
}

Result<std::shared_ptr<const PostStep>> make_embedding_step(EmbeddingSettings settings, std::span<const TensorFacts> model) {
  const TensorFacts* const vectors = find_tensor(model, settings.output);
  if (!vectors) return invalid(fmt::format("step 'embedding: {}': the model has no such output", settings.output));
  if (!is_number(vectors->dtype) || vectors->shape.rank() < 1 || vectors->shape.rank() > 2)
    return invalid(fmt::format("step 'embedding: {}': the output is {} {} for one row, and not [tokens, width] of numbers", vectors->name,
                               dtype_name(vectors->dtype), vectors->shape.str()));
  return std::shared_ptr<const PostStep>(std::make_shared<const EmbeddingStep>(std::move(settings), vectors->shape.back()));
}

}  // namespace serin::steps
