// text_anything.cc: an accepted file encodes or refuses, always in the same way.

#include "tests/fuzz/text_anything.h"

#include <optional>
#include <string>

#include "runtime/steps/text/tokenizer.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/must.h"

namespace serin::fuzz {
namespace {

constexpr std::string_view kText =
    "Hello, \u4f60\u597d [MASK] 123 \u00e9\u0301 caf\ufb01 \U0001F468\u200d\U0001F469 it's  "
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Takes the part in front of the next line "===".
std::optional<std::string_view> next_part(std::string_view& input) {
  if (input.data() == nullptr) return std::nullopt;
  const size_t at = input.find(kBetween);
  const std::string_view part = input.substr(0, at);
  input = at == std::string_view::npos ? std::string_view() : input.substr(at + kBetween.size());
  return part;
}

}  // namespace

void text_anything(std::string_view input) {
  namespace text = steps::text;
  const std::string_view file = next_part(input).value_or("");
  const std::string_view first = next_part(input).value_or(kText);
  const std::optional<std::string_view> second = next_part(input);
  const auto tokenizer = text::Tokenizer::read(file, "", {.style = file.size() % 2 == 0 ? "none" : "t5"});
  if (!tokenizer) return;
  const auto check = [&](const std::optional<std::string_view>& pair, const text::EncodeOptions& options) {
    auto encoding = (*tokenizer)->encode(first, pair, options);
    const auto again = (*tokenizer)->encode(first, pair, options);
    must(encoding.has_value() == again.has_value(), "a text is refused and then encoded");
    if (!encoding) return;
    must(encoding->ids == again->ids && encoding->types == again->types, "a text has other ids the second time");
    must(encoding->types.size() == encoding->ids.size() && encoding->mask.size() == encoding->ids.size(), "lists of several lengths");
    if (options.max_length) must(encoding->ids.size() <= static_cast<size_t>(*options.max_length), "more tokens than max_length");
    (*tokenizer)->pad(*encoding, 9);
    must(encoding->mask.size() >= 9, "less padding than asked for");
  };
  check(second, {.max_length = 100'000});
  check(second, {.max_length = 5});
  check(second ? std::nullopt : std::optional(first), {.max_length = 8, .special_tokens = false});
}

}  // namespace serin::fuzz
