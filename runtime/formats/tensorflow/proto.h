// proto.h: the messages of saved_model.pb as plain structs of windows into the file.
//
// Only the fields that an importer needs are read. Attributes whose names begin with '_' are hints of TensorFlow, and are skipped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/wire.h"

namespace serin::formats::tf {

using wire::Bytes;

/// TensorShapeProto: -1 is an unknown dimension; nothing: even the rank is unknown.
using PartialShape = std::optional<std::vector<int64_t>>;

/// AttrValue. Which fields are set says the type.
struct Attr {
  std::optional<std::string_view> text;
  std::optional<int64_t> integer;  ///< also bool, and the number of a dtype
  std::optional<float> number;
  std::optional<PartialShape> shape;
  std::optional<Bytes> tensor;  ///< a TensorProto (tensor.h)
  std::string_view function;
  std::vector<Attr> list;
};
using Attrs = std::map<std::string_view, Attr>;

struct NodeDef {
  std::string_view name, op;
  std::vector<std::string_view> inputs;  ///< "node", "node:1", "^node"; in functions "node:output:1" and names of arguments
  Attrs attrs;
};

struct FunctionDef {
  std::string_view name;
  std::vector<std::string_view> arguments, results;
  std::vector<NodeDef> nodes;
  std::map<std::string_view, std::string_view> returns;  ///< name of a result -> "node:output:0"
};

/// TensorInfo of a signature.
struct TensorInfo {
  std::string_view name;  ///< "node:0"; empty: a sparse or composite tensor
  int64_t dtype = 0;
  PartialShape shape;
};

struct SignatureDef {
  std::map<std::string_view, TensorInfo> inputs, outputs;
  std::string_view method;  ///< "tensorflow/serving/predict"
};

struct MetaGraph {
  std::vector<std::string_view> tags;
  std::vector<NodeDef> nodes;
  std::vector<FunctionDef> functions;
  std::string_view restore_op, filename_tensor;  ///< of the SaverDef
  std::vector<std::string_view> init_ops;        ///< nodes that run once after loading: they fill tables
  std::map<std::string_view, SignatureDef> signatures;
  std::map<std::string_view, std::string_view> assets;  ///< "node:0" -> a file in assets/
};

/// Reads the graph that is for serving: the one with the tag "serve", or the only one. Errors are kept by `decoding`.
MetaGraph read_saved_model(wire::Message in);

PartialShape read_shape(wire::Message in);

}  // namespace serin::formats::tf
