// quantise_functions.cc
//
//   DequantizeLinear -> f -> QuantizeLinear   ->   QuantizedLookup(x, table)        f: a function of single elements, or nothing
//   DequantizeLinear... -> Concat -> QuantizeLinear   ->   Concat of bytes          each part looked up in a table of its own where scales differ
//
//   QuantizedBinary(x, QuantizedLookup(x))            ->   QuantizedLookup          x * sigmoid(x) is a function of x, too
//
// A byte has 256 values: whatever f is, a table of 256 bytes says all that it does. Its entries are computed by the kernels that would have run.

#include <algorithm>
#include <cmath>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

/// The numbers that the bytes 0 to 255 stand for.
std::vector<float> numbers(const Graph& graph, const QuantisedValue& x) {
  const bool is_signed = graph.value(x.q).type.dtype == DType::kInt8;
  std::vector<float> result;
  for (int byte = 0; byte < 256; ++byte) {
    const int q = is_signed ? static_cast<int8_t>(byte) : byte;
    result.push_back(static_cast<float>(q - zero_of(graph, x)) * scale_of(graph, x));
  }
  return result;
}

ConstantPtr quantised_table(const Graph& graph, std::span<const float> values, const QuantisedValue& to) {
  const DType dtype = graph.value(to.q).type.dtype;
  const double low = dtype == DType::kInt8 ? -128 : 0, high = dtype == DType::kInt8 ? 127 : 255;
  std::byte* memory = nullptr;
  auto table = make_mutable_constant(dtype, Shape{256}, &memory);
  for (size_t i = 0; i < values.size(); ++i) {
    const float quotient = values[i] / scale_of(graph, to);
    const double q = (std::isnan(quotient) ? 0.0 : std::nearbyint(static_cast<double>(quotient))) + zero_of(graph, to);
    memory[i] = static_cast<std::byte>(static_cast<int>(std::clamp(q, low, high)));
  }
  return table;
}

/// f of 256 numbers, by a graph of this one node.
std::optional<std::vector<float>> apply(const Evaluate& evaluate, const Graph& graph, NodeId function, const std::vector<float>& x) {
  Graph alone;
  const ValueId input = alone.add_constant("x", make_constant(DType::kFloat32, Shape{256}, x.data()));
  const NodeId node = alone.add_node(graph.node(function).op, "f", {input}, graph.node(function).attributes);
  alone.set_outputs({alone.output(node)});
  if (!infer_shapes(alone)) return std::nullopt;
  const auto results = evaluate(alone, node);
  if (!results || (*results)[0]->dtype != DType::kFloat32 || (*results)[0]->elements() != 256) return std::nullopt;
  const auto values = (*results)[0]->span<float>();
  return std::vector<float>(values.begin(), values.end());
}

bool look_up(const Evaluate& evaluate, Graph& graph, NodeId function) {
  if (graph.node(function).inputs.size() != 1) return false;
  const auto x = dequantised(graph, graph.input(function, 0));
  const auto y = quantised_by(graph, graph.output(function));
  if (!x || !y) return false;
  const auto values = apply(evaluate, graph, function, numbers(graph, *x));
  if (!values) return false;
  Patch patch(graph, {function, y->node});
  const ValueId table = patch.constant(kNone, quantised_table(graph, *values, *y), "table");
  patch.replace(y->q, patch.add(Op::kQuantizedLookup, {x->q, table}, {}));
  return true;
}

/// From one scale to another with nothing between.
bool look_up_scale(Graph& graph, NodeId dequantise) {
  const auto x = dequantised(graph, graph.output(dequantise));
  const auto y = quantised_by(graph, graph.output(dequantise));
  if (!x || !y) return false;
  Patch patch(graph, {dequantise, y->node});
  const ValueId table = patch.constant(kNone, quantised_table(graph, numbers(graph, *x), *y), "table");
  patch.replace(y->q, patch.add(Op::kQuantizedLookup, {x->q, table}, {}));
  return true;
}

/// The table of the lookup that makes `value`, null where there is none.
ConstantPtr table_of(const Graph& graph, ValueId value) {
  const NodeId lookup = graph.producer(value);
  const ConstantPtr table = graph.is(lookup, Op::kQuantizedLookup) ? graph.constant(graph.input(lookup, 1)) : nullptr;
  return table && table->elements() == 256 && is_byte(table->dtype) ? table : nullptr;
}

/// What each byte of x becomes on the way to operand `i` of a binary operator: itself, or what a lookup makes of it.
std::optional<std::vector<uint8_t>> bytes_of_operand(const Graph& graph, NodeId binary, size_t i, ValueId x) {
  const ValueId operand = graph.input(binary, i);
  const ConstantPtr table = operand == x ? nullptr : table_of(graph, operand);
  if (operand != x && (!table || graph.input(graph.producer(operand), 0) != x)) return std::nullopt;
  std::vector<uint8_t> bytes(256);
  for (size_t byte = 0; byte < bytes.size(); ++byte) bytes[byte] = table ? table->span<uint8_t>()[byte] : static_cast<uint8_t>(byte);
  return bytes;
}

/// Operands i.. of a binary operator as a number: its value, scale and zero point; nothing where these are not known.
std::optional<QuantisedValue> operand_of(const Graph& graph, NodeId binary, ValueId q, size_t scale) {
  const QuantisedValue found{kNone, q, graph.input(binary, scale), graph.input(binary, scale + 1)};
  const bool known = found.zero != kNone && has_one_scale(graph, found);
  return known && is_byte(graph.value(q).type.dtype) ? std::optional(found) : std::nullopt;
}

/// Both operands of a sum or product are functions of the same byte: so is the result.
bool join(Graph& graph, NodeId binary) {
  const auto source = [&](size_t i) {
    const ValueId operand = graph.input(binary, i);
    return table_of(graph, operand) ? graph.input(graph.producer(operand), 0) : operand;
  };
  const ValueId x = source(0) == graph.input(binary, 3) ? graph.input(binary, 3) : source(3);
  const auto a = bytes_of_operand(graph, binary, 0, x), b = bytes_of_operand(graph, binary, 3, x);
  if (!a || !b || graph.constant(x)) return false;
  const auto left = operand_of(graph, binary, graph.input(binary, 0), 1), right = operand_of(graph, binary, graph.input(binary, 3), 4);
  const auto to = operand_of(graph, binary, graph.output(binary), 6);
  if (!left || !right || !to) return false;
  const auto left_values = numbers(graph, *left), right_values = numbers(graph, *right);
  const bool multiplies = graph.node(binary).text("function", "Add") == "Mul", relu = graph.node(binary).text("activation", "") == "Relu";
  std::vector<float> values(256);
  for (size_t byte = 0; byte < values.size(); ++byte) {
    const float l = left_values[(*a)[byte]], r = right_values[(*b)[byte]];
    values[byte] = multiplies ? l * r : l + r;
    if (relu && values[byte] < 0) values[byte] = 0;
  }
  Patch patch(graph, {binary});
  const ValueId table = patch.constant(kNone, quantised_table(graph, values, *to), "table");
  patch.replace(graph.output(binary), patch.add(Op::kQuantizedLookup, {x, table}, {}));
  return true;
}

bool quantise_concat(Graph& graph, NodeId concat) {
  const auto y = quantised_by(graph, graph.output(concat));
  if (!y) return false;
  std::vector<QuantisedValue> parts;
  for (const ValueId operand : graph.node(concat).inputs) {
    const auto part = dequantised(graph, operand);
    if (!part) return false;
    parts.push_back(*part);
  }
  Patch patch(graph, {concat, y->node});
  std::vector<ValueId> operands;
  for (const QuantisedValue& part : parts) {
    if (same_parameters(graph, part, *y)) {
      operands.push_back(part.q);
      continue;
    }
    const ValueId table = patch.constant(kNone, quantised_table(graph, numbers(graph, part), *y), "table");
    operands.push_back(patch.add(Op::kQuantizedLookup, {part.q, table}, {}));
  }
  patch.replace(y->q, patch.add(Op::kConcat, std::move(operands), graph.node(concat).attributes));
  return true;
}

}  // namespace

Result<bool> QuantiseFunctions::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId concat : graph.nodes(Op::kConcat)) changed |= quantise_concat(graph, concat);
  for (const NodeId dequantise : graph.nodes(Op::kDequantizeLinear)) changed |= look_up_scale(graph, dequantise);
  for (const NodeId id : evaluate_ ? graph.nodes() : std::vector<NodeId>()) {
    changed |= has_table_of_bytes(graph.node(id).op) && look_up(evaluate_, graph, id);
  }
  for (const NodeId binary : graph.nodes(Op::kQuantizedBinary)) changed |= join(graph, binary);
  return changed;
}

}  // namespace serin::graph
