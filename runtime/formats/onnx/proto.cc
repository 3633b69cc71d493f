// proto.cc: reads ONNX's messages, with one function for each message. The numbers are the field numbers of onnx.proto.

#include "runtime/formats/onnx/proto.h"

#include <fmt/format.h>

#include <array>

// A field that no case names is one that we do not read; next() skips it.
// NOLINTBEGIN(bugprone-switch-missing-default-case)

namespace serin::formats::onnx {
namespace {

constexpr int kMaxTypeNesting = 16;

GraphProto read_graph(Message in);
SparseTensorProto read_sparse_tensor(Message in);

std::pair<std::string_view, std::string_view> read_string_entry(Message in) {
  std::pair<std::string_view, std::string_view> entry;
  while (in.next()) {
    switch (in.field()) {
      case 1: entry.first = in.once().text(); break;
      case 2: entry.second = in.once().text(); break;
    }
  }
  return entry;
}

DimensionProto read_dimension(Message in) {
  DimensionProto dimension;
  while (in.next()) {
    switch (in.field()) {
      case 1: dimension.value = in.once().integer(); break;
      case 2: dimension.param = in.once().text(); break;
    }
  }
  return dimension;
}

std::vector<DimensionProto> read_shape(Message in) {
  std::vector<DimensionProto> shape;
  while (in.next())
    if (in.field() == 1) shape.push_back(read_dimension(in.message("TensorShapeProto.Dimension")));
  return shape;
}

TypeProto read_tensor_type(Message in) {
  TypeProto type;
  type.kind = TypeProto::Kind::kTensor;
  while (in.next()) {
    switch (in.field()) {
      case 1: type.elem_type = in.once().integer(); break;
      case 2: type.shape = read_shape(in.once().message("TensorShapeProto")); break;
    }
  }
  return type;
}

TypeProto read_type(Message in, int depth = 0);

/// What a sequence or an optional holds.
TypeProto read_container(Message in, TypeProto::Kind kind, int depth) {
  TypeProto element;
  while (in.next())
    if (in.field() == 1) element = read_type(in.once().message("TypeProto"), depth + 1);
  TypeProto type;
  const bool usable = element.kind != TypeProto::Kind::kNone && element.kind != TypeProto::Kind::kOther;
  type.kind = usable ? kind : TypeProto::Kind::kOther;
  type.elem_type = element.elem_type;
  type.shape = element.shape;
  type.element = std::make_shared<const TypeProto>(std::move(element));
  return type;
}

TypeProto read_type(Message in, int depth) {
  TypeProto type;
  if (depth > kMaxTypeNesting) {
    in.decoding().fail(Code::kTooLarge, in.position(), fmt::format("types within types, more than {} deep", kMaxTypeNesting));
    return type;
  }
  while (in.next()) {
    switch (in.field()) {
      case 1: type = read_tensor_type(in.once().message("TypeProto.Tensor")); break;
      case 4: type = read_container(in.once().message("TypeProto.Sequence"), TypeProto::Kind::kSequence, depth); break;
      case 9: type = read_container(in.once().message("TypeProto.Optional"), TypeProto::Kind::kOptional, depth); break;
      case 5:
      case 7:
      case 8: type.kind = TypeProto::Kind::kOther; break;
    }
  }
  return type;
}

ValueInfoProto read_value_info(Message in) {
  ValueInfoProto info;
  while (in.next()) {
    switch (in.field()) {
      case 1: info.name = in.once().text(); break;
      case 2: info.type = read_type(in.once().message("TypeProto")); break;
    }
  }
  return info;
}

/// By the number that AttributeProto.AttributeType gives it.
AttributeProto::Type attribute_type(int64_t code) {
  using Type = AttributeProto::Type;
  constexpr std::array kTypes = {Type::kUndefined, Type::kFloat,        Type::kInt,           Type::kString,  Type::kTensor,
                                 Type::kGraph,     Type::kFloats,       Type::kInts,          Type::kStrings, Type::kTensors,
                                 Type::kGraphs,    Type::kSparseTensor, Type::kSparseTensors, Type::kType,    Type::kTypes};
  return code >= 0 && code < static_cast<int64_t>(kTypes.size()) ? kTypes[static_cast<size_t>(code)] : Type::kOther;
}

AttributeProto read_attribute(Message in) {
  using Type = AttributeProto::Type;
  AttributeProto attribute;
  Type found = Type::kUndefined;  // of the fields that are there
  std::optional<Type> told;
  while (in.next()) {
    const auto holds = [&](Type type) -> Message& {
      found = found == Type::kUndefined || found == type ? type : Type::kOther;
      return in;
    };
    switch (in.field()) {
      case 1: attribute.name = in.once().text(); break;
      case 2: attribute.f = holds(Type::kFloat).once().number(); break;
      case 3: attribute.i = holds(Type::kInt).once().integer(); break;
      case 4: attribute.s = holds(Type::kString).once().chars(); break;
      case 5: attribute.t = std::make_shared<const TensorProto>(read_tensor(holds(Type::kTensor).once().message("TensorProto"))); break;
      case 6: attribute.g = std::make_shared<const GraphProto>(read_graph(holds(Type::kGraph).once().message("GraphProto"))); break;
      case 7: holds(Type::kFloats).each_fixed<float>([&](float f) { attribute.floats.push_back(f); }); break;
      case 8: holds(Type::kInts).each_integer([&](int64_t i) { attribute.ints.push_back(i); }); break;
      case 9: attribute.strings.push_back(holds(Type::kStrings).chars()); break;
      case 10: attribute.tensors.push_back(read_tensor(holds(Type::kTensors).message("TensorProto"))); break;
      case 11: read_graph(holds(Type::kGraphs).message("GraphProto")); break;
      case 14: attribute.tp = std::make_shared<const TypeProto>(read_type(holds(Type::kType).once().message("TypeProto"))); break;
      case 15: read_type(holds(Type::kTypes).message("TypeProto")); break;
      case 20: told = attribute_type(in.once().integer()); break;
      case 21: attribute.reference = in.once().text(); break;
      case 22:
        attribute.sparse =
            std::make_shared<const SparseTensorProto>(read_sparse_tensor(holds(Type::kSparseTensor).once().message("SparseTensorProto")));
        break;
      case 23: read_sparse_tensor(holds(Type::kSparseTensors).message("SparseTensorProto")); break;
    }
  }
  attribute.type = told.value_or(found);
  // proto3 leaves out zeros and empty lists, so a field may be missing where the type is told, but never another one present.
  if (found != Type::kUndefined && found != attribute.type && attribute.type != Type::kOther)
    in.fail(fmt::format("attribute '{}' holds a value that is not of the type it names", attribute.name));
  const bool empty = (attribute.type == Type::kTensor && !attribute.t) || (attribute.type == Type::kGraph && !attribute.g) ||
                     (attribute.type == Type::kType && !attribute.tp) || (attribute.type == Type::kSparseTensor && !attribute.sparse);
  if (empty && !attribute.reference) in.fail(fmt::format("attribute '{}' has no value", attribute.name));
  return attribute;
}

NodeProto read_node(Message in) {
  NodeProto node;
  while (in.next()) {
    switch (in.field()) {
      case 1: node.inputs.push_back(in.text()); break;
      case 2: node.outputs.push_back(in.text()); break;
      case 3: node.name = in.once().text(); break;
      case 4: node.op_type = in.once().text(); break;
      case 5: node.attributes.push_back(read_attribute(in.message("AttributeProto"))); break;
      case 7: node.domain = in.once().text(); break;
      case 8: node.overload = in.once().text(); break;
    }
  }
  return node;
}

SparseTensorProto read_sparse_tensor(Message in) {
  SparseTensorProto tensor;
  while (in.next()) {
    switch (in.field()) {
      case 1: tensor.values = read_tensor(in.once().message("TensorProto")); break;
      case 2: tensor.indices = read_tensor(in.once().message("TensorProto")); break;
      case 3: in.each_integer([&](int64_t dim) { tensor.dims.push_back(dim); }); break;
    }
  }
  return tensor;
}

GraphProto read_graph(Message in) {
  GraphProto graph;
  Decoding& decoding = in.decoding();
  if (++decoding.nesting > decoding.nesting_limit)
    decoding.fail(Code::kTooLarge, in.position(), fmt::format("graphs within graphs, more than {} deep", decoding.nesting_limit));
  while (in.next()) {
    switch (in.field()) {
      case 1: graph.nodes.push_back(read_node(in.message("NodeProto"))); break;
      case 2: graph.name = in.once().text(); break;
      case 5: graph.initializers.push_back(read_tensor(in.message("TensorProto"))); break;
      case 11: graph.inputs.push_back(read_value_info(in.message("ValueInfoProto"))); break;
      case 12: graph.outputs.push_back(read_value_info(in.message("ValueInfoProto"))); break;
      case 15: graph.sparse_initializers.push_back(read_sparse_tensor(in.message("SparseTensorProto"))); break;
    }
  }
  --decoding.nesting;
  return graph;
}

std::pair<std::string_view, int64_t> read_opset(Message in) {
  std::pair<std::string_view, int64_t> opset;
  while (in.next()) {
    switch (in.field()) {
      case 1: opset.first = in.once().text(); break;
      case 2: opset.second = in.once().integer(); break;
    }
  }
  return opset;
}

FunctionProto read_function(Message in) {
  FunctionProto function;
  while (in.next()) {
    switch (in.field()) {
      case 1: function.name = in.once().text(); break;
      case 4: function.inputs.push_back(in.text()); break;
      case 5: function.outputs.push_back(in.text()); break;
      case 6: function.attributes.push_back(in.text()); break;
      case 7: function.nodes.push_back(read_node(in.message("NodeProto"))); break;
      case 9: function.opset_import.push_back(read_opset(in.message("OperatorSetIdProto"))); break;
      case 10: function.domain = in.once().text(); break;
      case 11: function.defaults.push_back(read_attribute(in.message("AttributeProto"))); break;
      case 13: function.overload = in.once().text(); break;
    }
  }
  return function;
}

}  // namespace

TensorProto read_tensor(Message in) {
  TensorProto tensor;
  tensor.body = in.body();
  while (in.next()) {
    switch (in.field()) {
      case 1: in.each_integer([&](int64_t dim) { tensor.dims.push_back(dim); }); break;
      case 2: tensor.data_type = in.once().integer(); break;
      case 3: tensor.segmented = true; break;
      case 4:
      case 5:
      case 6:
      case 7:
      case 10:
      case 11: tensor.typed_fields |= 1u << in.field(); break;
      case 8: tensor.name = in.once().text(); break;
      case 9: tensor.raw = in.once().bytes(); break;
      case 13: tensor.external_data.push_back(read_string_entry(in.message("StringStringEntryProto"))); break;
      case 14: tensor.data_location = in.once().integer(); break;
    }
  }
  return tensor;
}

ModelProto read_model(Message in) {
  ModelProto model;
  while (in.next()) {
    switch (in.field()) {
      case 1: model.ir_version = in.once().integer(); break;
      case 2: model.producer_name = in.once().text(); break;
      case 7: model.graph = read_graph(in.once().message("GraphProto")); break;
      case 8: model.opset_import.push_back(read_opset(in.message("OperatorSetIdProto"))); break;
      case 25: model.functions.push_back(read_function(in.message("FunctionProto"))); break;
    }
  }
  return model;
}

}  // namespace serin::formats::onnx

// NOLINTEND(bugprone-switch-missing-default-case)
