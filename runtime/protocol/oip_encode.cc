// oip_encode.cc: tensors -> JSON, straight into one string. std::to_chars gives the shortest text that reads back to the same float.

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/float16.h"
#include "runtime/protocol/datatype.h"
#include "runtime/protocol/oip_rest.h"
#include "runtime/protocol/raw_tensor.h"

namespace serin::protocol {
namespace {

void append_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (byte < 0x20)
      (((out += "\\u00") += kHex[byte >> 4]) += kHex[byte & 15]);
    else
      out += c;
  }
  out += '"';
}

template <class T>
void append_number(std::string& out, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {
      out += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
      return;
    }
    if (value == 0 && std::signbit(value)) {
      out += "-0.0";  // "-0" is an integer to most readers, which has no sign
      return;
    }
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, end);
}

template <class T>
void append_elements(std::string& out, const TensorView& tensor) {
  bool first = true;
  for (const T value : tensor.span<const T>()) {
    if (!first) out += ',';
    first = false;
    if constexpr (std::is_same_v<T, bool>)
      out += value ? "true" : "false";
    else if constexpr (sizeof(T) == 2 && std::is_class_v<T>)
      append_number(out, kernels::to_float(value));
    else
      append_number(out, value);
  }
}

/// JSON is UTF-8. Bytes that are not become the characters of their numbers, so that the rest of the answer can still be read.
void append_texts(std::string& out, const TensorView& tensor) {
  bool first = true;
  for (const std::string& text : tensor.span<const std::string>()) {
    if (!first) out += ',';
    first = false;
    if (simdjson::validate_utf8(text.data(), text.size())) {
      append_string(out, text);
      continue;
    }
    std::string widened;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80)
        widened += c;
      else
        (widened += static_cast<char>(0xc0 | byte >> 6)) += static_cast<char>(0x80 | (byte & 0x3f));
    }
    append_string(out, widened);
  }
}

void append_data(std::string& out, const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kBool: return append_elements<bool>(out, tensor);
    case DType::kInt8: return append_elements<int8_t>(out, tensor);
    case DType::kInt16: return append_elements<int16_t>(out, tensor);
    case DType::kInt32: return append_elements<int32_t>(out, tensor);
    case DType::kInt64: return append_elements<int64_t>(out, tensor);
    case DType::kUInt8: return append_elements<uint8_t>(out, tensor);
    case DType::kUInt16: return append_elements<uint16_t>(out, tensor);
    case DType::kUInt32: return append_elements<uint32_t>(out, tensor);
    case DType::kUInt64: return append_elements<uint64_t>(out, tensor);
    case DType::kFloat32: return append_elements<float>(out, tensor);
    case DType::kFloat64: return append_elements<double>(out, tensor);
    case DType::kString: return append_texts(out, tensor);
    case DType::kFloat16: return append_elements<kernels::Half>(out, tensor);
    case DType::kBFloat16: return append_elements<kernels::BFloat16>(out, tensor);
    default: return;  // a model with such outputs is refused when it is loaded
  }
}

void append_shape(std::string& out, const Shape& shape) { out += shape.str(); }

void append_tensor(std::string& out, const NamedTensor& named) {
  out += R"({"name":)";
  append_string(out, named.name);
  out += R"(,"datatype":")";
  out += oip_datatype(named.tensor.dtype);
  out += R"(","shape":)";
  append_shape(out, named.tensor.shape);
  if (named.binary) {
    append_number(out += R"(,"parameters":{"binary_data_size":)", raw_bytes(named.tensor));
    out += "}}";
    return;
  }
  out += R"(,"data":[)";
  append_data(out, named.tensor);
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

/// The JSON, and behind it those tensors that are not in it.
OipBody with_bytes(std::string json, std::span<const NamedTensor> tensors) {
  OipBody body{std::move(json), {}};
  if (std::ranges::any_of(tensors, &NamedTensor::binary)) body.json_bytes = body.bytes.size();
  for (const NamedTensor& named : tensors)
    if (named.binary) append_raw(body.bytes, named.tensor);
  return body;
}

}  // namespace

OipBody encode_infer_response(const InferResponse& response) {
  std::string out;
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
