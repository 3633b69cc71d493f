// ctc.cc: the best class of each step; a class that repeats the step before it, and the blank, write nothing.

#include "runtime/steps/vision/ctc.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/utf8.h"
#include "runtime/steps/vision/greatest.h"

namespace serin::steps {
namespace {

constexpr size_t kLargestDictionary = 16 << 20;
constexpr int64_t kBlank = 0;

/// Python's strip("\n").strip("\r\n") of a line.
std::string_view without_line_ends(std::string_view line) {
  while (line.starts_with('\r')) line.remove_prefix(1);
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

Dictionary Dictionary::of(std::vector<std::string> characters, bool with_space, std::string name) {
  Dictionary made;
  made.characters_ = std::move(characters);
  made.characters_.insert(made.characters_.begin(), std::string());
  if (with_space) made.characters_.emplace_back(" ");
  made.name_ = std::move(name);
  return made;
}

Result<Dictionary> Dictionary::parse(std::string_view text, bool with_space, std::string name) {
  if (!is_utf8(text)) return invalid(fmt::format("dictionary {}: is not UTF-8", name));
  std::vector<std::string> characters;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    characters.emplace_back(without_line_ends(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (characters.empty()) return invalid(fmt::format("dictionary {}: is empty", name));
  return of(std::move(characters), with_space, std::move(name));
}

Result<Dictionary> Dictionary::load(const std::string& path, bool with_space) {
  SERIN_TRY(const std::string text, read_file(path, kLargestDictionary));
  return parse(text, with_space, path);
}

Status Dictionary::fits(int64_t model_classes) const {
  if (model_classes <= classes()) return {};
  return invalid(fmt::format("dictionary {}: has {} characters with the blank, and the model has {} classes{}", name_, classes(),
                             model_classes, model_classes == classes() + 1 ? "; is the space missing (use_space_char)?" : ""));
}

Result<Reading> read_ctc(std::span<const float> values, int64_t steps, int64_t classes, const Dictionary& dictionary) {
  SERIN_CHECK(dictionary.fits(classes));
  const auto size = static_cast<int64_t>(values.size());
  if (steps < 0 || classes < 1 || size % classes != 0 || size / classes != steps)
    return invalid(fmt::format("the recogniser's output [{}, {}] does not fit its {} values", steps, classes, size));
  Reading reading;
  double sum = 0;
  int64_t kept = 0, before = -1;
  for (int64_t step = 0; step < steps; ++step) {
    const Greatest best = greatest_of(values.subspan(static_cast<size_t>(step * classes), static_cast<size_t>(classes)));
    if (best.nan) return invalid(fmt::format("the recogniser's output has NaN in step {}", step));
    const auto index = static_cast<int64_t>(best.index);
    if (index == std::exchange(before, index) || index == kBlank) continue;
    reading.text += dictionary.character(index);
    sum += best.value;
    ++kept;
  }
  if (kept > 0) reading.score = static_cast<float>(sum / static_cast<double>(kept));
  return reading;
}

}  // namespace serin::steps
