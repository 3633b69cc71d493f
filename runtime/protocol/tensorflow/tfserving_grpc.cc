// tfserving_grpc.cc: decodes and encodes TensorFlow Serving's predict messages over gRPC. Names and field numbers are those of the
// published schema (github.com/tensorflow/serving, tensorflow_serving/apis).

#include "runtime/protocol/tensorflow/tfserving_grpc.h"

#include <fmt/format.h>

#include "runtime/base/wire_writer.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/request_builder.h"
#include "runtime/protocol/tensorflow/tensor_proto.h"

namespace serin::protocol {
namespace {

using wire::Bytes;
using wire::Decoding;
using wire::Message;

struct Entry {
  std::string_view name;
  TensorProto tensor;
};

Entry read_entry(Decoding& decoding, Bytes bytes) {
  Entry entry;
  Message in(decoding, "inputs", bytes);
  while (in.next()) {
    if (in.field() == 1) entry.name = in.text();
    if (in.field() == 2) entry.tensor = TensorProto::read(decoding, in.bytes());
  }
  return entry;
}

std::string datatype_of(const TensorProto& tensor) {
  const auto dtype = parse_tf_dtype(tensor.dtype);
  return dtype ? std::string(oip_datatype(*dtype)) : fmt::format("DataType {}", tensor.dtype);
}

}  // namespace

void TfModelSpec::merge(Message message) {
  while (message.next()) {
    switch (message.field()) {
      case 1: model = message.text(); break;
      case 2: {                     // version and label are one field (oneof): the last one counts
        if (!version) version = 0;  // an Int64Value that says nothing is 0
        label = {};
        Message value = message.message("Int64Value");
        while (value.next())
          if (value.field() == 1) version = value.integer();
        break;
      }
      case 3: signature = message.text(); break;
      case 4:
        label = message.text();
        version.reset();
        break;
      default: break;
    }
  }
}

Result<TfPredictCall> TfPredictCall::read(std::string_view message) {
  const Bytes bytes = std::as_bytes(std::span(message));
  TfPredictCall call;
  call.begin = bytes.data();
  Decoding decoding{.begin = bytes.data()};
  Message in(decoding, "PredictRequest", bytes);
  while (in.next()) {
    if (in.field() == 1) call.spec.merge(in.message("ModelSpec"));
    if (in.field() == 2) call.inputs.push_back(in.bytes());
    if (in.field() == 3) call.output_filter.push_back(in.text());
    if (std::max(call.inputs.size(), call.output_filter.size()) > kMostEntries)
      return invalid(fmt::format("the message has more than {} entries in a list", kMostEntries));
  }
  if (decoding.error) return invalid("the message is not a PredictRequest: " + decoding.error->message);
  return call;
}

Result<InferRequest> TfPredictCall::decode(const Signature& signature, const RequestLimits& limits) const {
  RequestBuilder builder(signature, limits);
  Decoding decoding{.begin = begin};
  std::vector<TensorProto> protos(signature.inputs.size());
  for (const Bytes bytes : inputs) {
    Entry entry = read_entry(decoding, bytes);
    if (decoding.error) return invalid("the message is not a PredictRequest: " + decoding.error->message);
    SERIN_TRY(const size_t input, builder.begin_input(entry.name));
    SERIN_CHECK(builder.set_datatype(input, datatype_of(entry.tensor)));
    SERIN_CHECK(builder.set_shape(input, entry.tensor.dims));
    protos[input] = std::move(entry.tensor);
  }
  SERIN_CHECK(builder.check_all_given());
  for (const std::string_view output : output_filter) SERIN_CHECK(builder.want(output, {.binary = true}));
  builder.want_rest(/*binary=*/true);
  const std::vector<TensorView>& tensors = builder.request.inputs;
  for (size_t i = 0; i < protos.size(); ++i) SERIN_CHECK(protos[i].check(tensors[i], signature.inputs[i].name));
  size_t bytes = 0;
  for (const Bytes input : inputs) bytes += input.size();
  SERIN_CHECK(builder.allocate(bytes));
  for (size_t i = 0; i < protos.size(); ++i) SERIN_CHECK(protos[i].copy_to(tensors[i], signature.inputs[i].name, decoding));
  return std::move(builder.request);
}

void append_tf_response(std::string& out, std::string_view model, int64_t version, std::string_view signature,
                        std::span<const NamedTensor> outputs) {
  std::vector<TensorProtoWriter> writers;
  writers.reserve(outputs.size());
  size_t bytes = 128 + model.size();
  for (const NamedTensor& named : outputs) bytes += 32 + named.name.size() + writers.emplace_back(named.tensor).bytes();
  out.reserve(out.size() + bytes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string key;
    wire::write_bytes(key, 1, outputs[i].name);
    wire::write_tag(key, 2, 2);
    wire::write_varint(key, writers[i].bytes());
    wire::write_tag(out, 1, 2);
    wire::write_varint(out, key.size() + writers[i].bytes());
    out += key;
    writers[i].append(out);
  }
  wire::write_message(out, 2, [&](std::string& spec) {
    wire::write_text(spec, 1, model);
    wire::write_message(spec, 2, [&](std::string& value) { wire::write_integer(value, 1, version); });
    wire::write_text(spec, 3, signature.empty() ? kTfSignature : signature);
  });
}

}  // namespace serin::protocol
