#include "runtime/steps/pipeline/text_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace serin::steps {
namespace {

constexpr int64_t kLongestText = 1'000'000;  // in tokens

/// Names that exports of Hugging Face's models have.
constexpr std::array<std::string_view, 3> kUsualInputs = {"input_ids", "attention_mask", "token_type_ids"};

class TextStep final : public PreStep {
 public:
  struct Output {
    std::vector<int64_t> text::Encoding::* list = nullptr;
    DType dtype = DType::kInt64;
  };

  TextStep(TextSettings settings, std::shared_ptr<const text::Tokenizer> tokenizer)
      : settings_(std::move(settings)), tokenizer_(std::move(tokenizer)) {}

  /// kInvalidArgument: the model's input has another form than a list of ids, or another length than one before.
  Status add(std::vector<int64_t> text::Encoding::* list, const TensorFacts& input) {
    if ((input.dtype != DType::kInt64 && input.dtype != DType::kInt32) || input.shape.rank() != 1)
      return invalid(fmt::format("{}: input '{}' is {} {} for one row, and not a list of INT64 or INT32", named(), input.name,
                                 dtype_name(input.dtype), input.shape.str()));
    if (const int64_t length = input.shape[0]; length >= 0) {
      if (fixed_ && *fixed_ != length)
        return invalid(fmt::format("{}: the model's inputs have {} and {} tokens", named(), *fixed_, length));
      fixed_ = length;
    }
    makes_.push_back(input);
    outputs_.push_back({list, input.dtype});
    return {};
  }

  Status settle_length() {
    options_.max_length = settings_.max_length;
    options_.truncate = settings_.truncate;
    if (!fixed_) return {};
    if (settings_.max_length && *settings_.max_length > *fixed_)
      return invalid(fmt::format("{}: 'max_length: {}' is more than the {} tokens of the model", named(), *settings_.max_length, *fixed_));
    if (!settings_.pad_to.empty()) return invalid(fmt::format("{}: 'pad_to' has no meaning, the model takes {} tokens", named(), *fixed_));
    if (!options_.max_length) options_.max_length = fixed_;
    return {};
  }

  std::span<const std::string> inputs() const override { return settings_.inputs; }
  std::span<const TensorFacts> makes() const override { return makes_; }
  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 1> kParts = {"tokenize"};
    return kParts;
  }
  bool quick(std::span<const std::string_view> elements) const override {
    constexpr size_t kQuickBytes = 1024;  // tens of microseconds
    size_t bytes = 0;
    for (const std::string_view element : elements) bytes += element.size();
    return bytes <= kQuickBytes;
  }

  Result<std::vector<Made>> run(std::span<const std::string_view> elements, RowFacts& facts, Laps& laps) const override {
    const auto pair = elements.size() > 1 ? std::optional(elements[1]) : std::nullopt;
    SERIN_TRY(text::Encoding encoding, tokenizer_->encode(elements.front(), pair, options_));
    if (fixed_) {
      tokenizer_->pad(encoding, static_cast<size_t>(*fixed_));
    } else if (!settings_.pad_to.empty()) {
      const auto length = static_cast<int64_t>(encoding.ids.size());
      const auto next = std::ranges::lower_bound(settings_.pad_to, length);
      if (next != settings_.pad_to.end()) tokenizer_->pad(encoding, static_cast<size_t>(*next));
    }
    std::vector<Made> made;
    for (const Output& output : outputs_) {
      const std::vector<int64_t>& list = encoding.*output.list;
      made.push_back(Made::numbers(output.dtype, {static_cast<int64_t>(list.size())}));
      if (output.dtype == DType::kInt64)
        std::ranges::copy(list, made.back().view().as<int64_t>());
      else
        std::ranges::transform(list, made.back().view().as<int32_t>(), [](int64_t id) { return static_cast<int32_t>(id); });
    }
    facts.mask = std::move(encoding.mask);
    laps.next();
    return made;
  }

  std::string named() const { return fmt::format("step 'text: {}'", settings_.inputs.front()); }

 private:
  const TextSettings settings_;
  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  text::EncodeOptions options_;
  std::optional<int64_t> fixed_;
  std::vector<TensorFacts> makes_;
  std::vector<Output> outputs_;
};

Result<std::vector<int64_t>> read_lengths(const config::Node& node) {
  const auto items = node.is_list() ? node.items() : std::vector{node};
  if (items.empty() || items.size() > 32) return node.error("must be a length or a list of 1 to 32 lengths");
  std::vector<int64_t> lengths;
  for (const config::Node& item : items) {
    SERIN_TRY(const int64_t length, item.integer(1, kLongestText));
    if (!lengths.empty() && length <= lengths.back()) return item.error("lengths must rise");
    lengths.push_back(length);
  }
  return lengths;
}

}  // namespace

Result<TextSettings> read_text_step(const config::Node& node, const FindFile& files) {
  SERIN_CHECK(node.allow_only({"text", "pair", "to", "tokenizer", "lower_case", "style", "max_bytes", "max_length", "truncate", "pad_to"}));
  TextSettings settings;
  for (const std::string_view key : {"text", "pair"}) {
    if (key == "pair" && !node.has(key)) continue;
    SERIN_TRY(const config::Node input, node.at(key));
    SERIN_TRY(std::string name, input.text());
    settings.inputs.push_back(std::move(name));
  }
  SERIN_TRY(const config::Node tokenizer, node.at("tokenizer"));
  SERIN_TRY(settings.tokenizer, find_file(tokenizer, files));
  settings.stamp = FileStamp::of(settings.tokenizer);
  if (node.has("lower_case")) {
    SERIN_TRY(settings.lower_case, node.boolean("lower_case", true));
  }
  if (const auto style = node.find("style")) {
    SERIN_TRY(settings.style, style->one_of({"none", "llama", "t5", "xlm-r"}));
  }
  SERIN_TRY(settings.max_bytes, node.integer("max_bytes", 1, int64_t{1} << 30, settings.max_bytes));
  if (const auto length = node.find("max_length")) {
    SERIN_TRY(settings.max_length, length->integer(1, kLongestText));
  }
  SERIN_TRY(settings.truncate, node.boolean("truncate", true));
  if (const auto lengths = node.find("pad_to")) {
    SERIN_TRY(settings.pad_to, read_lengths(*lengths));
  }
  if (const auto to = node.find("to")) {
    SERIN_CHECK(to->allow_only({"ids", "mask", "types"}));
    SERIN_TRY(const config::Node ids, to->at("ids"));
    SERIN_TRY(settings.ids, ids.text());
    SERIN_TRY(settings.mask, to->text("mask", ""));
    SERIN_TRY(settings.types, to->text("types", ""));
  }
  return settings;
}

Result<std::shared_ptr<const PreStep>> make_text_step(TextSettings settings, std::span<const TensorFacts> model) {
  std::array<std::string, 3> names = {settings.ids, settings.mask, settings.types};
  if (settings.ids.empty())
    for (size_t i = 0; i < names.size(); ++i)
      if (i == 0 || find_tensor(model, kUsualInputs[i])) names[i] = kUsualInputs[i];
  text::LoadOptions options;
  options.lower_case = settings.lower_case;
  options.style = settings.style;
  options.max_text_bytes = static_cast<size_t>(settings.max_bytes);
  SERIN_TRY(auto tokenizer, text::Tokenizer::load(settings.tokenizer, options));
  const auto step = std::make_shared<TextStep>(std::move(settings), std::move(tokenizer));
  constexpr std::array kLists = {&text::Encoding::ids, &text::Encoding::mask, &text::Encoding::types};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const TensorFacts* const input = find_tensor(model, names[i]);
    if (!input) return invalid(fmt::format("{}: the model has no input '{}'; 'to' names those that it fills", step->named(), names[i]));
    SERIN_CHECK(step->add(kLists[i], *input));
  }
  SERIN_CHECK(step->settle_length());
  return std::shared_ptr<const PreStep>(step);
}

}  // namespace serin::steps
