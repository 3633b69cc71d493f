// commute_transposes.cc
//
// torch's attention puts the sequence first, multiplies, and turns back:
//
//   Transpose(x, [.., s, b, ..]) -> Reshape -> x W + bias -> Reshape -> Transpose([1,0,2])
//
// A product by one matrix does the same to every row, whatever their order: the rows need not be turned at all. The second Transpose goes, and the
// first one leaves the batch first. Where the first one follows an Attention, it becomes part of it (heads_inside).
//
// The same before attention: Transpose([1,0,2]) -> x W + bias, whose result is only looked at (reshaped, cut, transposed) until Attention reads it,
// is the product first and then the Transpose, which Attention reads through (engine/attention_views.cc).

#include <algorithm>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

bool swaps_first_two(const Graph& graph, NodeId id) {
  return graph.is(id, Op::kTranspose) && graph.node(id).integers("perm") == std::vector<int64_t>{1, 0, 2};
}

/// x W + row, and nothing that depends on the order of rows.
bool is_row_product(const Graph& graph, NodeId id) {
  if (!graph.is(id, Op::kMatMul) && !graph.is(id, Op::kFusedMatMul)) return false;
  const ConstantPtr weight = graph.constant(graph.input(id, 1)), bias = graph.constant(graph.input(id, 2));
  if (!weight || weight->shape.rank() != 2 || graph.node(id).integer("transA", 0) != 0 || graph.input(id, 3) != kNone) return false;
  return graph.input(id, 2) == kNone || (bias && bias->shape.rank() == 1);
}

/// The value behind a Reshape that only this node reads, or the value itself.
ValueId before_reshape(const Graph& graph, ValueId value, std::vector<NodeId>& passed) {
  const NodeId id = only_producer(graph, value, Op::kReshape);
  if (id == kNone) return value;
  passed.push_back(id);
  return graph.input(id, 0);
}

/// [length, batch, ...] -> ... -> [batch, length, width], with rows in the other order all the way.
bool turn_back_early(Graph& graph, NodeId last) {
  const Dims* const result = dims_of_value(graph, graph.output(last));
  if (!result || result->size() != 3 || !(*result)[2].known()) return false;
  std::vector<NodeId> passed{last};
  const NodeId product = graph.producer(before_reshape(graph, graph.input(last, 0), passed));
  if (!is_row_product(graph, product) || graph.reader_count(graph.output(product)) != 1) return false;
  passed.push_back(product);
  const NodeId first = graph.producer(before_reshape(graph, graph.input(product, 0), passed));
  if (!graph.is(first, Op::kTranspose) || graph.reader_count(graph.output(first)) != 1) return false;
  passed.push_back(first);

  // The first Transpose gives [length, batch, ...], the product reads rows of all of the rest.
  const Dims* const turned = dims_of_value(graph, graph.output(first));
  const Dims* const rows = dims_of_value(graph, graph.input(product, 0));
  const Dims* const made = dims_of_value(graph, graph.input(last, 0));
  if (!turned || !rows || !made || turned->size() < 3 || !((*turned)[0] == (*made)[0]) || !((*turned)[1] == (*made)[1])) return false;
  Dim width = 1;
  for (size_t axis = 2; axis < turned->size(); ++axis) width = width * (*turned)[axis];
  if (!width.known() || !(rows->back() == width)) return false;

  auto perm = graph.node(first).integers("perm");
  std::swap(perm[0], perm[1]);
  std::ranges::reverse(passed);
  const NodeId attention = only_producer(graph, graph.input(first, 0), Op::kAttention);
  const bool inside = attention != kNone && perm == std::vector<int64_t>{0, 2, 1, 3} && graph.node(attention).outputs.size() == 1 &&
                      graph.node(attention).integer("heads_inside", 0) == 0;
  if (inside) passed.insert(passed.begin(), attention);
  Patch patch(graph, passed);
  ValueId x = kNone;
  if (inside) {
    Attributes attributes = graph.node(attention).attributes;
    attributes["heads_inside"] = int64_t{1};
    x = patch.add(Op::kAttention, graph.node(attention).inputs, std::move(attributes));
  } else {
    x = std::ranges::is_sorted(perm) ? graph.input(first, 0) : patch.add(Op::kTranspose, {graph.input(first, 0)}, {{"perm", perm}});
  }
  if (turned->size() != 3) {
    const std::vector<int64_t> target{0, 0, *width.value()};
    x = patch.add(Op::kReshape, {x, patch.constant(kNone, make_constant(target), "rows")}, {{"allowzero", int64_t{0}}});
  }
  std::vector<ValueId> operands = graph.node(product).inputs;
  operands[0] = x;
  patch.replace(graph.output(last), patch.add(graph.node(product).op, std::move(operands), graph.node(product).attributes));
  return true;
}

/// Whether everybody who reads `value`, looking at it in whatever shape, is an Attention.
bool only_attended(const Graph& graph, ValueId value, int depth = 0) {
  constexpr int kDeepest = 8;
  if (depth > kDeepest || graph.is_output(value)) return false;
  return std::ranges::all_of(graph.readers(value), [&](NodeId reader) {
    if (graph.is(reader, Op::kAttention)) return graph.input(reader, 3) != value;
    if (graph.is(reader, Op::kShape)) return true;
    const bool looks = graph.is(reader, Op::kReshape) || graph.is(reader, Op::kTranspose) || graph.is(reader, Op::kUnsqueeze) ||
                       graph.is(reader, Op::kSqueeze) || graph.is(reader, Op::kSplit) || graph.is(reader, Op::kSlice) ||
                       (graph.is(reader, Op::kGather) && graph.constant(graph.input(reader, 1)));
    return looks && graph.input(reader, 0) == value && std::ranges::all_of(graph.node(reader).outputs, [&](ValueId made) {
             return made == kNone || only_attended(graph, made, depth + 1);
           });
  });
}

/// Transpose, product -> product, Transpose.
bool turn_late(Graph& graph, NodeId product) {
  if (!is_row_product(graph, product) || !graph.node(product).text("activation", "").empty()) return false;
  const NodeId transpose = only_producer(graph, graph.input(product, 0), Op::kTranspose);
  // A Shape of the turned operand is another reader, and stays with it.
  const NodeId turned = transpose != kNone ? transpose : graph.producer(graph.input(product, 0));
  if (!swaps_first_two(graph, turned) || !only_attended(graph, graph.output(product))) return false;
  Patch patch(graph, {turned, product});
  std::vector<ValueId> operands = graph.node(product).inputs;
  operands[0] = graph.input(turned, 0);
  const ValueId y = patch.add(graph.node(product).op, std::move(operands), graph.node(product).attributes);
  patch.replace(graph.output(product), patch.add(Op::kTranspose, {y}, graph.node(turned).attributes));
  return true;
}

}  // namespace

Result<bool> CommuteTransposes::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes(Op::kTranspose)) {
    if (swaps_first_two(graph, id)) changed |= turn_back_early(graph, id);
  }
  for (const Op op : {Op::kMatMul, Op::kFusedMatMul}) {
    for (const NodeId id : graph.nodes(op)) changed |= turn_late(graph, id);
  }
  return changed;
}

}  // namespace serin::graph
