#include "runtime/protocol/paddle/paddle_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/base/wire_writer.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/raw_tensor.h"
#include "runtime/protocol/tensor/typed_list.h"

namespace serin::protocol {
namespace {

using wire::Bytes;
using wire::Decoding;
using wire::Message;

constexpr std::string_view kContent = "tensor_content";
constexpr std::array kTypes = {PaddleType{DType::kInt64, 0, 1, "int64_data"},
                               PaddleType{DType::kFloat32, 1, 2, "float_data"},
                               PaddleType{DType::kInt32, 2, 3, "int_data"},
                               PaddleType{DType::kFloat64, 3, 4, "float64_data"},
                               PaddleType{DType::kInt16, 4, kPaddleContent, kContent},
                               PaddleType{DType::kFloat16, 5, kPaddleContent, kContent},
                               PaddleType{DType::kBFloat16, 6, kPaddleContent, kContent},
                               PaddleType{DType::kUInt8, 7, kPaddleContent, kContent},
                               PaddleType{DType::kInt8, 8, kPaddleContent, kContent},
                               PaddleType{DType::kBool, 9, 6, "bool_data"},
                               PaddleType{DType::kString, 20, 9, "data"}};
constexpr uint64_t kLists = 0x83FE;  // fields 1 to 9, and 15

std::string_view chars(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct ProtoTensor {
  PaddleTensor head;
  Bytes content, message;
};

ProtoTensor read_tensor(Message in) {
  ProtoTensor tensor{.message = in.body()};
  tensor.head.type = 0;  // proto3 leaves it out: INT64
  while (in.next()) {
    switch (in.field()) {
      case 10: tensor.head.type = in.integer(); break;
      case 11: in.each_integer([&](int64_t dim) { tensor.head.dims.push_back(dim); }); break;
      case 13: tensor.head.name = in.text(); break;
      case 14: tensor.head.alias = in.text(); break;
      case kPaddleContent: tensor.content = in.bytes(); break;
      default: break;
    }
  }
  return tensor;
}

Status read_elements(Decoding& decoding, const ProtoTensor& from, const TensorView& tensor, std::string_view name) {
  const PaddleType& type = *paddle_type(tensor.dtype);
  if (type.field == kPaddleContent) {
    read_raw(chars(from.content), tensor);
    return {};
  }
  SERIN_TRY(const int64_t count, read_typed_list(decoding, from.message, {type.field, type.list, kLists}, tensor, name));
  if (count == tensor.elements()) return {};
  return invalid(
      fmt::format("input '{}': shape {} takes {} elements, {} has {}", name, tensor.shape.str(), tensor.elements(), type.list, count));
}

void append_tensor(std::string& out, const NamedTensor& named) {
  const PaddleType* type = paddle_type(named.tensor.dtype);
  std::string head;
  wire::write_integer(head, 10, type ? type->number : 0);
  wire::write_message(head, 11, [&](std::string& dims) {
    for (const int64_t dim : named.tensor.shape) wire::write_varint(dims, static_cast<uint64_t>(dim));
  });
  wire::write_text(head, 13, named.name);
  wire::write_text(head, 14, paddle_alias(named));
  const bool content = type && type->field == kPaddleContent;
  const size_t raw = content ? raw_bytes(named.tensor) : 0;
  const size_t elements = content ? 1 + varint_bytes(raw) + raw : type ? typed_list_bytes(type->field, named.tensor) : 0;
  wire::write_tag(out, 1, 2);
  wire::write_varint(out, head.size() + elements);
  out += head;
  if (content) {
    wire::write_tag(out, kPaddleContent, 2);
    wire::write_varint(out, raw);
    append_raw(out, named.tensor);
  } else if (type) {
    append_typed_list(out, type->field, named.tensor);
  }
}

}  // namespace

const PaddleType* paddle_type(DType dtype) {
  const auto found = std::ranges::find(kTypes, dtype, &PaddleType::dtype);
  return found == kTypes.end() ? nullptr : &*found;
}

std::string_view paddle_name(std::span<const TensorSpec> specs, std::string_view called) {
  if (std::ranges::find(specs, called, &TensorSpec::name) != specs.end()) return called;
  const auto found = std::ranges::find(specs, called, &TensorSpec::alias);
  return found == specs.end() || called.empty() ? called : found->name;
}

Result<size_t> begin_paddle_tensor(const PaddleTensor& tensor, size_t position, const Signature& signature, RequestBuilder& builder) {
  const auto known = [&](std::string_view name) {
    return std::ranges::find(signature.inputs, name, &TensorSpec::name) != signature.inputs.end();
  };
  const std::string_view alias = paddle_name(signature.inputs, tensor.alias);
  std::string_view name = known(alias) || tensor.name.empty() ? alias : paddle_name(signature.inputs, tensor.name);
  if (tensor.alias.empty() && tensor.name.empty() && position < signature.inputs.size()) name = signature.inputs[position].name;
  SERIN_TRY(const size_t input, builder.begin_input(name));
  const TensorSpec& spec = signature.inputs[input];
  if (!paddle_type(spec.dtype))
    return invalid(fmt::format("input '{}' is {}, which Paddle Serving has no type for", spec.name, oip_datatype(spec.dtype)));
  const int64_t type = tensor.type.value_or(paddle_type(spec.dtype)->number);
  const auto said = std::ranges::find(kTypes, type, &PaddleType::number);
  const bool old_text = type == 3 && spec.dtype == DType::kString;  // what the Python client calls bytes
  SERIN_CHECK(builder.set_datatype(input, old_text               ? "BYTES"
                                          : said == kTypes.end() ? fmt::format("elem_type {}", type)
                                                                 : std::string(oip_datatype(said->dtype))));
  SERIN_CHECK(builder.set_shape(input, tensor.dims));
  return input;
}

Status check_paddle_outputs(const InferRequest& request, const Signature& signature) {
  for (const WantedOutput& wanted : request.outputs) {
    const TensorSpec& spec = signature.outputs[wanted.index];
    if (!paddle_type(spec.dtype))
      return invalid(fmt::format("output '{}' is {}, which Paddle Serving has no type for", spec.name, oip_datatype(spec.dtype)));
  }
  return {};
}

Result<InferRequest> decode_paddle_proto(std::string_view body, const Signature& signature, const RequestLimits& limits, uint64_t& log_id) {
  const Bytes bytes = std::as_bytes(std::span(body));
  Decoding decoding{.begin = bytes.data()};
  RequestBuilder builder(signature, limits);
  std::vector<ProtoTensor> tensors(signature.inputs.size());
  size_t position = 0;
  Message in(decoding, "Request", bytes);
  const auto malformed = [&] {
    return decoding.error ? Status(invalid("the body is not a Request of Paddle Serving: " + decoding.error->message)) : Status();
  };
  while (in.next()) {
    if (in.field() == 1) {
      ProtoTensor tensor = read_tensor(in.message("Tensor"));
      SERIN_CHECK(malformed());
      SERIN_TRY(const size_t input, begin_paddle_tensor(tensor.head, position++, signature, builder));
      tensors[input] = std::move(tensor);
    } else if (in.field() == 2) {
      SERIN_CHECK(builder.want(paddle_name(signature.outputs, in.text()), {.binary = true}));
    } else if (in.field() == 4) {
      log_id = static_cast<uint64_t>(in.integer());
    }
  }
  SERIN_CHECK(malformed());
  SERIN_CHECK(builder.check_all_given());
  builder.want_rest(/*binary=*/true);
  SERIN_CHECK(check_paddle_outputs(builder.request, signature));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& input = builder.request.inputs[i];
    const std::string& name = signature.inputs[i].name;
    if (paddle_type(input.dtype)->field == kPaddleContent) SERIN_CHECK(check_raw(chars(tensors[i].content), input, name));
    if (static_cast<size_t>(input.elements()) > tensors[i].message.size())
      return invalid(
          fmt::format("input '{}': shape {} takes {} elements, the tensor has fewer", name, input.shape.str(), input.elements()));
  }
  SERIN_CHECK(builder.allocate(body.size()));
  for (size_t i = 0; i < tensors.size(); ++i)
    SERIN_CHECK(read_elements(decoding, tensors[i], builder.request.inputs[i], signature.inputs[i].name));
  return std::move(builder.request);
}

std::string encode_paddle_proto(std::string_view model, std::span<const NamedTensor> outputs, uint64_t log_id) {
  std::string tensors;
  for (const NamedTensor& named : outputs) append_tensor(tensors, named);
  wire::write_text(tensors, 2, model);
  std::string out;
  out.reserve(tensors.size() + 32);
  wire::write_bytes(out, 1, tensors);
  wire::write_integer(out, 4, static_cast<int64_t>(log_id));
  return out;
}

}  // namespace serin::protocol
