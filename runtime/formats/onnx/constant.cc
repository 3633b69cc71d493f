// constant.cc: reads the operators that write values into the graph.

#include <fmt/format.h>

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using AttributeType = AttributeProto::Type;

template <class T, class From>
graph::ConstantPtr list_of(const std::vector<From>& values) {
  const std::vector<T> elements(values.begin(), values.end());
  return graph::make_constant(dtype_of<T>(), Shape{static_cast<int64_t>(elements.size())}, elements.data());
}

graph::ConstantPtr strings_of(Shape shape, std::vector<std::string> strings) {
  std::byte* memory = nullptr;
  auto constant = graph::make_mutable_constant(DType::kString, shape, &memory);
  constant->strings = std::move(strings);
  return constant;
}

graph::ConstantPtr value_of(NodeImport& node, const AttributeProto& attribute) {
  switch (attribute.type) {
    case AttributeType::kTensor: return node.tensor(attribute.name);
    case AttributeType::kSparseTensor: return node.sparse_tensor(attribute.name);
    case AttributeType::kFloat: return graph::make_constant(DType::kFloat32, Shape{}, &attribute.f);
    case AttributeType::kInt: return graph::make_constant(DType::kInt64, Shape{}, &attribute.i);
    case AttributeType::kFloats: return list_of<float>(attribute.floats);
    case AttributeType::kInts: return list_of<int64_t>(attribute.ints);
    case AttributeType::kString: return strings_of(Shape{}, {std::string(attribute.s)});
    case AttributeType::kStrings:
      return strings_of(Shape{static_cast<int64_t>(attribute.strings.size())}, {attribute.strings.begin(), attribute.strings.end()});
    default: node.corrupt(fmt::format("attribute '{}' is not of its type", attribute.name)); return nullptr;
  }
}

struct ConstantForm {
  std::string_view key;
  AttributeType type;
};
constexpr ConstantForm kForms[] = {
    {"value", AttributeType::kTensor},          {"value_float", AttributeType::kFloat},         {"value_floats", AttributeType::kFloats},
    {"value_int", AttributeType::kInt},         {"value_ints", AttributeType::kInts},           {"value_string", AttributeType::kString},
    {"value_strings", AttributeType::kStrings}, {"sparse_value", AttributeType::kSparseTensor},
};

}  // namespace

void import_constant(NodeImport& node, graph::Op) {
  graph::ConstantPtr constant;
  int found = 0;
  for (const ConstantForm& form : kForms) {
    const AttributeProto* const attribute = node.attribute(form.key);
    if (!attribute) continue;
    ++found;
    if (attribute->type != form.type) return node.corrupt(fmt::format("attribute '{}' is not of its type", form.key));
    constant = value_of(node, *attribute);
  }
  if (found != 1) return node.corrupt(fmt::format("has {} values, one is needed", found));
  node.emit_constant(0, constant);
}

void import_constant_of_shape(NodeImport& node, graph::Op op) {
  graph::Attributes attributes;
  if (node.has("value")) {
    const graph::ConstantPtr value = node.tensor("value");
    if (value && value->elements() != 1) node.corrupt(fmt::format("attribute 'value' has {} elements, one is needed", value->elements()));
    attributes.emplace("value", value);
  }
  node.emit(op, {node.input(0)}, std::move(attributes));
}

}  // namespace serin::formats::onnx
