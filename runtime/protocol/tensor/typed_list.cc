#include "runtime/protocol/tensor/typed_list.h"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <utility>

#include "kernels/float16.h"
#include "runtime/base/wire_writer.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/request_builder.h"

namespace serin::protocol {
namespace {

using wire::Message;

/// Elements of a list on their way into a tensor.
class Values {
 public:
  Values(const TypedList& list, const TensorView& tensor, std::string_view name) : list_(list), tensor_(tensor), name_(name) {}

  Result<int64_t> read(Message in) {
    while (in.next() && !error_) take(in);
    if (in.decoding().error) return *in.decoding().error;
    if (error_) return *error_;
    return count_;
  }

 private:
  void take(Message& in) {
    const uint32_t field = in.field();
    if (field > 63 || (list_.lists >> field & 1) == 0) return;
    if (field != list_.field) {
      error_ = invalid(fmt::format("input '{}': {} comes as '{}', not as field {}", name_, oip_datatype(tensor_.dtype), list_.name, field));
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

  const TypedList& list_;
  const TensorView& tensor_;
  std::string_view name_;
  int64_t count_ = 0;
  std::optional<Error> error_;
};

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

size_t payload_bytes(const TensorView& tensor) {
  if (is_fixed(tensor.dtype)) return tensor.bytes();
  size_t bytes = 0;
  with_integers(tensor, [&](auto elements) {
    for (const auto& value : elements) bytes += varint_bytes(varint_of(value));
  });
  return bytes;
}

}  // namespace

size_t varint_bytes(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

Result<int64_t> read_typed_list(wire::Decoding& decoding, wire::Bytes message, const TypedList& list, const TensorView& tensor,
                                std::string_view input) {
  return Values(list, tensor, input).read(Message(decoding, "tensor", message));
}

size_t typed_list_bytes(uint32_t field, const TensorView& tensor) {
  const size_t tag = varint_bytes(uint64_t{field} << 3);
  if (tensor.dtype == DType::kString) {
    size_t bytes = 0;
    for (const std::string& text : tensor.span<const std::string>()) bytes += tag + varint_bytes(text.size()) + text.size();
    return bytes;
  }
  const size_t payload = payload_bytes(tensor);
  return payload == 0 ? 0 : tag + varint_bytes(payload) + payload;
}

void append_typed_list(std::string& out, uint32_t field, const TensorView& tensor) {
  if (tensor.dtype == DType::kString) {
    for (const std::string& text : tensor.span<const std::string>()) wire::write_bytes(out, field, text);
    return;
  }
  const size_t payload = payload_bytes(tensor);
  if (payload == 0) return;
  wire::write_tag(out, field, 2);
  wire::write_varint(out, payload);
  if (is_fixed(tensor.dtype)) out.append(tensor.as<const char>(), payload);
  with_integers(tensor, [&](auto elements) {
    for (const auto& value : elements) wire::write_varint(out, varint_of(value));
  });
}

}  // namespace serin::protocol
