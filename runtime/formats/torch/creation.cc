// creation.cc: new tensors, and tensors of another type.

#include <fmt/format.h>

#include <cmath>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;

graph::ConstantPtr element(NodeImport& node, DType dtype, double value) {
  // 16-bit floats have no constant of one element: they are made in f32 and converted.
  const graph::ConstantPtr made = graph::make_scalar(dtype, value);
  if (!made) node.unsupported(fmt::format("a tensor of type {}", dtype_name(dtype)));
  return made;
}

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

ValueId filled(NodeImport& node, ValueId shape, DType dtype, double value) {
  const graph::ConstantPtr one = element(node, is_half(dtype) ? DType::kFloat32 : dtype, value);
  return node.b.cast(node.b.add(Op::kConstantOfShape, {shape}, {{"value", one}}), dtype);
}

/// zeros, ones, full, empty and their forms _like and new_.
void import_full(NodeImport& node, Op) {
  const std::string& target = node.node().target;
  const DType dtype = node.result_dtype();
  const ValueId like = node.has("self") ? node.tensor("self") : kNone;
  const ValueId shape = node.has("size") ? node.shape_of(node.sizes("size")) : node.b.add(Op::kShape, {like});
  if (node.is_tensor("fill_value") || node.is_tensor("value"))
    return node.give(expanded(node, node.operand(node.has("value") ? "value" : "fill_value", dtype), shape));
  const double ones = target.find("ones") != std::string::npos ? 1 : 0;
  const char* const value = node.has("value") ? "value" : "fill_value";
  const auto found = node.node().arguments.find(value);
  if (found != node.node().arguments.end() && found->second.kind == "as_sym_int")
    return node.give(expanded(node, node.operand(value, dtype), shape));
  node.give(filled(node, shape, dtype, node.number(value, ones)));
}

void import_arange(NodeImport& node, Op op) {
  const DType dtype = node.result_dtype();
  const bool integer = dtype == DType::kInt64 || dtype == DType::kInt32;
  const DType as = integer ? DType::kInt64 : DType::kFloat32;
  const ValueId begin = node.has("start") ? node.operand("start", as) : node.b.number(as, 0);
  const ValueId step = node.has("step") ? node.operand("step", as) : node.b.number(as, 1);
  node.give(node.b.cast(node.b.add(op, {begin, node.operand("end", as), step}), dtype));
}

void import_linspace(NodeImport& node, Op) {
  const int64_t steps = node.integer("steps", 0);
  constexpr int64_t kMost = 1 << 24;
  if (steps < 0 || steps > kMost || node.is_tensor("start") || node.is_tensor("end")) return node.unsupported("numbers that are not known");
  const double begin = node.number("start", 0), end = node.number("end", 0);
  std::vector<float> values;
  values.reserve(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i)
    values.push_back(
        static_cast<float>(steps == 1 ? begin : begin + (end - begin) * static_cast<double>(i) / static_cast<double>(steps - 1)));
  node.give(node.b.cast(node.b.constant(graph::make_constant(DType::kFloat32, Shape{steps}, values.data())), node.result_dtype()));
}

void import_scalar_tensor(NodeImport& node, Op) { node.give(node.operand(node.has("s") ? "s" : "self", node.result_dtype())); }

void import_eye(NodeImport& node, Op) {
  const int64_t rows = node.integer("n", 0), columns = node.integer("m", rows);
  constexpr int64_t kMost = 4096;
  if (rows < 0 || columns < 0 || rows > kMost || columns > kMost)
    return node.unsupported(fmt::format("a matrix of {} x {}", rows, columns));
  std::vector<float> values(static_cast<size_t>(rows * columns), 0);
  for (int64_t i = 0; i < std::min(rows, columns); ++i) values[static_cast<size_t>(i * columns + i)] = 1;
  node.give(node.b.cast(node.b.constant(graph::make_constant(DType::kFloat32, Shape{rows, columns}, values.data())), node.result_dtype()));
}

/// to, _to_copy, type_as, float ...: the type that the program declares.
void import_to(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const DType dtype = node.result_dtype();
  node.give(node.b.dtype(x) == dtype ? x : node.b.cast(x, dtype));
}

/// self with the elements of src: the write itself is graph_import's.
void import_copy(NodeImport& node, Op) {
  const ValueId into = node.tensor("self"), from = node.b.cast(node.tensor("src"), node.b.dtype(into));
  node.give(node.b.dims(from) == node.b.dims(into) ? from : expanded(node, from, node.b.add(Op::kShape, {into})));
}

void import_fill(NodeImport& node, Op) {
  const ValueId like = node.tensor("self");
  const ValueId shape = node.b.add(Op::kShape, {like});
  const DType dtype = node.b.dtype(like);
  if (node.is_tensor("value")) return node.give(expanded(node, node.operand("value", dtype), shape));
  node.give(filled(node, shape, dtype, node.number("value", 0)));
}

constexpr OperatorRow kCreation[] = {
    {"aten._to_copy", import_to, Op::kCast},
    {"aten.arange", import_arange, Op::kRange},
    {"aten.copy", import_copy},
    {"aten.empty", import_full},
    {"aten.empty_like", import_full},
    {"aten.eye", import_eye},
    {"aten.fill", import_fill},
    {"aten.full", import_full},
    {"aten.full_like", import_full},
    {"aten.linspace", import_linspace},
    {"aten.new_empty", import_full},
    {"aten.new_full", import_full},
    {"aten.new_ones", import_full},
    {"aten.new_zeros", import_full},
    {"aten.ones", import_full},
    {"aten.ones_like", import_full},
    {"aten.scalar_tensor", import_scalar_tensor},
    {"aten.to", import_to, Op::kIdentity, Alias::kMaybe},
    {"aten.type_as", import_to, Op::kIdentity, Alias::kMaybe},
    {"aten.zero", import_fill},
    {"aten.zeros", import_full},
    {"aten.zeros_like", import_full},
};

}  // namespace

std::span<const OperatorRow> creation_operators() { return kCreation; }

}  // namespace serin::formats::torch
