// datatype.cc: the tables of element types' names, and the grammar of Serin's headers.

#include "runtime/protocol/tensor/datatype.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <ranges>
#include <utility>

#include "runtime/base/nearest_name.h"
#include "runtime/base/number.h"

namespace serin::protocol {
namespace {

struct Name {
  DType dtype;
  std::string_view text;
};
constexpr std::array kNames = {Name{DType::kBool, "BOOL"},     Name{DType::kInt8, "INT8"},     Name{DType::kInt16, "INT16"},
                               Name{DType::kInt32, "INT32"},   Name{DType::kInt64, "INT64"},   Name{DType::kUInt8, "UINT8"},
                               Name{DType::kUInt16, "UINT16"}, Name{DType::kUInt32, "UINT32"}, Name{DType::kUInt64, "UINT64"},
                               Name{DType::kFloat16, "FP16"},  Name{DType::kBFloat16, "BF16"}, Name{DType::kFloat32, "FP32"},
                               Name{DType::kFloat64, "FP64"},  Name{DType::kString, "BYTES"}};

/// What others call them, but for the case of the letters.
constexpr std::pair<std::string_view, std::string_view> kOthersNames[] = {
    {"float", "FP32"},   {"float32", "FP32"}, {"single", "FP32"},   {"float64", "FP64"}, {"double", "FP64"},
    {"float16", "FP16"}, {"half", "FP16"},    {"bfloat16", "BF16"}, {"int", "INT32"},    {"long", "INT64"},
    {"boolean", "BOOL"}, {"string", "BYTES"}, {"str", "BYTES"},     {"object", "BYTES"}, {"text", "BYTES"},
};

// Takes digits up to `end_mark` (or the end of the text) off the front of `text`.
template <class T>
std::optional<T> take_number(std::string_view& text, char end_mark, int base) {
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (end_mark == '\0') return text.empty() ? std::optional<T>(value) : std::nullopt;
  if (text.empty() || text.front() != end_mark) return std::nullopt;
  text.remove_prefix(1);
  return value;
}

}  // namespace

std::string_view oip_datatype(DType dtype) {
  for (const Name& name : kNames)
    if (name.dtype == dtype) return name.text;
  return "";
}

std::string with_article(DType dtype) {
  const std::string_view name = oip_datatype(dtype);
  const bool vowel = name.starts_with('F') || name.starts_with('I');  // an FP32, an INT8; a UINT8, a BOOL
  return fmt::format("{} {}", vowel ? "an" : "a", name);
}

std::optional<DType> parse_oip_datatype(std::string_view name) {
  for (const Name& entry : kNames)
    if (entry.text == name) return entry.dtype;
  return std::nullopt;
}

std::string_view nearest_oip_datatype(std::string_view word) {
  for (const std::string_view prefix : {"torch.", "numpy.", "np.", "tf.", "TYPE_", "DT_"})
    if (word.starts_with(prefix)) {
      word.remove_prefix(prefix.size());
      break;
    }
  for (const auto& [other, ours] : kOthersNames)
    if (equal_but_for_case(word, other)) return ours;
  return nearest_name(word, kNames | std::views::transform(&Name::text));
}

BatchTagText::BatchTagText(const BatchTag& tag)
    : size_(fmt::format_to_n(text_.data(), text_.size(), "{:016x}-{}/{}/{}", tag.boot, tag.seq, tag.i, tag.n).size) {}

std::optional<BatchTag> parse_batch_tag(std::string_view text) {
  const auto boot = take_number<uint64_t>(text, '-', 16);
  const auto seq = boot ? take_number<uint64_t>(text, '/', 10) : std::nullopt;
  const auto i = seq ? take_number<uint32_t>(text, '/', 10) : std::nullopt;
  const auto n = i ? take_number<uint32_t>(text, '\0', 10) : std::nullopt;
  if (!n || *n == 0 || *i >= *n) return std::nullopt;
  return BatchTag{*boot, *seq, *i, *n};
}

Result<std::chrono::milliseconds> parse_time_left(std::string_view text) {
  constexpr int64_t kDay = 86'400'000;
  const auto value = parse_number<int64_t>(text);
  if (value && *value >= 1 && *value <= kDay) return std::chrono::milliseconds(*value);
  return Error{Code::kInvalidArgument, fmt::format("header {} must be a whole number of milliseconds, from 1 to {}", kTimeHeader, kDay)};
}

}  // namespace serin::protocol
