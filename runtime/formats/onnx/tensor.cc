// tensor.cc: reads tensors: sizes first (checked in 64 bits against the bytes that are there), memory second, elements last. A tensor that
// claims 2^40 elements costs nothing, because nothing is allocated before as many elements have been counted.

#include "runtime/formats/onnx/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/narrow.h"

namespace serin::formats::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data in files is little-endian and is copied as it is");

enum Field : uint32_t { kFloatData = 4, kInt32Data = 5, kStringData = 6, kInt64Data = 7, kDoubleData = 10, kUInt64Data = 11 };

struct DataType {
  std::string_view name;
  DType dtype;
  Field field;  ///< the typed field that elements of this type are stored in
};

// By the number that TensorProto.DataType gives it.
constexpr std::array<DataType, 27> kDataTypes{{
    {"undefined", DType::kUndefined, kFloatData},
    {"float", DType::kFloat32, kFloatData},
    {"uint8", DType::kUInt8, kInt32Data},
    {"int8", DType::kInt8, kInt32Data},
    {"uint16", DType::kUInt16, kInt32Data},
    {"int16", DType::kInt16, kInt32Data},
    {"int32", DType::kInt32, kInt32Data},
    {"int64", DType::kInt64, kInt64Data},
    {"string", DType::kString, kStringData},
    {"bool", DType::kBool, kInt32Data},
    {"float16", DType::kFloat16, kInt32Data},
    {"double", DType::kFloat64, kDoubleData},
    {"uint32", DType::kUInt32, kUInt64Data},
    {"uint64", DType::kUInt64, kUInt64Data},
    {"complex64", DType::kUndefined, kFloatData},
    {"complex128", DType::kUndefined, kDoubleData},
    {"bfloat16", DType::kBFloat16, kInt32Data},
    {"float8e4m3fn", DType::kFloat8E4M3FN, kInt32Data},
    {"float8e4m3fnuz", DType::kFloat8E4M3FNUZ, kInt32Data},
    {"float8e5m2", DType::kFloat8E5M2, kInt32Data},
    {"float8e5m2fnuz", DType::kFloat8E5M2FNUZ, kInt32Data},
    {"uint4", DType::kUInt4, kInt32Data},
    {"int4", DType::kInt4, kInt32Data},
    {"float4e2m1", DType::kFloat4E2M1, kInt32Data},
    {"float8e8m0", DType::kFloat8E8M0, kInt32Data},
    {"uint2", DType::kUInt2, kInt32Data},
    {"int2", DType::kInt2, kInt32Data},
}};

/// A model in hundreds of files must not take all the descriptors of a server; what lies in further ones is read at once, to stay.
constexpr size_t kMostFilesKeptOpen = 16;

Error corrupt(std::string what) { return Error{Code::kCorrupt, std::move(what)}; }

/// Only 0 and 1 are bool; anything else would be undefined behaviour in the kernel that reads it.
void normalise_bools(std::byte* memory, size_t count) {
  for (size_t i = 0; i < count; ++i) memory[i] = std::byte{memory[i] != std::byte{0}};
}

/// Where a tensor's typed field lies, element by element: counts on the first walk, stores on the second.
class TypedElements {
 public:
  TypedElements(Bytes tensor, Field field) : tensor_(tensor), field_(field) {}

  size_t count() const {
    size_t n = 0;
    walk([&](auto) { ++n; });
    return n;
  }

  template <class T>
  void store(std::byte* memory) const {
    walk([&](auto value) {
      const auto element = static_cast<T>(value);
      std::memcpy(memory, &element, sizeof element);
      memory += sizeof element;
    });
  }

  std::vector<std::string> strings() const {
    std::vector<std::string> elements;
    Decoding decoding{.begin = tensor_.data(), .error = {}};
    for (Message in(decoding, "TensorProto", tensor_); in.next();)
      if (in.field() == kStringData) elements.emplace_back(in.chars());
    return elements;
  }

 private:
  template <class F>
  void walk(F&& take) const {
    Decoding decoding{.begin = tensor_.data(), .error = {}};  // it was walked once without a mistake
    for (Message in(decoding, "TensorProto", tensor_); in.next();) {
      if (in.field() != field_) continue;
      if (field_ == kFloatData)
        in.each_fixed<float>(take);
      else if (field_ == kDoubleData)
        in.each_fixed<double>(take);
      else if (field_ == kStringData)
        take(0);  // one element each, never packed
      else
        in.each_integer(take);
    }
  }

  Bytes tensor_;
  Field field_;
};

void store_typed(const TypedElements& elements, DType dtype, std::byte* memory) {
  switch (dtype) {
    case DType::kBool: return elements.store<bool>(memory);
    case DType::kInt8: return elements.store<int8_t>(memory);
    case DType::kUInt8: return elements.store<uint8_t>(memory);
    case DType::kInt16: return elements.store<int16_t>(memory);
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16: return elements.store<uint16_t>(memory);  // the 16-bit floats are stored as their bits
    case DType::kInt32: return elements.store<int32_t>(memory);
    case DType::kUInt32: return elements.store<uint32_t>(memory);
    case DType::kInt64: return elements.store<int64_t>(memory);
    case DType::kUInt64: return elements.store<uint64_t>(memory);
    case DType::kFloat32: return elements.store<float>(memory);
    case DType::kFloat64: return elements.store<double>(memory);
    case DType::kUndefined:
    case DType::kString: return;
    default: return elements.store<uint8_t>(memory);
  }
}

/// Elements of four or two bits lie in files with no gaps between them, in every field.
bool is_packed(DType dtype) { return kernels::is_narrow(dtype) && kernels::dtype_bits(dtype) < 8; }

/// Gives each of the packed elements at the beginning of `memory` a byte of its own, from the last one on.
void spread(DType dtype, std::byte* memory, size_t elements) {
  const auto bits = static_cast<size_t>(kernels::dtype_bits(dtype)), per_byte = 8 / bits;
  for (size_t i = elements; i-- > 0;) {
    const auto byte = static_cast<uint8_t>(memory[i / per_byte]);
    memory[i] = std::byte{kernels::narrow_byte(dtype, static_cast<uint8_t>(byte >> (i % per_byte * bits)))};
  }
}

}  // namespace

Result<DType> dtype_from(int64_t data_type) {
  if (data_type <= 0 || data_type >= static_cast<int64_t>(kDataTypes.size()))
    return corrupt(fmt::format("element type {} does not exist", data_type));
  const DataType& type = kDataTypes[static_cast<size_t>(data_type)];
  if (type.dtype == DType::kUndefined) return Error{Code::kUnsupported, fmt::format("element type {} is not supported", type.name)};
  return type.dtype;
}

Result<DType> dtype_named(std::string_view name) {
  const auto same = [&](const DataType& type) {
    return std::ranges::equal(type.name, name, [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  };
  const auto found = std::ranges::find_if(kDataTypes, same);
  if (found == kDataTypes.end()) return corrupt(fmt::format("element type '{}' does not exist", name));
  return dtype_from(found - kDataTypes.begin());
}

Result<Shape> shape_from(const std::vector<int64_t>& dims) {
  if (!Shape::fits(dims.size()))
    return Error{Code::kUnsupported, fmt::format("has {} dimensions, more than {}", dims.size(), Shape::kMaxRank)};
  const Shape shape{std::span<const int64_t>(dims)};
  if (std::ranges::any_of(dims, [](int64_t dim) { return dim < 0; }))
    return corrupt(fmt::format("shape {} has a negative dimension", shape.str()));
  if (!shape.checked_elements()) return corrupt(fmt::format("shape {} has more elements than 64 bits can count", shape.str()));
  return shape;
}

Result<graph::ConstantPtr> TensorReader::read_shared(const TensorProto& tensor) {
  const auto known = shared_.find(&tensor);
  if (known != shared_.end()) return known->second;
  auto constant = read(tensor);
  if (constant) shared_.emplace(&tensor, *constant);
  return constant;
}

Result<graph::ConstantPtr> TensorReader::read(const TensorProto& tensor) {
  SERIN_TRY(const DType dtype, dtype_from(tensor.data_type));
  SERIN_TRY(const Shape shape, shape_from(tensor.dims));
  if (tensor.segmented) return Error{Code::kUnsupported, "is stored in segments"};

  const auto elements = static_cast<size_t>(shape.elements());
  size_t bytes = 0;
  if (__builtin_mul_overflow(elements, dtype_size(dtype), &bytes))
    return corrupt(fmt::format("shape {} has more bytes than 64 bits can count", shape.str()));

  const size_t stored = is_packed(dtype) ? kernels::packed_bytes(dtype, elements) : elements;  // units of a typed field
  const size_t stored_bytes = is_packed(dtype) ? stored : bytes;
  const Field field = kDataTypes[static_cast<size_t>(tensor.data_type)].field;
  const bool external = tensor.data_location == 1;
  if (tensor.data_location < 0 || tensor.data_location > 1)
    return corrupt(fmt::format("data_location {} does not exist", tensor.data_location));
  if ((tensor.raw ? 1 : 0) + std::popcount(tensor.typed_fields) + (external ? 1 : 0) > 1)
    return corrupt("has its elements in more than one field");
  if (!external && !tensor.external_data.empty()) return corrupt("names external data but is not marked as external");
  if (tensor.typed_fields && tensor.typed_fields != 1u << field)
    return corrupt(
        fmt::format("has its elements in a field that {} elements do not go in", kDataTypes[static_cast<size_t>(tensor.data_type)].name));
  if (dtype == DType::kString && (tensor.raw || external)) return corrupt("has strings as raw bytes");

  if (tensor.raw && tensor.raw->size() != stored_bytes)
    return corrupt(
        fmt::format("shape {} of {} needs {} bytes, raw_data has {}", shape.str(), dtype_name(dtype), stored_bytes, tensor.raw->size()));
  const TypedElements typed(tensor.body, field);
  if (const size_t there = tensor.typed_fields ? typed.count() : 0; !tensor.raw && !external && there != stored)
    return corrupt(fmt::format("shape {} needs {} elements, {} are there", shape.str(), stored, there));

  std::optional<FileWindow> window;
  if (external) {
    SERIN_TRY(window, external_.find(tensor.external_data, stored_bytes));
  } else if (tensor.raw) {
    window = image_.left_out(*tensor.raw);
  }
  const auto finish = [dtype, elements](std::byte* memory) {
    if (dtype == DType::kBool) normalise_bools(memory, elements);
    if (is_packed(dtype)) spread(dtype, memory, elements);
  };
  if (window && bytes >= graph::kWorthARecipe && external_.files() <= kMostFilesKeptOpen) {
    return graph::make_constant(dtype, shape, [window = *std::move(window), stored_bytes, finish](std::span<std::byte> memory) -> Status {
      SERIN_CHECK(window.read(memory.first(stored_bytes)));
      finish(memory.data());
      return {};
    });
  }

  std::byte* memory = nullptr;
  const auto constant = graph::make_mutable_constant(dtype, shape, &memory);
  if (dtype == DType::kString) {
    constant->strings = typed.strings();
  } else if (window && bytes > 0) {
    SERIN_CHECK(window->read({memory, stored_bytes}));
  } else if (tensor.raw && bytes > 0) {
    image_.copy(*tensor.raw, memory);
  } else if (bytes > 0) {
    store_typed(typed, dtype, memory);
  }
  finish(memory);
  return graph::ConstantPtr(constant);
}

}  // namespace serin::formats::onnx
