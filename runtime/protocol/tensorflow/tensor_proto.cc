#include "runtime/protocol/tensorflow/tensor_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/wire_writer.h"
#include "runtime/protocol/tensor/raw_tensor.h"
#include "runtime/protocol/tensor/request_builder.h"
#include "runtime/protocol/tensor/typed_list.h"

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

constexpr uint64_t kLists = 0x3FFE0;  // fields 5 to 17: lists, of which no tensor here has some

const Type* type_of(DType dtype) {
  const auto found = std::ranges::find(kTypes, dtype, &Type::dtype);
  return found == kTypes.end() ? nullptr : &*found;
}

/// The last of the elements that have come goes for those that have not; zeros where none has. False: it is a text too long for that.
bool fill(const TensorView& tensor, int64_t count) {
  if (count == tensor.elements()) return true;
  if (tensor.dtype == DType::kString) {
    const auto texts = tensor.span<std::string>();
    const std::string last = count > 0 ? texts[static_cast<size_t>(count - 1)] : std::string();
    if (last.size() > kMostFilled / static_cast<size_t>(tensor.elements() - count)) return false;
    std::fill(texts.begin() + count, texts.end(), last);
    return true;
  }
  const size_t size = dtype_size(tensor.dtype);
  auto* const bytes = tensor.as<std::byte>();
  if (count == 0) std::memset(bytes, 0, tensor.bytes());
  for (auto i = static_cast<size_t>(std::max<int64_t>(1, count)); i < static_cast<size_t>(tensor.elements()); ++i)
    std::memcpy(bytes + i * size, bytes + (i - 1) * size, size);
  return true;
}

Status too_large_to_fill(const TensorView& tensor, std::string_view name) {
  return Error{Code::kTooLarge, fmt::format("input '{}': shape {} is too large to be filled with fewer values", name, tensor.shape.str())};
}

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
  return too_large_to_fill(tensor, name);
}

Status TensorProto::copy_to(const TensorView& tensor, std::string_view name, Decoding& decoding) const {
  if (content) {
    read_raw({reinterpret_cast<const char*>(content->data()), content->size()}, tensor);
    return {};
  }
  const Type& type = *type_of(tensor.dtype);
  SERIN_TRY(const int64_t count, read_typed_list(decoding, message, {type.field, type.list, kLists}, tensor, name));
  if (count > tensor.elements())
    return invalid(
        fmt::format("input '{}': shape {} takes {} elements, {} has {}", name, tensor.shape.str(), tensor.elements(), type.list, count));
  return fill(tensor, count) ? Status() : too_large_to_fill(tensor, name);
}

TensorProtoWriter::TensorProtoWriter(const TensorView& tensor) : tensor_(tensor) {
  wire::write_integer(head_, 1, tf_dtype(tensor.dtype));
  wire::write_message(head_, 2, [&](std::string& shape) {
    for (const int64_t size : tensor.shape) wire::write_message(shape, 2, [&](std::string& dim) { wire::write_integer(dim, 1, size); });
  });
  bytes_ = head_.size() + typed_list_bytes(type_of(tensor.dtype)->field, tensor);
}

void TensorProtoWriter::append(std::string& out) const {
  out += head_;
  append_typed_list(out, type_of(tensor_.dtype)->field, tensor_);
}

}  // namespace serin::protocol
