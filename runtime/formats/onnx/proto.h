// proto.h: decodes the messages of onnx.proto that Serin reads into plain structs. Texts and tensor data are views of the file image.
//
// Names and field numbers are those of the published schema (github.com/onnx/onnx, onnx/onnx.proto); fields not listed here are skipped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/wire.h"

namespace serin::formats::onnx {

using wire::Bytes;
using wire::Decoding;
using wire::Message;

/// The header of a tensor; its elements stay in `body` until tensor.h reads them.
struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  int64_t data_location = 0;  ///< 1: external
  std::optional<Bytes> raw;   ///< raw_data
  uint32_t typed_fields =
      0;  ///< bit i: field i is present (4 float_data, 5 int32_data, 6 string_data, 7 int64_data, 10 double_data, 11 uint64_data)
  bool segmented = false;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
  Bytes body;
};

/// Mostly zeros: the other elements, and the place of each (its linear index, or one index for each axis).
struct SparseTensorProto {
  TensorProto values, indices;  ///< the tensor's name is that of `values`
  std::vector<int64_t> dims;
};

struct DimensionProto {
  std::optional<int64_t> value;
  std::string_view param;
};

struct TypeProto {
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kOptional, kOther } kind = Kind::kNone;
  int64_t elem_type = 0;                             ///< of the tensors in it, at any depth
  std::optional<std::vector<DimensionProto>> shape;  ///< likewise
  std::shared_ptr<const TypeProto> element;          ///< element type of a sequence or an optional
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
    kTensors,
    kGraphs,
    kSparseTensor,
    kSparseTensors,
    kType,
    kTypes,
    kOther
  } type = Type::kUndefined;
  std::string_view name;
  std::optional<std::string_view> reference;  ///< ref_attr_name: in a function, that attribute of the calling node
  int64_t i = 0;
  float f = 0;
  std::string_view s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;
  std::shared_ptr<const TensorProto> t;
  std::shared_ptr<const GraphProto> g;
  std::shared_ptr<const SparseTensorProto> sparse;
  std::shared_ptr<const TypeProto> tp;
  std::vector<TensorProto> tensors;
};

struct NodeProto {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfoProto> inputs, outputs;
};

/// An operator that the file defines by nodes. Names within it are local.
struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;  ///< attributes: those without a default
  std::vector<AttributeProto> defaults;                       ///< attributes with a default
  std::vector<NodeProto> nodes;
  std::vector<std::pair<std::string_view, int64_t>> opset_import;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer_name;
  std::vector<std::pair<std::string_view, int64_t>> opset_import;  ///< domain, version
  std::optional<GraphProto> graph;
  std::vector<FunctionProto> functions;
};

// Errors go to the message's Decoding.
ModelProto read_model(Message in);
TensorProto read_tensor(Message in);

}  // namespace serin::formats::onnx
