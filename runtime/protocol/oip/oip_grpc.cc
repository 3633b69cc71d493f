// oip_grpc.cc: decodes and encodes the Open Inference Protocol's messages over gRPC. Names and field numbers are those of the published
// schema (github.com/kserve/open-inference-protocol, specification/protocol/open_inference_grpc.proto; Triton's grpc_service.proto has the
// same).

#include "runtime/protocol/oip/oip_grpc.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/base/wire_writer.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/raw_tensor.h"
#include "runtime/protocol/tensor/request_builder.h"

namespace serin::protocol {
namespace {

using wire::Bytes;
using wire::Decoding;
using wire::Message;

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// What is wrong with the message as such.
Status malformed(const Decoding& decoding) {
  if (!decoding.error) return {};
  return invalid("the message is not a ModelInferRequest: " + decoding.error->message);
}

struct Parameter {
  std::string_view key;
  ParameterValue value;

  std::optional<int64_t> integer() const {
    if (const auto* number = std::get_if<uint64_t>(&value)) return static_cast<int64_t>(*number);
    const auto* number = std::get_if<int64_t>(&value);
    return number ? std::optional(*number) : std::nullopt;
  }
};

Parameter read_parameter(Decoding& decoding, Bytes entry) {
  Parameter parameter;
  Message in(decoding, "parameters", entry);
  while (in.next()) {
    if (in.field() == 1) parameter.key = in.text();
    if (in.field() != 2) continue;
    Message value = in.message("InferParameter");
    while (value.next()) {
      switch (value.field()) {
        case 1: parameter.value = value.integer() != 0; break;
        case 2: parameter.value = value.integer(); break;
        case 3: parameter.value = value.chars(); break;
        case 5: parameter.value = static_cast<uint64_t>(value.integer()); break;
        default: parameter.value = {};
      }
    }
  }
  return parameter;
}

struct Input {
  std::string_view name, datatype;
  Few<int64_t> shape;
  std::optional<Bytes> contents;
  SharedParameters shared;
};

/// Of an input or an output.
void take_shared(const Parameter& parameter, SharedParameters& shared) {
  if (const auto* text = std::get_if<std::string_view>(&parameter.value); text && parameter.key == "shared_memory_region")
    shared.region = *text;
  if (parameter.key == "shared_memory_byte_size") shared.bytes = parameter.integer().value_or(-1);
  if (parameter.key == "shared_memory_offset") shared.offset = parameter.integer().value_or(-1);
}

Input read_input(Decoding& decoding, Bytes bytes) {
  Input input;
  Message in(decoding, "InferInputTensor", bytes);
  while (in.next()) {
    switch (in.field()) {
      case 1: input.name = in.text(); break;
      case 2: input.datatype = in.text(); break;
      case 3: in.each_integer([&](int64_t dim) { input.shape.push_back(dim); }); break;
      case 4: take_shared(read_parameter(decoding, in.bytes()), input.shared); break;
      case 5: input.contents = in.bytes(); break;
      default: break;
    }
  }
  return input;
}

/// Elements of an InferTensorContents on their way into a tensor.
class Contents {
 public:
  Contents(Decoding& decoding, const TensorView& tensor, std::string_view name) : decoding_(decoding), tensor_(tensor), name_(name) {}

  Status read(Bytes contents) {
    Message in(decoding_, "InferTensorContents", contents);
    while (in.next() && !error_) take(in);
    SERIN_CHECK(malformed(decoding_));
    if (error_) return *error_;
    if (count_ != tensor_.elements())
      return invalid(
          fmt::format("input '{}': shape {} takes {} elements, contents has {}", name_, tensor_.shape.str(), tensor_.elements(), count_));
    return {};
  }

 private:
  void take(Message& in) {
    switch (in.field()) {
      case 1: return take_integers<bool>(in, tensor_.dtype == DType::kBool);
      case 2:
        if (tensor_.dtype == DType::kInt8) return take_integers<int8_t>(in, true);
        if (tensor_.dtype == DType::kInt16) return take_integers<int16_t>(in, true);
        return take_integers<int32_t>(in, tensor_.dtype == DType::kInt32);
      case 3: return take_integers<int64_t>(in, tensor_.dtype == DType::kInt64);
      case 4:
        if (tensor_.dtype == DType::kUInt8) return take_integers<uint8_t>(in, true);
        if (tensor_.dtype == DType::kUInt16) return take_integers<uint16_t>(in, true);
        return take_integers<uint32_t>(in, tensor_.dtype == DType::kUInt32);
      case 5: return take_integers<uint64_t>(in, tensor_.dtype == DType::kUInt64);
      case 6: return take_floats<float>(in, tensor_.dtype == DType::kFloat32);
      case 7: return take_floats<double>(in, tensor_.dtype == DType::kFloat64);
      case 8: return take_text(in);
      default: return;
    }
  }

  bool fits(bool right_kind, std::string_view field) {
    if (!right_kind && !error_)
      error_ = invalid(fmt::format("input '{}': {} cannot come as '{}'", name_, oip_datatype(tensor_.dtype), field));
    return right_kind && count_++ < tensor_.elements();
  }

  template <class T>
  void take_integers(Message& in, bool right_kind) {
    constexpr std::string_view kField = std::is_same_v<T, bool>       ? "bool_contents"
                                        : std::is_same_v<T, int64_t>  ? "int64_contents"
                                        : std::is_same_v<T, uint64_t> ? "uint64_contents"
                                        : std::is_unsigned_v<T>       ? "uint_contents"
                                                                      : "int_contents";
    in.each_integer([&](int64_t value) {
      if (!fits(right_kind, kField)) return;
      if constexpr (!std::is_same_v<T, bool> && !std::is_same_v<T, uint64_t>) {
        if (!std::in_range<T>(value) && !error_)
          error_ =
              invalid(fmt::format("input '{}': element {} is {}, which is not {}", name_, count_ - 1, value, with_article(tensor_.dtype)));
      }
      tensor_.as<T>()[count_ - 1] = static_cast<T>(value);
    });
  }
  template <class T>
  void take_floats(Message& in, bool right_kind) {
    in.each_fixed<T>([&](T value) {
      if (fits(right_kind, sizeof(T) == 4 ? "fp32_contents" : "fp64_contents")) tensor_.as<T>()[count_ - 1] = value;
    });
  }
  void take_text(Message& in) {
    const std::string_view text = in.chars();
    if (fits(tensor_.dtype == DType::kString, "bytes_contents")) tensor_.as<std::string>()[count_ - 1] = text;
  }

  Decoding& decoding_;
  const TensorView& tensor_;
  std::string_view name_;
  int64_t count_ = 0;
  std::optional<Error> error_;
};

Status read_outputs(Decoding& decoding, std::span<const Bytes> outputs, const SharedRegions* regions, RequestBuilder& builder) {
  for (const Bytes bytes : outputs) {
    std::string_view name;
    WantedOutput how;
    SharedParameters shared;
    Message in(decoding, "InferRequestedOutputTensor", bytes);
    while (in.next()) {
      if (in.field() == 1) name = in.text();
      if (in.field() != 2) continue;
      const Parameter parameter = read_parameter(decoding, in.bytes());
      take_shared(parameter, shared);
      if (parameter.key != "classification") continue;
      how.classes = parameter.integer().value_or(0);
      if (how.classes < 1) return invalid("parameter 'classification' must be a number of classes, at least 1");
    }
    SERIN_CHECK(malformed(decoding));
    if (shared.given()) {
      SERIN_TRY(how.shared, open_shared(regions, shared, fmt::format("output '{}'", name)));
    }
    SERIN_CHECK(builder.want(name, how));
  }
  return {};
}

}  // namespace

Result<GrpcInferRequest> GrpcInferRequest::read(std::string_view message) {
  GrpcInferRequest request;
  const Bytes bytes = bytes_of(message);
  request.begin = bytes.data();
  Decoding decoding{.begin = bytes.data()};
  Message in(decoding, "ModelInferRequest", bytes);
  while (in.next()) {
    switch (in.field()) {
      case 1: request.model = in.text(); break;
      case 2: request.version = in.text(); break;
      case 3: request.id = in.text(); break;
      case 4: request.parameters.push_back(in.bytes()); break;
      case 5: request.inputs.push_back(in.bytes()); break;
      case 6: request.outputs.push_back(in.bytes()); break;
      case 7: request.raw.push_back(in.chars()); break;
      default: break;
    }
    if (std::max({request.parameters.size(), request.inputs.size(), request.outputs.size(), request.raw.size()}) > kMostEntries)
      return invalid(fmt::format("the message has more than {} entries in a list", kMostEntries));
  }
  SERIN_CHECK(malformed(decoding));
  return request;
}

std::string_view GrpcInferRequest::id_of(std::string_view beginning) {
  const Bytes bytes = bytes_of(beginning);
  Decoding decoding{.begin = bytes.data()};
  Message in(decoding, "ModelInferRequest", bytes);
  while (in.next())
    if (in.field() == 3) return in.text();
  return {};
}

Result<InferRequest> GrpcInferRequest::decode(const Signature& signature, const RequestLimits& limits, InferRequest memory) const {
  RequestBuilder builder(signature, limits, std::move(memory));
  Decoding decoding{.begin = begin};
  if (id.size() > limits.id_bytes) return invalid(fmt::format("'id' is longer than {} bytes", limits.id_bytes));
  builder.request.id = id;
  for (const Bytes entry : parameters) {
    const Parameter parameter = read_parameter(decoding, entry);
    SERIN_CHECK(builder.set_parameter(parameter.key, parameter.value));
  }
  Few<size_t> places(inputs.size());
  Few<std::optional<Bytes>> contents(inputs.size());
  Few<SharedRangePtr> shared(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input input = read_input(decoding, inputs[i]);
    SERIN_CHECK(malformed(decoding));
    SERIN_TRY(places[i], builder.begin_input(input.name));
    SERIN_CHECK(builder.set_datatype(places[i], input.datatype));
    SERIN_CHECK(builder.set_shape(places[i], {input.shape.data(), input.shape.size()}));
    contents[i] = input.contents;
    if (input.shared.given()) {
      SERIN_TRY(shared[i], open_shared(limits.shared, input.shared, fmt::format("input '{}'", input.name)));
    }
    if (!raw.empty() && input.contents && !input.contents->empty())
      return invalid(
          fmt::format("contents field must not be specified when using raw_input_contents for '{}' for {}", input.name, signature.model));
  }
  // Where some lie in shared memory the others' bytes stand close up, as Triton's clients send them.
  Few<std::string_view> bytes(inputs.size());
  const auto sent = static_cast<size_t>(std::ranges::count(shared, nullptr));
  if (!raw.empty() && raw.size() != sent)
    return invalid(fmt::format("raw_input_contents has {} tensors for {} inputs: all of them or none", raw.size(), sent));
  for (size_t i = 0, next = 0; i < inputs.size() && !raw.empty(); ++i)
    if (!shared[i]) bytes[i] = raw[next++];
  SERIN_CHECK(builder.check_required_given());
  SERIN_CHECK(read_outputs(decoding, {outputs.data(), outputs.size()}, limits.shared, builder));
  builder.want_rest(/*binary=*/true);

  std::vector<TensorView>& tensors = builder.request.inputs;
  size_t text_bytes = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string& name = signature.inputs[places[i]].name;
    if (tensors[places[i]].dtype == DType::kString)
      text_bytes += shared[i] ? shared_text_bytes(*shared[i]) : bytes[i].size() + (contents[i] ? contents[i]->size() : 0);
    if (shared[i]) {
      SERIN_CHECK(check_shared(*shared[i], tensors[places[i]], name, limits.tensor_bytes));
    } else if (!raw.empty()) {
      SERIN_CHECK(check_raw(bytes[i], tensors[places[i]], name));
    } else if (static_cast<size_t>(tensors[places[i]].elements()) >
               (contents[i] ? contents[i]->size() : 0)) {  // memory is not taken for what has not come
      return invalid(fmt::format("input '{}': shape {} takes {} elements, contents has fewer", name, tensors[places[i]].shape.str(),
                                 tensors[places[i]].elements()));
    }
  }
  SERIN_CHECK(builder.allocate(text_bytes));
  for (size_t i = 0; i < places.size(); ++i) {
    const TensorView& tensor = tensors[places[i]];
    if (shared[i])
      SERIN_CHECK(read_shared(*shared[i], tensor, signature.inputs[places[i]].name));
    else if (!raw.empty())
      read_raw(bytes[i], tensor);
    else
      SERIN_CHECK(Contents(decoding, tensor, signature.inputs[places[i]].name).read(contents[i].value_or(Bytes())));
  }
  return builder.take();
}

size_t grpc_response_bytes(const InferResponse& response) {
  size_t bytes = 64 + response.model.size() + response.version.size() + response.id.size();
  for (const NamedTensor& named : response.outputs)
    bytes += 128 + named.name.size() + (named.shared ? 128 + named.shared->region.size() : 0) + raw_bytes(named.tensor);
  return bytes;
}

namespace {

/// An entry of the map `parameters` of an output.
template <class Write>
void write_parameter(std::string& output, std::string_view key, Write write) {
  wire::write_message(output, 4, [&](std::string& entry) {
    wire::write_text(entry, 1, key);
    wire::write_message(entry, 2, write);
  });
}

}  // namespace

void append_grpc_response(std::string& out, const InferResponse& response) {
  wire::write_text(out, 1, response.model);
  wire::write_text(out, 2, response.version);
  wire::write_text(out, 3, response.id);
  for (const NamedTensor& named : response.outputs) {
    wire::write_message(out, 5, [&](std::string& inner) {
      wire::write_text(inner, 1, named.name);
      wire::write_text(inner, 2, oip_datatype(named.tensor.dtype));
      if (named.tensor.shape.rank() > 0) {
        wire::write_message(inner, 3, [&](std::string& dims) {
          for (const int64_t dim : named.tensor.shape) wire::write_varint(dims, static_cast<uint64_t>(dim));
        });
      }
      if (!named.shared) return;
      write_parameter(inner, "shared_memory_region", [&](std::string& value) { wire::write_text(value, 3, named.shared->region); });
      for (const auto& [key, number] :
           {std::pair("shared_memory_byte_size", raw_bytes(named.tensor)), std::pair("shared_memory_offset", named.shared->offset)})
        write_parameter(inner, key, [number = number](std::string& value) {
          wire::write_tag(value, 2, 0);
          wire::write_varint(value, number);
        });
    });
  }
  for (const NamedTensor& named : response.outputs) {
    wire::write_tag(out, 6, 2);
    if (named.shared) {  // an empty one in its place: clients count them
      wire::write_varint(out, 0);
      continue;
    }
    wire::write_varint(out, raw_bytes(named.tensor));
    append_raw(out, named.tensor);
  }
}

}  // namespace serin::protocol
