#include "runtime/protocol/json/json_words.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace serin::protocol {
namespace {

struct Word {
  std::string_view text;
  std::string_view mark;  ///< the string in its place; it fits
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kWords = {Word{"NaN", "\x7f", std::numeric_limits<double>::quiet_NaN()}, Word{"Infinity", "\x7f+", kInfinity},
                               Word{"-Infinity", "\x7f-", -kInfinity}};

/// Has letters of words, and no text of its own that a mark might be taken for.
bool may_be_marked(std::string_view text) {
  const auto has = [text](std::string_view part) { return text.find(part) != std::string_view::npos; };
  return (has("N") || has("I")) && !has("\x7f") && !has("\\u007f") && !has("\\u007F");
}

}  // namespace

size_t skip_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

bool mark_number_words(std::span<char> text, bool in_lists) {
  const std::string_view whole(text.data(), text.size());
  if (!may_be_marked(whole)) return false;
  bool found = false;
  for (size_t at = whole.find_first_of("\"NI-"); at < whole.size(); at = whole.find_first_of("\"NI-", at)) {
    if (whole[at] == '"') {
      at = skip_string(whole, at);
      continue;
    }
    const auto word = std::ranges::find_if(kWords, [&](const Word& known) { return whole.substr(at).starts_with(known.text); });
    if (word == kWords.end()) {
      ++at;
      continue;
    }
    const size_t before = whole.find_last_not_of(kSpaces, at - 1), next = whole.find_first_not_of(kSpaces, at + word->text.size());
    const bool key = next != std::string_view::npos && whole[next] == ':';
    const bool element = at > 0 && before != std::string_view::npos && (whole[before] == '[' || whole[before] == ',');
    if (key || (in_lists && !element)) {
      at += word->text.size();
      continue;
    }
    const auto place = text.subspan(at, word->text.size());
    std::ranges::fill(place, ' ');
    place[0] = '"';
    std::ranges::copy(word->mark, place.begin() + 1);
    place[word->mark.size() + 1] = '"';
    at += place.size();
    found = true;
  }
  return found;
}

std::optional<double> number_word(const simdjson::dom::element& element) {
  std::string_view text;
  if (element.get(text)) return std::nullopt;
  const auto word = std::ranges::find(kWords, text, &Word::mark);
  return word == kWords.end() ? std::nullopt : std::optional(word->value);
}

}  // namespace serin::protocol
