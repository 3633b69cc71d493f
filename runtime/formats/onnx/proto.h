// proto.h: the messages of onnx.proto that Serin reads, decoded into plain structs. Texts and tensor data are windows of the file image.
//
// Names and field numbers are those of the published schema (github.com/onnx/onnx, onnx/onnx.proto); fields not listed here are skipped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/formats/onnx/wire.h"

namespace serin::formats::onnx {

/// The header of a tensor; its elements stay in `body` until tensor.h reads them.
struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  int64_t data_location = 0;  ///< 1: external
  std::optional<Bytes> raw;   ///< raw_data
  uint32_t typed_fields =
      0;  ///< bit i: field i (4 float_data, 5 int32_data, 6 string_data, 7 int64_data, 10 double_data, 11 uint64_data) is there
  bool segmented = false;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
  Bytes body;
};

struct DimensionProto {
  std::optional<int64_t> value;
  std::string_view param;
};

struct TypeProto {
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kOptional, kOther } kind = Kind::kNone;
  int64_t elem_type = 0;
  std::optional<std::vector<DimensionProto>> shape;
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

struct GraphProto;

struct AttributeProto {
  enum class Type : uint8_t {
    kUndefined,
    kFloat,
    kInt,
    kString,
    kTensor,
    kGraph,
    kFloats,
    kInts,
    kStrings,
    kOther
  } type = Type::kUndefined;
  std::string_view name;
  bool reference = false;  ///< ref_attr_name: belongs in function bodies only
  int64_t i = 0;
  float f = 0;
  std::string_view s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;
  std::unique_ptr<TensorProto> t;
  std::unique_ptr<GraphProto> g;
};

struct NodeProto {
  std::string_view name, op_type, domain;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<std::string_view> sparse_initializers;  ///< their names
  std::vector<ValueInfoProto> inputs, outputs;
};

struct FunctionProto {
  std::string_view name, domain;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer_name;
  std::vector<std::pair<std::string_view, int64_t>> opset_import;  ///< domain, version
  std::optional<GraphProto> graph;
  std::vector<FunctionProto> functions;
};

// Mistakes go to the message's Decoding.
ModelProto read_model(Message in);
TensorProto read_tensor(Message in);

}  // namespace serin::formats::onnx
