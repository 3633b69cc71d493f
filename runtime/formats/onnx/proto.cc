// proto.cc: one function for each message; the numbers are the field numbers of onnx.proto.

#include "runtime/formats/onnx/proto.h"

#include <fmt/format.h>

// A field that no case names is one that we do not read; next() skips it.
// NOLINTBEGIN(bugprone-switch-missing-default-case)

namespace serin::formats::onnx {
namespace {

GraphProto read_graph(Message in);

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

/// What a sequence or an optional holds: a tensor. Deeper nesting is kOther, so this does not recurse.
TypeProto read_element_type(Message in, TypeProto::Kind kind) {
  TypeProto type;
  while (in.next()) {
    if (in.field() != 1) continue;
    for (Message element = in.message("TypeProto"); element.next();) {
      if (element.field() == 1) type = read_tensor_type(element.message("TypeProto.Tensor"));
    }
  }
  type.kind = type.kind == TypeProto::Kind::kTensor ? kind : TypeProto::Kind::kOther;
  return type;
}

TypeProto read_type(Message in) {
  TypeProto type;
  while (in.next()) {
    switch (in.field()) {
      case 1: type = read_tensor_type(in.once().message("TypeProto.Tensor")); break;
      case 4: type = read_element_type(in.once().message("TypeProto.Sequence"), TypeProto::Kind::kSequence); break;
      case 9: type = read_element_type(in.once().message("TypeProto.Optional"), TypeProto::Kind::kOptional); break;
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

AttributeProto::Type attribute_type(int64_t code) {
  const auto last = static_cast<int64_t>(AttributeProto::Type::kStrings);
  return code >= 0 && code <= last ? static_cast<AttributeProto::Type>(code) : AttributeProto::Type::kOther;
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
      case 5: attribute.t = std::make_unique<TensorProto>(read_tensor(holds(Type::kTensor).once().message("TensorProto"))); break;
      case 6: attribute.g = std::make_unique<GraphProto>(read_graph(holds(Type::kGraph).once().message("GraphProto"))); break;
      case 7: holds(Type::kFloats).each_fixed<float>([&](float f) { attribute.floats.push_back(f); }); break;
      case 8: holds(Type::kInts).each_integer([&](int64_t i) { attribute.ints.push_back(i); }); break;
      case 9: attribute.strings.push_back(holds(Type::kStrings).chars()); break;
      case 10:
      case 11:
      case 14:
      case 15:
      case 22:
      case 23: found = Type::kOther; break;
      case 20: told = attribute_type(in.once().integer()); break;
      case 21: attribute.reference = true; break;
    }
  }
  attribute.type = told.value_or(found);
  // proto3 leaves out zeros and empty lists, so a field may be missing where the type is told, but never another one present.
  if (found != Type::kUndefined && found != attribute.type && attribute.type != Type::kOther)
    in.fail(fmt::format("attribute '{}' holds a value that is not of the type it names", attribute.name));
  if ((attribute.type == Type::kTensor && !attribute.t) || (attribute.type == Type::kGraph && !attribute.g))
    in.fail(fmt::format("attribute '{}' has no value", attribute.name));
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
    }
  }
  return node;
}

std::string_view read_sparse_name(Message in) {
  std::string_view name;
  while (in.next())
    if (in.field() == 1) name = read_tensor(in.message("TensorProto")).name;
  return name;
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
      case 15: graph.sparse_initializers.push_back(read_sparse_name(in.message("SparseTensorProto"))); break;
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
      case 10: function.domain = in.once().text(); break;
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
