// encode.h: model files by hand (tests/runtime/base/protobuf_encoder.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/formats/onnx/onnx.h"
#include "tests/runtime/base/protobuf_encoder.h"

namespace serin::formats {

using test::Encoder;

// The messages that tests need, with the field numbers of onnx.proto.

inline Encoder attribute(std::string_view name, int64_t value) { return Encoder().bytes(1, name).number(3, value).number(20, 2); }
inline Encoder attribute(std::string_view name, float value) { return Encoder().bytes(1, name).real(2, value).number(20, 1); }
inline Encoder attribute(std::string_view name, std::string_view value) { return Encoder().bytes(1, name).bytes(4, value).number(20, 3); }
inline Encoder attribute(std::string_view name, const std::vector<int64_t>& values) {
  Encoder out;
  out.bytes(1, name).number(20, 7);
  for (const int64_t value : values) out.number(8, value);
  return out;
}
inline Encoder tensor_attribute(std::string_view name, const Encoder& tensor) {
  return Encoder().bytes(1, name).message(5, tensor).number(20, 4);
}
inline Encoder graph_attribute(std::string_view name, const Encoder& graph) {
  return Encoder().bytes(1, name).message(6, graph).number(20, 5);
}

inline Encoder node(std::string_view op, std::string_view name, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<Encoder>& attributes = {}) {
  Encoder out;
  for (const auto& input : inputs) out.bytes(1, input);
  for (const auto& output : outputs) out.bytes(2, output);
  out.bytes(3, name).bytes(4, op);
  for (const auto& attribute : attributes) out.message(5, attribute);
  return out;
}

inline Encoder tensor(std::string_view name, int64_t data_type, const std::vector<int64_t>& dims, std::string_view raw_data) {
  Encoder out;
  for (const int64_t dim : dims) out.number(1, dim);
  return out.number(2, data_type).bytes(8, name).bytes(9, raw_data);
}
template <class T>
std::string raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
inline Encoder i64(std::string_view name, const std::vector<int64_t>& values) {
  return tensor(name, 7, {static_cast<int64_t>(values.size())}, raw_bytes(values));
}
inline Encoder f32(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return tensor(name, 1, dims, raw_bytes(values));
}
inline Encoder f32(std::string_view name, const std::vector<int64_t>& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return f32(name, dims, std::vector<float>(static_cast<size_t>(elements), 0.5F));
}

/// Dimensions are numbers, names, or "" for nothing said.
inline Encoder value(std::string_view name, const std::vector<std::string>& dims, int64_t elem_type = 1) {
  Encoder shape;
  for (const std::string& dim : dims) {
    const bool number = !dim.empty() && dim.find_first_not_of("-0123456789") == std::string::npos;
    shape.message(1, number ? Encoder().number(1, std::stoll(dim)) : dim.empty() ? Encoder() : Encoder().bytes(2, dim));
  }
  return Encoder().bytes(1, name).message(2, Encoder().message(1, Encoder().number(1, elem_type).message(2, shape)));
}

struct GraphParts {
  std::vector<Encoder> nodes, initializers, inputs, outputs;
};

inline Encoder graph(const GraphParts& parts) {
  Encoder out;
  for (const auto& part : parts.nodes) out.message(1, part);
  out.bytes(2, "g");
  for (const auto& part : parts.initializers) out.message(5, part);
  for (const auto& part : parts.inputs) out.message(11, part);
  for (const auto& part : parts.outputs) out.message(12, part);
  return out;
}

inline Encoder model(int64_t opset, const Encoder& graph) {
  return Encoder().number(1, 8).message(7, graph).message(8, Encoder().number(2, opset));
}
inline Encoder model(int64_t opset, const GraphParts& parts) { return model(opset, graph(parts)); }

/// Reads it from memory of exactly that size, so that a sanitizer sees a read past the end.
inline Result<graph::Graph> read(std::string_view file, const OnnxLimits& limits = {}, const ReplaceableInputs& replaceable = {}) {
  const std::shared_ptr<std::byte[]> copy(new std::byte[file.size()]);
  std::memcpy(copy.get(), file.data(), file.size());
  return read_onnx_bytes(std::shared_ptr<const std::byte>(copy, copy.get()), file.size(), "", replaceable, limits);
}
inline Result<graph::Graph> read(const Encoder& file, const OnnxLimits& limits = {}, const ReplaceableInputs& replaceable = {}) {
  return read(file.str(), limits, replaceable);
}

/// The message of the error, or what was read.
inline std::string error_of(const Result<graph::Graph>& result) {
  return result ? "no error, but:\n" + graph::print(*result) : result.error().message;
}

}  // namespace serin::formats
