// convert.cc: numbers go through double or int64, whichever keeps them exact. A list in JSON is read without a tree of values.

#include "runtime/datasets/convert.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/element_type.h"
#include "runtime/base/number.h"
#include "runtime/base/utf8.h"

namespace serin::datasets {
namespace {

template <class T>
void put(T value, std::vector<std::byte>& to) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

/// Calls use(T{}) with the C++ type of a number.
template <class Use>
Status with_type(DType dtype, const Use& use) {
  return kernels::visit_dtype(dtype, [&]<class T>(kernels::Element<T>) -> Status {
    if constexpr (std::is_void_v<T>)
      return Error{Code::kUnsupported, fmt::format("elements of type {} are not read", dtype_name(dtype))};
    else
      return use(T{});
  });
}

template <class From>
Status put_as(From value, DType dtype, std::vector<std::byte>& to) {
  return with_type(dtype, [&](auto type) -> Status {
    using To = decltype(type);
    if constexpr (std::is_same_v<To, kernels::Half>) {
      put(kernels::to_half(static_cast<double>(value)), to);
    } else if constexpr (std::is_same_v<To, kernels::BFloat16>) {
      put(kernels::to_bfloat16(static_cast<double>(value)), to);
    } else if constexpr (std::is_floating_point_v<To>) {
      put(static_cast<To>(value), to);
    } else {
      bool fits = false;
      if constexpr (std::is_floating_point_v<From>) {
        // 2^digits is exact as a double, which the largest value need not be.
        const double end = std::ldexp(1.0, std::numeric_limits<To>::digits);
        fits = value == std::trunc(value) && value < end && value >= (std::is_signed_v<To> ? -end : 0.0);
      } else if constexpr (std::is_same_v<To, bool>) {
        fits = value == From{0} || value == From{1};
      } else {
        fits = std::in_range<To>(value);
      }
      if (!fits) return invalid(fmt::format("{} does not fit {}", value, dtype_name(dtype)));
      put(static_cast<To>(value), to);
    }
    return {};
  });
}

Status put_tensor(const TensorView& from, DType dtype, std::vector<std::byte>& to) {
  const auto count = static_cast<size_t>(from.elements());
  if (from.dtype == dtype) {
    const auto* const bytes = static_cast<const std::byte*>(from.data);
    to.insert(to.end(), bytes, bytes + count * dtype_size(dtype));
    return {};
  }
  return with_type(from.dtype, [&](auto type) -> Status {
    using From = decltype(type);
    const char* at = static_cast<const char*>(from.data);
    for (size_t i = 0; i < count; ++i, at += sizeof(From)) {
      From value;  // the bytes of a file have no alignment
      std::memcpy(&value, at, sizeof value);
      if constexpr (std::is_same_v<From, kernels::Half> || std::is_same_v<From, kernels::BFloat16>) {
        SERIN_CHECK(put_as(static_cast<double>(kernels::to_float(value)), dtype, to));
      } else if constexpr (std::is_same_v<From, float>) {
        SERIN_CHECK(put_as(static_cast<double>(value), dtype, to));
      } else if constexpr (std::is_same_v<From, bool>) {
        SERIN_CHECK(put_as(static_cast<int64_t>(value), dtype, to));
      } else {
        SERIN_CHECK(put_as(value, dtype, to));
      }
    }
    return {};
  });
}

void skip_blanks(std::string_view& text) { text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size())); }

/// Reads a number, or lists of them, from a text in JSON.
class ListReader {
 public:
  ListReader(std::string_view text, DType dtype, std::vector<std::byte>& to) : text_(text), dtype_(dtype), to_(to) {}

  Result<Shape> read() {
    SERIN_CHECK(value(0));
    skip_blanks(text_);
    if (!text_.empty()) return invalid(fmt::format("'{}' follows the value", utf8_prefix(text_, 20)));
    return shape_;
  }

 private:
  Status value(size_t depth) {
    skip_blanks(text_);
    return text_.starts_with('[') ? list(depth) : number(depth);
  }

  Status list(size_t depth) {
    if (!Shape::fits(depth + 1)) return invalid(fmt::format("more than {} lists in each other", Shape::kMaxRank));
    if (leaf_ && depth >= *leaf_) return ragged();
    text_.remove_prefix(1);
    int64_t count = 0;
    skip_blanks(text_);
    const size_t level = depth < shape_.rank() ? depth : (shape_.push_back(-1), depth);
    if (text_.starts_with(']')) {
      text_.remove_prefix(1);
    } else {
      while (true) {
        SERIN_CHECK(value(depth + 1));
        ++count;
        skip_blanks(text_);
        const bool more = text_.starts_with(',');
        if (!more && !text_.starts_with(']')) return invalid("a list does not end");
        text_.remove_prefix(1);
        if (!more) break;
      }
    }
    if (shape_[level] >= 0 && shape_[level] != count) return ragged();
    shape_[level] = count;
    return {};
  }

  Status number(size_t depth) {
    if (leaf_.value_or(depth) != depth || depth < shape_.rank()) return ragged();
    leaf_ = depth;
    int64_t whole = 0;
    const char *const begin = text_.data(), *const end = begin + text_.size();
    const auto [whole_end, whole_error] = std::from_chars(begin, end, whole);
    const bool is_whole =
        whole_error == std::errc() && (whole_end == end || std::string_view(".eE").find(*whole_end) == std::string_view::npos);
    if (is_whole) {
      text_.remove_prefix(static_cast<size_t>(whole_end - begin));
      return put_as(whole, dtype_, to_);
    }
    for (const auto& [word, meaning] : {std::pair<std::string_view, int64_t>{"true", 1}, {"false", 0}}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return put_as(meaning, dtype_, to_);
    }
    double value = 0;
    const auto [value_end, value_error] = std::from_chars(begin, end, value);
    if (value_error != std::errc()) {
      const std::string_view shown = utf8_prefix(text_.substr(0, text_.find_first_of(",]")), 40);
      return invalid(value_error == std::errc::result_out_of_range ? fmt::format("{} is too large for a number", shown)
                                                                   : fmt::format("'{}' is no number", shown));
    }
    text_.remove_prefix(static_cast<size_t>(value_end - begin));
    return put_as(value, dtype_, to_);
  }

  Error ragged() const { return invalid("lists of different lengths or depths"); }

  std::string_view text_;
  const DType dtype_;
  std::vector<std::byte>& to_;
  Shape shape_;
  std::optional<size_t> leaf_;  ///< depth of the numbers
};

Result<Shape> append_cell(const Cell& cell, DType dtype, std::vector<std::byte>& to) {
  switch (cell.kind) {
    case Cell::Kind::kMissing: return invalid("the value is missing");
    case Cell::Kind::kText: return invalid(fmt::format("{}, numbers of type {} are wanted", describe(cell), dtype_name(dtype)));
    case Cell::Kind::kNumbers: {
      SERIN_CHECK(put_tensor(cell.numbers, dtype, to));
      return cell.numbers.shape;
    }
    case Cell::Kind::kField:
    case Cell::Kind::kJson: return ListReader(cell.text, dtype, to).read();
  }
  return Shape();
}

bool matches(const Shape& shape, const Shape& wanted) {
  if (shape.rank() != wanted.rank()) return false;
  for (size_t axis = 0; axis < wanted.rank(); ++axis)
    if (wanted[axis] >= 0 && wanted[axis] != shape[axis]) return false;
  return true;
}

}  // namespace

Result<Shape> append_elements(std::span<const Cell> cells, DType dtype, const Shape& wanted, std::vector<std::byte>& to) {
  Shape shape;
  if (cells.size() == 1) {
    SERIN_TRY(shape, append_cell(cells.front(), dtype, to));
  } else {
    for (const Cell& cell : cells) {
      SERIN_TRY(const Shape one, append_cell(cell, dtype, to));
      if (one.elements() != 1) return invalid(fmt::format("one of several columns has {}, not one number", one.str()));
    }
    shape = Shape{static_cast<int64_t>(cells.size())};
  }
  if (matches(shape, wanted)) return shape;
  // [64] or a number for [1,8,8] and [1]; and for one open size, the size that is left.
  Shape reshaped = wanted;
  int64_t known = 1, open = 0;
  for (const int64_t dim : wanted) dim < 0 ? ++open : known *= dim;
  const int64_t elements = shape.elements();
  if (shape.rank() <= 1 && open == 1 && known > 0 && elements % known == 0) {
    for (int64_t* dim = &reshaped[0]; dim != &reshaped[0] + reshaped.rank(); ++dim)
      if (*dim < 0) *dim = elements / known;
    return reshaped;
  }
  if (shape.rank() <= 1 && open == 0 && elements == known) return reshaped;
  return invalid(fmt::format("has shape {}, {} is wanted", shape.str(), wanted.str()));
}

std::string describe(const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::kMissing: return "nothing";
    case Cell::Kind::kNumbers: return fmt::format("a tensor {}{}", dtype_name(cell.numbers.dtype), cell.numbers.shape.str());
    case Cell::Kind::kText:
      return is_utf8(cell.text) ? fmt::format("the text '{}'", utf8_prefix(cell.text, 40)) : fmt::format("{} bytes", cell.text.size());
    case Cell::Kind::kField:
    case Cell::Kind::kJson: return fmt::format("'{}'", utf8_prefix(cell.text, 40));
  }
  return {};
}

Result<std::string> text_of(const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::kMissing: return invalid("the value is missing");
    case Cell::Kind::kText:
    case Cell::Kind::kField: return std::string(cell.text);
    case Cell::Kind::kJson:
      if (cell.text.starts_with('[') || cell.text.starts_with('{')) return invalid(describe(cell) + " is no text");
      return std::string(cell.text);
    case Cell::Kind::kNumbers: break;
  }
  SERIN_TRY(const double number, number_of(cell));
  return number == std::trunc(number) && std::abs(number) < 0x1p63 ? fmt::to_string(static_cast<int64_t>(number)) : fmt::to_string(number);
}

Result<double> number_of(const Cell& cell) {
  std::vector<std::byte> element;
  SERIN_TRY(const Shape shape, append_cell(cell, DType::kFloat64, element));
  if (shape.elements() != 1) return invalid(fmt::format("{} is not one number", describe(cell)));
  double number = 0;
  std::memcpy(&number, element.data(), sizeof number);
  if (!std::isfinite(number)) return invalid(fmt::format("{} is not finite", number));
  return number;
}

}  // namespace serin::datasets
