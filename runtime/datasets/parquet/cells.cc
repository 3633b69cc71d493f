// cells.cc: numbers stay where Arrow has them. Of lists in lists, the numbers of a row lie next to each other, so a row is a tensor if the
// lists of a level have one length. Arrow packs eight values of bool into a byte: these are copied.

#include "runtime/datasets/parquet/cells.h"

#include <arrow/array/array_dict.h>
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>
#include <arrow/extension_type.h>
#include <fmt/format.h>

namespace serin::datasets::columnar {
namespace {

using arrow::Type;

DType dtype_of_id(Type::type id) {
  switch (id) {
    case Type::BOOL: return DType::kBool;
    case Type::INT8: return DType::kInt8;
    case Type::INT16: return DType::kInt16;
    case Type::INT32: return DType::kInt32;
    case Type::INT64: return DType::kInt64;
    case Type::UINT8: return DType::kUInt8;
    case Type::UINT16: return DType::kUInt16;
    case Type::UINT32: return DType::kUInt32;
    case Type::UINT64: return DType::kUInt64;
    case Type::HALF_FLOAT: return DType::kFloat16;
    case Type::FLOAT: return DType::kFloat32;
    case Type::DOUBLE: return DType::kFloat64;
    default: return DType::kUndefined;
  }
}

/// Elements `begin` to `begin` + shape.elements() of an array of numbers.
Cell numbers_of(const arrow::Array& array, DType dtype, int64_t begin, const Shape& shape, std::deque<std::string>& memory) {
  const int64_t count = shape.elements();
  if (dtype == DType::kBool) {
    std::string& bytes = memory.emplace_back(static_cast<size_t>(count), '\0');
    for (int64_t i = 0; i < count; ++i)
      bytes[static_cast<size_t>(i)] = static_cast<const arrow::BooleanArray&>(array).Value(begin + i) ? 1 : 0;
    return {Cell::Kind::kNumbers, {dtype, shape, bytes.data()}, {}};
  }
  const auto& values = static_cast<const arrow::PrimitiveArray&>(array).values();
  static char nothing;
  char* at = values ? const_cast<char*>(reinterpret_cast<const char*>(values->data())) : &nothing;  // a cell's numbers are not written
  if (count > 0) at += static_cast<size_t>(array.offset() + begin) * dtype_size(dtype);
  return {Cell::Kind::kNumbers, {dtype, shape, at}, {}};
}

struct Range {
  int64_t begin, end;
};

/// What the lists from `range.begin` to `range.end` contain.
template <class Lists>
Range contents_of(const Lists& lists, Range range) {
  return range.begin == range.end
             ? Range{0, 0}
             : Range{lists.value_offset(range.begin), lists.value_offset(range.end - 1) + lists.value_length(range.end - 1)};
}

/// Appends the length of the lists in `range`, and returns what they contain.
template <class Lists>
Result<Range> take_level(const Lists& lists, Range range, Shape& shape) {
  const int64_t length = range.begin == range.end ? 0 : lists.value_length(range.begin);
  for (int64_t i = range.begin; i < range.end; ++i) {
    if (lists.IsNull(i)) return invalid("a list in it is null");
    if (lists.value_length(i) != length) return invalid("lists of different lengths");
  }
  shape.push_back(length);
  return contents_of(lists, range);
}

Result<Cell> list_at(const arrow::Array& lists, int64_t index, std::deque<std::string>& memory) {
  const arrow::Array* level = &lists;
  Range range{index, index + 1};
  Shape shape;
  while (true) {
    switch (level->type_id()) {
      case Type::LIST: {
        const auto& typed = static_cast<const arrow::ListArray&>(*level);
        SERIN_TRY(range, take_level(typed, range, shape));
        level = typed.values().get();
        continue;
      }
      case Type::LARGE_LIST: {
        const auto& typed = static_cast<const arrow::LargeListArray&>(*level);
        SERIN_TRY(range, take_level(typed, range, shape));
        level = typed.values().get();
        continue;
      }
      case Type::FIXED_SIZE_LIST: {
        const auto& typed = static_cast<const arrow::FixedSizeListArray&>(*level);
        SERIN_TRY(range, take_level(typed, range, shape));
        level = typed.values().get();
        continue;
      }
      case Type::EXTENSION: level = static_cast<const arrow::ExtensionArray&>(*level).storage().get(); continue;
      default: break;
    }
    break;
  }
  if (level->null_count() > 0)
    for (int64_t i = range.begin; i < range.end; ++i)
      if (level->IsNull(i)) return invalid(fmt::format("element {} of {} is null", i - range.begin, range.end - range.begin));
  return numbers_of(*level, dtype_of_id(level->type_id()), range.begin, shape, memory);
}

template <class Array>
Cell text_at(const arrow::Array& array, int64_t index) {
  return {Cell::Kind::kText, {}, static_cast<const Array&>(array).GetView(index)};
}

}  // namespace

Result<Cell> cell_at(const arrow::Array& array, int64_t index, std::deque<std::string>& memory) {
  if (array.IsNull(index)) return Cell{};
  switch (array.type_id()) {
    case Type::STRING:
    case Type::BINARY: return text_at<arrow::BinaryArray>(array, index);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY: return text_at<arrow::LargeBinaryArray>(array, index);
    case Type::STRING_VIEW:
    case Type::BINARY_VIEW: return text_at<arrow::BinaryViewArray>(array, index);
    case Type::FIXED_SIZE_BINARY: return text_at<arrow::FixedSizeBinaryArray>(array, index);
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST: return list_at(array, index, memory);
    case Type::EXTENSION: return cell_at(*static_cast<const arrow::ExtensionArray&>(array).storage(), index, memory);
    case Type::DICTIONARY: {
      const auto& encoded = static_cast<const arrow::DictionaryArray&>(array);
      return cell_at(*encoded.dictionary(), encoded.GetValueIndex(index), memory);
    }
    default: break;
  }
  const DType dtype = dtype_of_id(array.type_id());
  if (dtype == DType::kUndefined) return Error{Code::kUnsupported, fmt::format("is of type {}", array.type()->ToString())};
  return numbers_of(array, dtype, index, Shape(), memory);
}

}  // namespace serin::datasets::columnar
