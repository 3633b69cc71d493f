#include "runtime/steps/pipeline/ctc_step.h"

#include <fmt/format.h>

#include "runtime/steps/pipeline/numbers.h"
#include "runtime/steps/vision/paddle_export.h"

namespace serin::steps {
namespace {

/// The one in an inference.yml of PaddleOCR.
Result<Dictionary> dictionary_of_export(const std::string& path) {
  SERIN_TRY(const PaddleExport model, load_paddle_export(path));
  const auto* const text = std::get_if<ReadTextStep>(&model.after);
  if (!text || text->characters.empty()) return invalid(fmt::format("{}: it has no character_dict", path));
  return Dictionary::of(text->characters, text->with_space, "of inference.yml");
}

class CtcStep final : public PostStep {
 public:
  explicit CtcStep(CtcSettings settings)
      : reads_{settings.output},
        makes_{{settings.text, DType::kString, {}}, {settings.score, DType::kFloat32, {}}},
        dictionary_(std::move(settings.dictionary)) {}

  std::span<const std::string> reads() const override { return reads_; }
  std::span<const TensorFacts> makes() const override { return makes_; }
  std::string_view part() const override { return "ctc"; }
  bool quick() const override { return false; }

  Result<std::vector<Made>> run(std::span<const TensorView> read, const RowFacts& /*facts*/) const override {
    const Shape& shape = read.front().shape;
    std::vector<float> copy;
    SERIN_TRY(const std::span<const float> values, read_floats(read.front(), copy));
    auto line = read_ctc(values, shape[0], shape[1], dictionary_);
    if (!line) return Error{Code::kInternal, fmt::format("output '{}': {}", reads_.front(), line.error().message)};
    std::vector<Made> made;
    made.push_back(Made::strings({std::move(line->text)}, {}));
    made.push_back(Made::numbers(DType::kFloat32, {}));
    *made.back().view().as<float>() = line->score;
    return made;
  }

 private:
  const std::vector<std::string> reads_;
  const std::vector<TensorFacts> makes_;
  const Dictionary dictionary_;
};

}  // namespace

Result<Dictionary> read_dictionary(const config::Node& node, const FindFile& files) {
  SERIN_TRY(const config::Node file, node.at("dictionary"));
  SERIN_TRY(const std::string path, find_file(file, files));
  SERIN_TRY(const bool space, node.boolean("space", true));
  auto dictionary = path.ends_with(".yml") ? dictionary_of_export(path) : Dictionary::load(path, space);
  if (!dictionary) return file.error(dictionary.error().message);
  return dictionary;
}

Result<CtcSettings> read_ctc_step(const config::Node& node, const FindFile& files) {
  SERIN_CHECK(node.allow_only({"ctc", "dictionary", "space", "text", "score"}));
  CtcSettings settings;
  SERIN_TRY(const config::Node output, node.at("ctc"));
  SERIN_TRY(settings.output, output.text());
  SERIN_TRY(settings.dictionary, read_dictionary(node, files));
  SERIN_TRY(settings.text, node.text("text", settings.text));
  SERIN_TRY(settings.score, node.text("score", settings.score));
  return settings;
}

Result<std::shared_ptr<const PostStep>> make_ctc_step(CtcSettings settings, std::span<const TensorFacts> model) {
  const TensorFacts* const output = find_tensor(model, settings.output);
  if (!output) return invalid(fmt::format("step 'ctc: {}': the model has no such output", settings.output));
  if (!is_number(output->dtype) || output->shape.rank() != 2)
    return invalid(fmt::format("step 'ctc: {}': the output is {} {} for one row, and not [steps, classes] of numbers", output->name,
                               dtype_name(output->dtype), output->shape.str()));
  if (output->shape[1] >= 0)
    if (const Status fits = settings.dictionary.fits(output->shape[1]); !fits)
      return fits.error().in(fmt::format("step 'ctc: {}'", output->name));
  return std::shared_ptr<const PostStep>(std::make_shared<const CtcStep>(std::move(settings)));
}

}  // namespace serin::steps
