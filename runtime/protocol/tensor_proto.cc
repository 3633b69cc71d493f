#include "runtime/protocol/tensor_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <utility>

#include "kernels/float16.h"
#include "runtime/base/wire_writer.h"
#include "runtime/protocol/datatype.h"
#include "runtime/protocol/raw_tensor.h"
#include "runtime/protocol/request_builder.h"

namespace serin::protocol {
namespace {

using wire::Bytes;
using wire::Decoding;
using wire::Message;

/// A type, and the list that its elements come in.
struct Type {
  DType dtype;
  int number;
  uint32_t field;
  std::string_view list;
};
constexpr std::array kTypes = {
    Type{DType::kFloat32, 1, 5, "float_val"},   Type{DType::kFloat64, 2, 6, "double_val"}, Type{DType::kInt32, 3, 7, "int_val"},
    Type{DType::kUInt8, 4, 7, "int_val"},       Type{DType::kInt16, 5, 7, "int_val"},      Type{DType::kInt8, 6, 7, "int_val"},
    Type{DType::kString, 7, 8, "string_val"},   Type{DType::kInt64, 9, 10, "int64_val"},   Type{DType::kBool, 10, 11, "bool_val"},
    Type{DType::kBFloat16, 14, 13, "half_val"}, Type{DType::kUInt16, 17, 7, "int_val"},    Type{DType::kFloat16, 19, 13, "half_val"},
    Type{DType::kUInt32, 22, 16, "uint32_val"}, Type{DType::kUInt64, 23, 17, "uint64_val"}};

const Type* type_of(DType dtype) {
  const auto found = std::ranges::find(kTypes, dtype, &Type::dtype);
  return found == kTypes.end() ? nullptr : &*found;
}

/// Elements of a list on their way into a tensor.
class Values {
 public:
  Values(const TensorView& tensor, std::string_view name) : tensor_(tensor), name_(name), type_(*type_of(tensor.dtype)) {}

  Status read(Bytes message, Decoding& decoding) {
    Message in(decoding, "TensorProto", message);
    while (in.next() && !error_) take(in);
    if (decoding.error) return *decoding.error;
    if (error_) return *error_;
    if (count_ > tensor_.elements())
      return invalid(fmt::format("input '{}': shape {} takes {} elements, {} has {}", name_, tensor_.shape.str(), tensor_.elements(),
                                 type_.list, count_));
    fill();
    return {};
  }

 private:
  void take(Message& in) {
    const uint32_t field = in.field();
    if (field < 5 || field > 17) return;  // type, shape, and what no tensor here has
    if (field != type_.field) {
      error_ = invalid(fmt::format("input '{}': {} comes as '{}', not as field {}", name_, oip_datatype(tensor_.dtype), type_.list, field));
      return;
    }
    switch (tensor_.dtype) {
      case DType::kFloat32: return in.each_fixed<float>([&](float value) { put(value); });
      case DType::kFloat64: return in.each_fixed<double>([&](double value) { put(value); });
      case DType::kString: {
        const std::string_view text = in.chars();
        if (count_ < tensor_.elements()) tensor_.as<std::string>()[count_] = text;
        ++count_;
        return;
      }
      case DType::kBool: return in.each_integer([&](int64_t value) { put(value != 0); });
      case DType::kInt8: return take_integers<int8_t>(in);
      case DType::kInt16: return take_integers<int16_t>(in);
      case DType::kInt32: return take_integers<int32_t>(in);
      case DType::kInt64: return take_integers<int64_t>(in);
      case DType::kUInt8: return take_integers<uint8_t>(in);
      case DType::kUInt64: return in.each_integer([&](int64_t value) { put(static_cast<uint64_t>(value)); });
      case DType::kUInt32: return take_integers<uint32_t>(in);
      default: return take_integers<uint16_t>(in);  // UINT16, and the bits of FP16 and BF16
    }
  }

  template <class T>
  void put(T value) {
    if (count_ < tensor_.elements()) tensor_.as<T>()[count_] = value;
    ++count_;
  }
  template <class T>
  void take_integers(Message& in) {
    in.each_integer([&](int64_t value) {
      if (!std::in_range<T>(value) && !error_)
        error_ = invalid(fmt::format("input '{}': element {} is {}, which is not {}", name_, count_, value, with_article(tensor_.dtype)));
      put(static_cast<T>(value));
    });
  }

  /// The last element goes for those that have not come; zeros where none has.
  void fill() {
    if (count_ == tensor_.elements()) return;
    if (tensor_.dtype == DType::kString) {
      const auto texts = tensor_.span<std::string>();
      std::fill(texts.begin() + count_, texts.end(), count_ > 0 ? texts[static_cast<size_t>(count_ - 1)] : std::string());
      return;
    }
    const size_t size = dtype_size(tensor_.dtype);
    auto* const bytes = tensor_.as<std::byte>();
    if (count_ == 0) std::memset(bytes, 0, tensor_.bytes());
    for (auto i = static_cast<size_t>(std::max<int64_t>(1, count_)); i < static_cast<size_t>(tensor_.elements()); ++i)
      std::memcpy(bytes + i * size, bytes + (i - 1) * size, size);
  }

  const TensorView& tensor_;
  std::string_view name_;
  const Type& type_;
  int64_t count_ = 0;
  std::optional<Error> error_;
};

size_t varint_bytes(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

/// The number whose varint stands for an element.
template <class T>
uint64_t varint_of(const T& value) {
  if constexpr (std::is_class_v<T>)
    return std::bit_cast<uint16_t>(value);
  else
    return static_cast<uint64_t>(static_cast<int64_t>(value));
}
uint64_t varint_of(uint64_t value) { return value; }

/// use(elements) with the elements of a type that travels as varints.
template <class Use>
void with_integers(const TensorView& tensor, const Use& use) {
  switch (tensor.dtype) {
    case DType::kBool: return use(tensor.span<const bool>());
    case DType::kInt8: return use(tensor.span<const int8_t>());
    case DType::kInt16: return use(tensor.span<const int16_t>());
    case DType::kInt32: return use(tensor.span<const int32_t>());
    case DType::kInt64: return use(tensor.span<const int64_t>());
    case DType::kUInt8: return use(tensor.span<const uint8_t>());
    case DType::kUInt16: return use(tensor.span<const uint16_t>());
    case DType::kUInt32: return use(tensor.span<const uint32_t>());
    case DType::kUInt64: return use(tensor.span<const uint64_t>());
    case DType::kFloat16: return use(tensor.span<const kernels::Half>());
    case DType::kBFloat16: return use(tensor.span<const kernels::BFloat16>());
    default: return;
  }
}

bool is_fixed(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

uint32_t tag(uint32_t field) { return field << 3 | 2; }

}  // namespace

int tf_dtype(DType dtype) {
  const Type* type = type_of(dtype);
  return type ? type->number : 0;
}

std::optional<DType> parse_tf_dtype(int64_t number) {
  const auto found = std::ranges::find(kTypes, number, &Type::number);
  return found == kTypes.end() ? std::nullopt : std::optional(found->dtype);
}

TensorProto TensorProto::read(Decoding& decoding, Bytes message) {
  TensorProto tensor{.message = message};
  Message in(decoding, "TensorProto", message);
  while (in.next()) {
    if (in.field() == 1) tensor.dtype = in.integer();
    if (in.field() == 4 && !in.bytes().empty()) tensor.content = in.bytes();
    if (in.field() != 2) continue;
    Message shape = in.message("TensorShapeProto");
    while (shape.next()) {
      if (shape.field() == 3 && shape.integer() != 0) shape.fail("a tensor of unknown rank");
      if (shape.field() != 2) continue;
      Message dim = shape.message("Dim");
      tensor.dims.push_back(0);
      while (dim.next())
        if (dim.field() == 1) tensor.dims.back() = dim.integer();
    }
  }
  return tensor;
}

Status TensorProto::check(const TensorView& tensor, std::string_view name) const {
  if (content && tensor.dtype != DType::kString)
    return check_raw({reinterpret_cast<const char*>(content->data()), content->size()}, tensor, name);
  if (content) return invalid(fmt::format("input '{}': BYTES come as 'string_val', not as 'tensor_content'", name));
  if (may_fill(tensor, message.size())) return {};
  return Error{Code::kTooLarge, fmt::format("input '{}': shape {} is too large to be filled with fewer values", name, tensor.shape.str())};
}

Status TensorProto::copy_to(const TensorView& tensor, std::string_view name, Decoding& decoding) const {
  if (!content) return Values(tensor, name).read(message, decoding);
  read_raw({reinterpret_cast<const char*>(content->data()), content->size()}, tensor);
  return {};
}

TensorProtoWriter::TensorProtoWriter(const TensorView& tensor) : tensor_(tensor) {
  wire::write_integer(head_, 1, tf_dtype(tensor.dtype));
  wire::write_message(head_, 2, [&](std::string& shape) {
    for (const int64_t size : tensor.shape) wire::write_message(shape, 2, [&](std::string& dim) { wire::write_integer(dim, 1, size); });
  });
  if (is_fixed(tensor.dtype)) values_bytes_ = tensor.bytes();
  if (tensor.dtype == DType::kString)
    for (const std::string& text : tensor.span<const std::string>()) values_bytes_ += 1 + varint_bytes(text.size()) + text.size();
  with_integers(tensor, [&](auto elements) {
    for (const auto& value : elements) values_bytes_ += varint_bytes(varint_of(value));
  });
}

size_t TensorProtoWriter::bytes() const {
  if (tensor_.dtype == DType::kString || values_bytes_ == 0) return head_.size() + values_bytes_;
  return head_.size() + varint_bytes(tag(type_of(tensor_.dtype)->field)) + varint_bytes(values_bytes_) + values_bytes_;
}

void TensorProtoWriter::append(std::string& out) const {
  out += head_;
  const uint32_t field = type_of(tensor_.dtype)->field;
  if (tensor_.dtype == DType::kString) {
    for (const std::string& text : tensor_.span<const std::string>()) wire::write_bytes(out, field, text);
    return;
  }
  if (values_bytes_ == 0) return;
  wire::write_varint(out, tag(field));
  wire::write_varint(out, values_bytes_);
  if (is_fixed(tensor_.dtype)) out.append(tensor_.as<const char>(), values_bytes_);
  with_integers(tensor_, [&](auto elements) {
    for (const auto& value : elements) wire::write_varint(out, varint_of(value));
  });
}

}  // namespace serin::protocol
