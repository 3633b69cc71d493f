// differences.cc: one function for each kind of step, with a line for each of its keys. Settings that differ in a field that no line reads are
// reported without a key, so a new key cannot be missed.

#include "runtime/steps/pipeline/differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/base/file.h"

namespace serin::steps {
namespace {

/// The keys whose values differ.
class DifferentKeys {
 public:
  DifferentKeys& key(std::string_view name, bool equal) {
    if (!equal) quoted_.push_back(fmt::format("'{}'", name));
    return *this;
  }
  /// `equal`: of the settings as a whole. Empty: nothing differs.
  std::string text(bool equal) const { return equal || !quoted_.empty() ? fmt::format("{}", fmt::join(quoted_, ", ")) : "its settings"; }

 private:
  std::vector<std::string> quoted_;
};

/// The contents, also of a vocabulary's tokenizer_config.json. What cannot be read differs from everything.
bool same_contents(const TextSettings& a, const TextSettings& b) {
  if (a.tokenizer == b.tokenizer && a.stamp == b.stamp) return true;
  constexpr size_t kMostBytes = size_t{1} << 30;
  const auto one = read_file(a.tokenizer, kMostBytes), other = read_file(b.tokenizer, kMostBytes);
  if (!one || !other || *one != *other) return false;
  const auto neighbour = [](const std::string& tokenizer) {
    const auto read = read_file((std::filesystem::path(tokenizer).parent_path() / "tokenizer_config.json").string(), kMostBytes);
    return read ? *read : std::string();
  };
  return neighbour(a.tokenizer) == neighbour(b.tokenizer);
}

bool same_characters(const Dictionary& a, const Dictionary& b) {
  bool same = a.classes() == b.classes();
  for (int64_t i = 0; same && i < a.classes(); ++i) same = a.character(i) == b.character(i);
  return same;
}

std::string different_keys(const PictureSettings& a, const PictureSettings& b) {
  return DifferentKeys()
      .key("picture", a.input == b.input)
      .key("to", a.to == b.to)
      .key("shape_to", a.shape_to == b.shape_to)
      .key("scale_to", a.scale_to == b.scale_to)
      .key("color", a.decode.color == b.decode.color)
      .key("orient", a.decode.orient == b.decode.orient)
      .key("max_pixels", a.decode.max_pixels == b.decode.max_pixels)
      .key("resize", a.resize == b.resize)
      .key("crop", a.crop == b.crop)
      .key("pad", a.pad == b.pad)
      .key("scale", a.scale == b.scale)
      .key("mean", a.mean == b.mean)
      .key("std", a.std == b.std)
      .key("layout", a.layout == b.layout)
      .text(a == b);
}

std::string different_keys(const TextSettings& a, const TextSettings& b) {
  const bool same_file = same_contents(a, b);
  TextSettings rest = b;
  rest.tokenizer = a.tokenizer;
  rest.stamp = a.stamp;
  return DifferentKeys()
      .key("text", a.inputs.front() == b.inputs.front())
      .key("pair", std::vector(a.inputs.begin() + 1, a.inputs.end()) == std::vector(b.inputs.begin() + 1, b.inputs.end()))
      .key("tokenizer", same_file)
      .key("lower_case", a.lower_case == b.lower_case)
      .key("style", a.style == b.style)
      .key("max_bytes", a.max_bytes == b.max_bytes)
      .key("max_length", a.max_length == b.max_length)
      .key("truncate", a.truncate == b.truncate)
      .key("pad_to", a.pad_to == b.pad_to)
      .key("to", std::tie(a.ids, a.mask, a.types) == std::tie(b.ids, b.mask, b.types))
      .text(same_file && a == rest);
}

std::string different_keys(const ClassesSettings& a, const ClassesSettings& b) {
  using Function = ClassesSettings::Function;
  const auto same_use = [&](Function function) { return (a.function == function) == (b.function == function); };
  return DifferentKeys()
      .key("classes", a.output == b.output)
      .key("softmax", same_use(Function::kSoftmax))
      .key("sigmoid", same_use(Function::kSigmoid))
      .key("top", a.top == b.top)
      .key("labels", a.labels == b.labels)
      .key("label", a.label == b.label)
      .key("score", a.score == b.score)
      .text(a == b);
}

std::string different_keys(const DetectionsSettings& a, const DetectionsSettings& b) {
  return DifferentKeys()
      .key("detections", a.outputs == b.outputs)
      .key("form", a.head.form == b.head.form && a.suppressed == b.suppressed)
      .key("transposed", a.head.columns_first == b.head.columns_first)
      .key("objectness", a.head.objectness == b.head.objectness)
      .key("activation", a.head.activation == b.head.activation)
      .key("background", a.head.last_is_background == b.head.last_is_background)
      .key("every_class", a.head.every_class == b.head.every_class)
      .key("relative", a.relative == b.relative)
      .key("in_source", a.in_source == b.in_source)
      .key("score", a.head.score_threshold == b.head.score_threshold)
      .key("iou", a.suppress.iou == b.suppress.iou)
      .key("across_labels", a.suppress.across_labels == b.suppress.across_labels)
      .key("most", a.suppress.most == b.suppress.most)
      .key("labels", a.labels == b.labels)
      .key("name", a.name == b.name)
      .text(a == b);
}

std::string different_keys(const CtcSettings& a, const CtcSettings& b) {
  const bool same_file = same_characters(a.dictionary, b.dictionary);
  CtcSettings rest = b;
  rest.dictionary = a.dictionary;  // the name of its file says nothing
  return DifferentKeys()
      .key("ctc", a.output == b.output)
      .key("dictionary", same_file)
      .key("text", a.text == b.text)
      .key("score", a.score == b.score)
      .text(same_file && a == rest);
}

std::string different_keys(const EmbeddingSettings& a, const EmbeddingSettings& b) {
  return DifferentKeys()
      .key("embedding", a.output == b.output)
      .key("pooling", a.pooling == b.pooling)
      .key("normalize", a.normalize == b.normalize)
      .key("name", a.name == b.name)
      .text(a == b);
}

std::string title_of(const PictureSettings& settings) { return "picture: " + settings.input; }
std::string title_of(const TextSettings& settings) { return "text: " + settings.inputs.front(); }
std::string title_of(const ClassesSettings& settings) { return "classes: " + settings.output; }
std::string title_of(const DetectionsSettings& settings) { return fmt::format("detections: {}", fmt::join(settings.outputs, ", ")); }
std::string title_of(const CtcSettings& settings) { return "ctc: " + settings.output; }
std::string title_of(const EmbeddingSettings& settings) { return "embedding: " + settings.output; }

template <class Step>
std::string step_name(std::string_view list, const std::vector<Step>& steps, size_t index) {
  return fmt::format("step {} of {} ({})", index + 1, list, std::visit([](const auto& step) { return title_of(step); }, steps[index]));
}

template <class Step>
std::string different_keys_of(const Step& first, const Step& second) {
  return std::visit(
      []<class A, class B>(const A& a, const B& b) -> std::string {
        if constexpr (std::is_same_v<A, B>)
          return different_keys(a, b);
        else
          return fmt::format("the candidate has '{}' there", title_of(b));
      },
      first, second);
}

template <class Step>
void append_differences(std::string_view list, const std::vector<Step>& first, const std::vector<Step>& second,
                        std::vector<StepDifference>& found) {
  const size_t both = std::min(first.size(), second.size());
  for (size_t i = 0; i < both; ++i)
    if (std::string what = different_keys_of(first[i], second[i]); !what.empty())
      found.push_back({step_name(list, first, i), std::move(what)});
  for (size_t i = both; i < first.size(); ++i) found.push_back({step_name(list, first, i), "only the reference has it"});
  for (size_t i = both; i < second.size(); ++i) found.push_back({step_name(list, second, i), "only the candidate has it"});
}

}  // namespace

std::string name_of_pre(const StepsSettings& settings, size_t index) { return step_name("pre", settings.pre, index); }
std::string name_of_post(const StepsSettings& settings, size_t index) { return step_name("post", settings.post, index); }

std::vector<StepDifference> find_differences(const StepsSettings& reference, const StepsSettings& candidate) {
  std::vector<StepDifference> found;
  append_differences("pre", reference.pre, candidate.pre, found);
  append_differences("post", reference.post, candidate.post, found);
  return found;
}

}  // namespace serin::steps
