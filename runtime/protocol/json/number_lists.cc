// number_lists.cc: reads lists of numbers. Numbers of up to sixteen characters without an exponent, the usual form of floats, are read
// eight digits at a time, without a branch on the number of digits. The digits are an integer below 2^53, divided by a power of ten that a
// double can store, which IEEE rounds once and correctly. All others are checked against JSON's grammar and left to the C++ library.

#include "runtime/protocol/json/number_lists.h"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>

#include "runtime/base/number.h"
#include "runtime/protocol/json/json_words.h"

namespace serin::protocol {
namespace {

constexpr size_t kWorthCutting = 4096, kLargestKeptList = size_t{1} << 20;  // bytes of text, numbers of a list
constexpr unsigned kReach = 16;                                             // bytes before the end of a number that read_plain() looks at
constexpr size_t kJudged = 4;  // where one of the first numbers is too long for read_plain(), most are, and a parser is faster

constexpr double kTens[16] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr int64_t kWholeTens[16] = {1,
                                    10,
                                    100,
                                    1'000,
                                    10'000,
                                    100'000,
                                    1'000'000,
                                    10'000'000,
                                    100'000'000,
                                    1'000'000'000,
                                    10'000'000'000,
                                    100'000'000'000,
                                    1'000'000'000'000,
                                    10'000'000'000'000,
                                    100'000'000'000'000,
                                    1'000'000'000'000'000};

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// The last `count` of the eight characters before `end` as a number; 0 to 8.
int64_t last_digits(const char* end, unsigned count) {
  uint64_t text;
  std::memcpy(&text, end - 8, sizeof text);
  const unsigned unwanted = 4 * (8 - count);  // bits, half of them
  uint64_t digits = (text ^ 0x3030'3030'3030'3030) >> unwanted >> unwanted << unwanted << unwanted;
  digits = digits * 10 + (digits >> 8);
  digits = (digits & 0x0000'00ff'0000'00ff) * 0x000f'4240'0000'0064 + (digits >> 16 & 0x0000'00ff'0000'00ff) * 0x0000'2710'0000'0001;
  return static_cast<int64_t>(digits >> 32);
}

/// Every other number has another sign: a branch on it would be guessed wrong half of the time.
double signed_as(double value, bool negative) { return std::bit_cast<double>(std::bit_cast<uint64_t>(value) ^ uint64_t{negative} << 63); }

/// The characters from `at` to `end`, where they are a number without an exponent. Looks at the kReach bytes before `end`, whatever begins there.
bool read_plain(const char* at, const char* end, double& value) {
  const bool negative = *at == '-';
  at += negative;
  const auto size = static_cast<unsigned>(end - at);
  if (size - 1 >= kReach) return false;
  const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(end - kReach));
  const __m128i digits = _mm_sub_epi8(text, _mm_set1_epi8('0'));
  const auto is_not = ~static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits))) & 0xffff;
  const unsigned others = is_not >> (kReach - size);  // by bit: characters that are no digits
  const auto whole = static_cast<unsigned>(std::countr_zero(others | 1u << size));
  if (whole - 1 >= 8 || (whole > 1 && *at == '0')) return false;
  if (whole == size) {
    const int64_t number = last_digits(end, whole);
    value = static_cast<double>((number ^ -int64_t{negative}) + negative);  // -0 is the integer 0, as the parser has it
    return true;
  }
  const unsigned behind = size - whole - 1;
  if ((others & (others - 1)) != 0 || at[whole] != '.' || behind == 0) return false;
  int64_t number = whole == 1 ? *at - '0' : last_digits(at + whole, whole);  // fewer than sixteen digits: below 2^53
  number *= kWholeTens[behind];
  if (behind > 8) number += kWholeTens[8] * last_digits(end - 8, behind - 8);
  number += last_digits(end, behind < 8 ? behind : 8);
  value = signed_as(static_cast<double>(number) / kTens[behind], negative);
  return true;
}

/// The end of any number that JSON has, but for those that no double holds. Rare, and kept out of the way of the others.
[[gnu::noinline]] const char* read_any(const char* at, const char* end, double& value) {
  const char* const begin = at;
  const auto skip_digits = [&] {
    const char* const first = at;
    while (at < end && is_digit(*at)) ++at;
    return at > first;
  };
  if (at < end && *at == '-') ++at;
  const bool zero_first = at < end && *at == '0';
  const char* const whole = at;
  if (!skip_digits() || (zero_first && at - whole > 1)) return nullptr;
  const bool integer = at == end || (*at != '.' && (*at | 0x20) != 'e');
  if (at < end && *at == '.') {
    ++at;
    if (!skip_digits()) return nullptr;
  }
  if (at < end && (*at | 0x20) == 'e') {
    ++at;
    if (at < end && (*at == '+' || *at == '-')) ++at;
    if (!skip_digits()) return nullptr;
  }
  const auto [stopped, failure] = std::from_chars(begin, at, value);
  if (integer) value += 0.0;  // -0
  return failure == std::errc() && stopped == at ? at : nullptr;
}

/// Grows by doubling without touching what is not used yet.
class Numbers {
 public:
  double* room(size_t used) {
    if (used == capacity_) {
      capacity_ = std::max<size_t>(1024, 2 * capacity_);
      auto larger = std::make_unique_for_overwrite<double[]>(capacity_);
      if (used > 0) std::memcpy(larger.get(), numbers_.get(), used * sizeof(double));
      numbers_ = std::move(larger);
    }
    return numbers_.get() + used;
  }
  const double* data() const { return numbers_.get(); }
  /// What is too large to be kept for the next text.
  std::unique_ptr<double[]> give_up() {
    if (capacity_ <= kLargestKeptList) return nullptr;
    capacity_ = 0;
    return std::move(numbers_);
  }

 private:
  std::unique_ptr<double[]> numbers_;
  size_t capacity_ = 0;
};

Numbers& thread_numbers() {
  thread_local Numbers numbers;
  return numbers;
}

/// The characters from `at` to `end`, where they are a number and spaces around it; it is the one behind `used` others.
bool read_number(const char* begin, const char* at, const char* end, size_t used, double& value) {
  while (at < end && is_space(*at)) ++at;
  while (at < end && is_space(end[-1])) --end;
  if (at == end || (used < kJudged && end - at > kReach + 1)) return false;
  if (at - begin >= kReach && read_plain(at, end, value)) return true;
  return read_any(at, end, value) == end;
}

/// By bit: which of 64 characters end a number.
uint64_t ends_in(const char* text) {
  uint64_t ends = 0;
  for (ptrdiff_t part = 3; part >= 0; --part) {
    const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + 16 * part));
    const __m128i found = _mm_or_si128(_mm_cmpeq_epi8(some, _mm_set1_epi8(',')), _mm_cmpeq_epi8(some, _mm_set1_epi8(']')));
    ends = ends << 16 | static_cast<unsigned>(_mm_movemask_epi8(found));
  }
  return ends;
}

/// Behind the bracket that closes the list which begins at `at`; null where it is no flat list of numbers, or empty. The ends of numbers are found before they
/// are read, so that none waits for the one before it.
const char* read_list(const char* begin, const char* at, const char* end, Numbers& numbers, size_t& used) {
  constexpr ptrdiff_t kBlock = 64;
  for (const char* block = at; end - block >= kBlock; block += kBlock) {
    for (uint64_t ends = ends_in(block); ends != 0; ends &= ends - 1) {
      const char* const stop = block + std::countr_zero(ends);
      if (!read_number(begin, at, stop, used, *numbers.room(used))) return nullptr;
      ++used;
      at = stop + 1;
      if (*stop == ']') return at;
    }
  }
  while (true) {
    const char* const stop = std::find_if(at, end, [](char c) { return c == ',' || c == ']'; });
    if (stop == end || !read_number(begin, at, stop, used, *numbers.room(used))) return nullptr;
    ++used;
    at = stop + 1;
    if (*stop == ']') return at;
  }
}

constexpr char kMark = 0x7f;        // begins the string in place of a list; a text that has one itself is not cut
constexpr size_t kWorthAMark = 16;  // numbers of the first list

/// A text in the making: what stands in the place of a list is written where it was.
class Cut {
 public:
  explicit Cut(std::string_view json) : json_(json) {}

  /// Behind the list of numbers whose bracket is at `at`; npos where there is none.
  size_t take(size_t at) {
    const char* const begin = json_.data();
    const char* const behind = read_list(begin, begin + at + 1, begin + json_.size(), numbers_, used_);
    if (!behind) return std::string_view::npos;
    made_.text.append(json_.substr(kept_, at - kept_));
    ends_.push_back(used_);
    return kept_ = static_cast<size_t>(behind - begin);
  }
  std::string& text() { return made_.text; }
  size_t lists() const { return ends_.size(); }
  size_t numbers() const { return used_; }
  /// Nothing where there was no list, or where an escape in what is left might be another way to write what was looked for.
  std::optional<CutText> finish() {
    made_.text.append(json_.substr(kept_));
    if (ends_.empty() || made_.text.find('\\') != std::string::npos) return std::nullopt;
    size_t first = 0;
    for (const size_t last : ends_) {
      made_.lists.emplace_back(numbers_.data() + first, last - first);
      first = last;
    }
    made_.large = numbers_.give_up();
    return std::move(made_);
  }
  ~Cut() { numbers_.give_up(); }

 private:
  const std::string_view json_;
  Numbers& numbers_ = thread_numbers();
  CutText made_;
  std::vector<size_t> ends_;  // of the lists, as numbers
  size_t used_ = 0, kept_ = 0;
};

}  // namespace

std::optional<CutText> cut_number_lists(std::string_view json, std::string_view key) {
  constexpr auto kNone = std::string_view::npos;
  if (json.size() < kWorthCutting) return std::nullopt;
  const std::string quoted = "\"" + std::string(key) + "\"";
  Cut cut(json);
  for (size_t at = 0; (at = json.find(quoted, at)) != kNone;) {
    at = json.find_first_not_of(kSpaces, at + quoted.size());
    if (at == kNone) return std::nullopt;
    if (json[at] != ':') continue;  // a value that is called as the key is
    at = json.find_first_not_of(kSpaces, at + 1);
    if (at == kNone || json[at] != '[') return std::nullopt;
    at = cut.take(at);
    if (at == kNone) return std::nullopt;
    (cut.text() += std::to_string(cut.lists() - 1)) += ' ';  // a digit behind the list is no part of it
  }
  return cut.finish();
}

std::optional<CutText> cut_inner_lists(std::string_view json) {
  constexpr auto kNone = std::string_view::npos;
  if (json.size() < kWorthCutting || json.find(kMark) != kNone) return std::nullopt;
  Cut cut(json);
  for (size_t at = json.find_first_of("\"["); at < json.size(); at = json.find_first_of("\"[", at)) {
    if (json[at] == '"') {
      at = skip_string(json, at);
      continue;
    }
    const size_t first = json.find_first_not_of(kSpaces, at + 1);
    if (first == kNone || (!is_digit(json[first]) && json[first] != '-')) {
      ++at;
      continue;
    }
    at = cut.take(at);
    if (at == kNone || cut.numbers() < kWorthAMark) return std::nullopt;
    const size_t next = json.find_first_not_of(kSpaces, at);
    if (next != kNone && json[next] == ':') return std::nullopt;  // no list is a key
    ((cut.text() += '"') += kMark).append(std::to_string(cut.lists() - 1)) += '"';
  }
  return cut.finish();
}

std::optional<size_t> cut_list(std::string_view mark) {
  if (!mark.starts_with(kMark)) return std::nullopt;
  return parse_number<size_t>(mark.substr(1));
}

}  // namespace serin::protocol
