// oip_encode.cc: encodes tensors as JSON, straight into one string.

#include <algorithm>

#include "runtime/protocol/json/json_write.h"
#include "runtime/protocol/oip/oip_rest.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/raw_tensor.h"

namespace serin::protocol {
namespace {

void append_shape(std::string& out, const Shape& shape) {
  out += '[';
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) out += ',';
    append_number(out, shape[axis]);
  }
  out += ']';
}

void append_tensor(std::string& out, const NamedTensor& named) {
  out += R"({"name":)";
  append_string(out, named.name);
  out += R"(,"datatype":")";
  out += oip_datatype(named.tensor.dtype);
  out += R"(","shape":)";
  append_shape(out, named.tensor.shape);
  if (named.shared) {
    append_string(out += R"(,"parameters":{"shared_memory_region":)", named.shared->region);
    append_number(out += R"(,"shared_memory_byte_size":)", raw_bytes(named.tensor));
    append_number(out += R"(,"shared_memory_offset":)", named.shared->offset);
    out += "}}";
    return;
  }
  if (named.binary) {
    append_number(out += R"(,"parameters":{"binary_data_size":)", raw_bytes(named.tensor));
    out += "}}";
    return;
  }
  out += R"(,"data":[)";
  append_elements(out, named.tensor, 0, named.tensor.elements());
  out += "]}";
}

template <class List, class Append>
void append_list(std::string& out, const List& list, const Append& append) {
  out += '[';
  bool first = true;
  for (const auto& item : list) {
    if (!first) out += ',';
    first = false;
    append(out, item);
  }
  out += ']';
}

size_t estimated_bytes(std::span<const NamedTensor> tensors) {
  size_t bytes = 128;
  for (const NamedTensor& named : tensors)
    bytes += 96 + named.name.size() + (named.binary ? raw_bytes(named.tensor) : static_cast<size_t>(named.tensor.elements()) * 13);
  return bytes;
}

/// The JSON, and behind it those tensors that are not in it. Where they are empty it is all there is.
OipBody with_bytes(std::string json, std::span<const NamedTensor> tensors) {
  OipBody body{std::move(json), {}};
  const size_t json_bytes = body.bytes.size();
  for (const NamedTensor& named : tensors)
    if (named.binary) append_raw(body.bytes, named.tensor);
  if (body.bytes.size() > json_bytes) body.json_bytes = json_bytes;
  return body;
}

}  // namespace

OipBody encode_infer_response(const InferResponse& response, std::string memory) {
  std::string out = std::move(memory);
  out.clear();
  out.reserve(estimated_bytes(response.outputs));
  out += R"({"model_name":)";
  append_string(out, response.model);
  out += R"(,"model_version":)";
  append_string(out, response.version);
  if (!response.id.empty()) append_string(out += R"(,"id":)", response.id);
  append_list(out += R"(,"outputs":)", response.outputs, append_tensor);
  out += '}';
  return with_bytes(std::move(out), response.outputs);
}

OipBody encode_infer_request(std::span<const NamedTensor> inputs) {
  std::string out;
  out.reserve(estimated_bytes(inputs));
  append_list(out += R"({"inputs":)", inputs, append_tensor);
  out += '}';
  return with_bytes(std::move(out), inputs);
}

std::string encode_model_metadata(std::string_view model, std::span<const std::string> versions, std::string_view platform,
                                  std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs, const Parameters& parameters) {
  const auto append_spec = [](std::string& out, const TensorSpec& spec) {
    append_string(out += R"({"name":)", spec.name);
    append_string(out += R"(,"datatype":)", oip_datatype(spec.dtype));
    append_shape(out += R"(,"shape":)", spec.ranked ? spec.shape : Shape{-1});
    out += '}';
  };
  std::string out;
  append_string(out += R"({"name":)", model);
  append_list(out += R"(,"versions":)", versions, [](std::string& text, const std::string& version) { append_string(text, version); });
  append_string(out += R"(,"platform":)", platform);
  append_list(out += R"(,"inputs":)", inputs, append_spec);
  append_list(out += R"(,"outputs":)", outputs, append_spec);
  for (size_t i = 0; i < parameters.size(); ++i) {
    append_string(out += i == 0 ? R"(,"parameters":{)" : ",", parameters[i].first);
    append_string(out += ':', parameters[i].second);
  }
  out += parameters.empty() ? "}" : "}}";
  return out;
}

}  // namespace serin::protocol
