// tensor.cc: TensorProto. Elements are raw bytes, or a list in a field of their type. A list may be short: its last element counts for all
// that follow, and an empty list means zeros.

#include "runtime/formats/tensorflow/tensor.h"

#include <fmt/format.h>

#include <cstring>

namespace serin::formats::tf {
namespace {

struct TypeRow {
  int64_t number;
  DType dtype;
};

constexpr TypeRow kTypes[] = {
    {1, DType::kFloat32}, {2, DType::kFloat64},  {3, DType::kInt32},   {4, DType::kUInt8},   {5, DType::kInt16},
    {6, DType::kInt8},    {7, DType::kString},   {9, DType::kInt64},   {10, DType::kBool},   {14, DType::kBFloat16},
    {17, DType::kUInt16}, {19, DType::kFloat16}, {22, DType::kUInt32}, {23, DType::kUInt64},
};

constexpr uint64_t kMostElements = uint64_t{1} << 34;
/// A short list unfolds to no more than this: a file of some bytes must not fill the memory.
constexpr size_t kMostUnfolded = size_t{256} << 20;

struct Elements {
  std::vector<std::byte> bytes;
  std::vector<std::string> strings;
};

template <class T>
void append_element(Elements& elements, T value) {
  const auto* const at = reinterpret_cast<const std::byte*>(&value);
  elements.bytes.insert(elements.bytes.end(), at, at + sizeof value);
}

void append_integer(Elements& elements, DType dtype, int64_t value) {
  switch (dtype_size(dtype)) {
    case 1: append_element(elements, static_cast<int8_t>(dtype == DType::kBool ? value != 0 : value)); break;
    case 2: append_element(elements, static_cast<int16_t>(value)); break;
    case 4: append_element(elements, static_cast<int32_t>(value)); break;
    default: append_element(elements, value); break;
  }
}

/// The field that has the elements of a dtype.
uint32_t list_field(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 5;
    case DType::kFloat64: return 6;
    case DType::kString: return 8;
    case DType::kInt64: return 10;
    case DType::kBool: return 11;
    case DType::kFloat16:
    case DType::kBFloat16: return 13;
    case DType::kUInt32: return 16;
    case DType::kUInt64: return 17;
    default: return 7;
  }
}

struct TensorParts {
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;
  std::optional<Bytes> content;
};

Result<TensorParts> read_parts(Bytes proto) {
  wire::Decoding decoding{.begin = proto.data(), .error = {}};
  wire::Message in(decoding, "TensorProto", proto);
  TensorParts parts;
  int64_t number = 0;
  while (in.next()) {
    if (in.field() == 1) number = in.once().integer();
    if (in.field() == 4) parts.content = in.once().bytes();
    if (in.field() != 2) continue;
    const PartialShape shape = read_shape(in.once().message("TensorShapeProto"));
    if (!shape) return Error{Code::kCorrupt, "a tensor without a shape"};
    parts.dims = *shape;
  }
  if (decoding.error) return *decoding.error;
  const auto dtype = dtype_of(number);
  if (!dtype) return Error{Code::kUnsupported, fmt::format("a tensor of dtype {}", number)};
  parts.dtype = *dtype;
  return parts;
}

Result<Elements> read_list(Bytes proto, DType dtype) {
  wire::Decoding decoding{.begin = proto.data(), .error = {}};
  wire::Message in(decoding, "TensorProto", proto);
  Elements elements;
  while (in.next()) {
    if (in.field() != list_field(dtype)) continue;
    if (dtype == DType::kString)
      elements.strings.emplace_back(in.chars());
    else if (dtype == DType::kFloat32)
      in.each_fixed<float>([&](float value) { append_element(elements, value); });
    else if (dtype == DType::kFloat64)
      in.each_fixed<double>([&](double value) { append_element(elements, value); });
    else
      in.each_integer([&](int64_t value) { append_integer(elements, dtype, value); });
  }
  if (decoding.error) return *decoding.error;
  return elements;
}

Result<graph::ConstantPtr> make_strings(const Shape& shape, std::vector<std::string> strings) {
  const auto count = static_cast<size_t>(shape.elements());
  if (strings.size() > count) return Error{Code::kCorrupt, fmt::format("a tensor of {} strings has {}", count, strings.size())};
  if (count > kMostUnfolded / sizeof(std::string)) return Error{Code::kTooLarge, fmt::format("a tensor of {} strings", count)};
  strings.resize(count, strings.empty() ? std::string() : strings.back());
  std::byte* none = nullptr;
  auto constant = graph::make_mutable_constant(DType::kString, shape, &none);
  constant->strings = std::move(strings);
  return graph::ConstantPtr(std::move(constant));
}

}  // namespace

std::optional<DType> dtype_of(int64_t number) {
  for (const TypeRow& row : kTypes)
    if (row.number == number % 100) return row.dtype;
  return std::nullopt;
}

Result<Shape> static_shape(const std::vector<int64_t>& dims, DType dtype) {
  if (!Shape::fits(dims.size())) return Error{Code::kUnsupported, fmt::format("a tensor of rank {}", dims.size())};
  uint64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && elements > kMostElements / static_cast<uint64_t>(dim)))
      return Error{Code::kCorrupt, fmt::format("a {} tensor of shape [{}]", dtype_name(dtype), fmt::join(dims, ","))};
    elements *= static_cast<uint64_t>(dim);
  }
  Shape shape;
  for (const int64_t dim : dims) shape.push_back(dim);
  return shape;
}

Result<graph::ConstantPtr> read_tensor(Bytes proto, const std::shared_ptr<const InputFile>& file, const std::byte* begin) {
  SERIN_TRY(const TensorParts parts, read_parts(proto));
  SERIN_TRY(const Shape shape, static_shape(parts.dims, parts.dtype));
  const size_t size = static_cast<size_t>(shape.elements()) * dtype_size(parts.dtype);
  if (parts.content && !parts.content->empty()) {
    if (parts.dtype == DType::kString || parts.content->size() != size)
      return Error{Code::kCorrupt, fmt::format("a tensor of {} bytes has {}", size, parts.content->size())};
    if (!file || size < graph::kWorthARecipe) return graph::make_constant(parts.dtype, shape, parts.content->data());
    const FileWindow window{file, static_cast<size_t>(parts.content->data() - begin)};
    return graph::make_constant(parts.dtype, shape, [window](std::span<std::byte> bytes) { return window.read(bytes); });
  }
  SERIN_TRY(Elements elements, read_list(proto, parts.dtype));
  if (parts.dtype == DType::kString) return make_strings(shape, std::move(elements.strings));
  const size_t element = dtype_size(parts.dtype);
  if (elements.bytes.size() > size) return Error{Code::kCorrupt, fmt::format("a tensor of {} bytes has {}", size, elements.bytes.size())};
  if (size > kMostUnfolded)
    return Error{Code::kTooLarge, fmt::format("a tensor of {} bytes, of which the file has {}", size, elements.bytes.size())};
  std::byte* memory = nullptr;
  auto constant = graph::make_mutable_constant(parts.dtype, shape, &memory);
  if (!elements.bytes.empty()) {
    std::memcpy(memory, elements.bytes.data(), elements.bytes.size());
    for (size_t at = elements.bytes.size(); at < size; at += element) std::memcpy(memory + at, memory + at - element, element);
  }
  return graph::ConstantPtr(std::move(constant));
}

}  // namespace serin::formats::tf
