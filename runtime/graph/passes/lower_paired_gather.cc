// lower_paired_gather.cc
//
// Rewrites the nodes that torch writes for x[i, j] where i counts the rows of x, so that each row is looked up at positions of its own:
//
//   GatherND(x, [i, j])                        ->  Gather(x, j, axis=1), or GatherND(x, j, batch_dims=1) where j differs from row to row
//   Gather(Flatten(x), j + i * row's length)   ->  Gather(x, j, axis=1)
//
// and where j counts all of a row there is nothing to look up: a mask that a transformer reads, or (in one dimension, with j from 0 to the
// length of all else) the as_strided that stands for a view behind a pool. It is the same tensor, but its form now shows that a row depends
// on itself alone. The proofs about batches and padding, and the passes that look for a mask, rely on that.
//
// Flattened, a negative j would be in the row before, and one behind the end in the next: only a j that counts from 0 is taken, and where
// it goes too far the model fails instead of reading elements of another row.

#include <algorithm>

#include "runtime/graph/ops/infer.h"
#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

enum class End : uint8_t { kFirst, kLast };

bool is_index(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

const Dim* end_of(const Graph& graph, ValueId id, End end) {
  const Dims* dims = dims_of_value(graph, id);
  if (!dims || dims->empty() || !is_index(graph.value(id).type.dtype)) return nullptr;
  return end == End::kFirst ? &dims->front() : &dims->back();
}

/// The node that computes what `value` shows along its first or its last axis, and the same along all others; kNone where there is none.
NodeId shown_along(const Graph& graph, ValueId value, End end) {
  const Dim* const size = end_of(graph, value, end);
  for (NodeId id = size ? graph.producer(value) : kNone; id != kNone; id = graph.producer(value)) {
    const Node& node = graph.node(id);
    const bool shows = node.op == Op::kUnsqueeze || node.op == Op::kReshape || node.op == Op::kExpand || node.op == Op::kCast;
    const ValueId shown = shows ? node.inputs[0] : added_to_zero(graph, id);
    if (shown == kNone) return id;
    const Dim* const before = end_of(graph, shown, end);
    if (!before || !(*before == *size)) return kNone;
    const bool aligned = dims_of_value(graph, shown)->size() == dims_of_value(graph, value)->size();
    if (!shows && !aligned) return id;
    if (node.op == Op::kExpand && end == End::kFirst && !aligned) return kNone;
    value = shown;
  }
  return kNone;
}

/// 0, 1, 2 ... in one row: what a Range is where the length is known.
bool counts(const Constant& constant) {
  const auto numbers = constant.shape.rank() > 0 && constant.shape.back() == constant.elements() ? integers_of(constant) : std::nullopt;
  for (size_t at = 0; numbers && at < numbers->size(); ++at)
    if ((*numbers)[at] != static_cast<int64_t>(at)) return false;
  return numbers.has_value();
}

/// Whether `value` counts 0, 1, 2 ... along its first or its last axis and is the same along all others: a Range seen through changes of shape.
bool counts_along(const Graph& graph, ValueId value, End end) {
  if (const ConstantPtr constant = graph.constant(value)) return end == End::kLast && is_index(constant->dtype) && counts(*constant);
  const NodeId id = shown_along(graph, value, end);
  return graph.is(id, Op::kRange) && is_number(graph, graph.input(id, 0), 0) && is_number(graph, graph.input(id, 2), 1);
}

bool counts_rows(const Graph& graph, ValueId i, const Dims& x) {
  return counts_along(graph, i, End::kFirst) && dims_of_value(graph, i)->front() == x[0];
}

/// Whether j, the same for every row, is broadcast to indices of shape `to` along the first axis alone.
bool is_shared(const Dims& j, const Dims& to) {
  if (j.size() == to.size()) return j[0] == Dim(1) && std::ranges::equal(j.begin() + 1, j.end(), to.begin() + 1, to.end());
  return j.size() + 1 == to.size() && std::ranges::equal(j.begin(), j.end(), to.begin() + 1, to.end());
}

/// x[:, j] for a j that is shared by the rows of indices of rank `rank`.
ValueId look_up(const Graph& graph, Patch& patch, ValueId x, ValueId j, size_t rank) {
  const Dims& own = *dims_of_value(graph, j);
  const bool one_row = std::ranges::all_of(own.begin(), own.end() - 1, [](const Dim& dim) { return dim == Dim(1); });
  if (one_row && counts_along(graph, j, End::kLast) && own.back() == (*dims_of_value(graph, x))[1]) {
    std::vector<int64_t> axes;
    for (size_t axis = 1; axis + 1 < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
    return axes.empty() ? patch.add(Op::kIdentity, {x}, {}) : patch.add(Op::kUnsqueeze, {x}, {{"axes", std::move(axes)}});
  }
  if (own.size() == rank) j = patch.add(Op::kSqueeze, {j}, {{"axes", std::vector<int64_t>{0}}});
  return patch.add(Op::kGather, {x, j}, {{"axis", int64_t{1}}});
}

/// What `value` is without its last axis, where that was added to it; kNone otherwise.
ValueId without_last_axis(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  const Dims* dims = dims_of_value(graph, value);
  if (!graph.is(id, Op::kUnsqueeze) || !dims || dims->empty() || !(dims->back() == Dim(1))) return kNone;
  const Dims* before = dims_of_value(graph, graph.input(id, 0));
  const bool last = before && std::ranges::equal(before->begin(), before->end(), dims->begin(), dims->end() - 1);
  return last ? graph.input(id, 0) : kNone;
}

bool lower_gather_nd(Graph& graph, NodeId id) {
  const ValueId x = graph.input(id, 0);
  const NodeId pairs = graph.producer(graph.input(id, 1));
  const Dims *x_dims = dims_of_value(graph, x), *dims = dims_of_value(graph, graph.input(id, 1));
  if (graph.node(id).integer("batch_dims", 0) != 0 || !graph.is(pairs, Op::kConcat) || graph.node(pairs).inputs.size() != 2) return false;
  if (!x_dims || x_dims->size() < 2 || !dims || dims->size() < 2 || !(dims->back() == Dim(2))) return false;
  const Dims rows(dims->begin(), dims->end() - 1);
  const ValueId last = graph.input(pairs, 1);
  ValueId j = without_last_axis(graph, last);
  if (j == kNone || !counts_rows(graph, graph.input(pairs, 0), *x_dims)) return false;
  const NodeId expand = graph.producer(j);
  if (graph.is(expand, Op::kExpand) && dims_of_value(graph, graph.input(expand, 0)) &&
      is_shared(*dims_of_value(graph, graph.input(expand, 0)), rows))
    j = graph.input(expand, 0);
  Patch patch(graph, {id});
  const ValueId y = is_shared(*dims_of_value(graph, j), rows) ? look_up(graph, patch, x, j, rows.size())
                                                              : patch.add(Op::kGatherND, {x, last}, {{"batch_dims", int64_t{1}}});
  patch.replace(graph.output(id), y);
  return true;
}

bool is_zero(const Graph& graph, ValueId value) { return is_number(graph, value, 0); }

/// The terms of a sum of sums, but for zeros.
void add_terms(const Graph& graph, ValueId value, int depth, std::vector<ValueId>& terms) {
  constexpr int kDeep = 8;
  const NodeId id = graph.producer(value);
  if (!graph.is(id, Op::kAdd) || depth == kDeep) {
    if (!is_zero(graph, value)) terms.push_back(value);
    return;
  }
  for (const size_t i : {0, 1}) add_terms(graph, graph.input(id, i), depth + 1, terms);
}

/// Whether `value` is i * length, where i counts the rows of x.
bool is_row_start(const Graph& graph, ValueId value, const Dims& x, const Dim& length, const ShapeValues& values) {
  const NodeId mul = shown_along(graph, value, End::kFirst);
  if (!graph.is(mul, Op::kMul)) return false;
  for (const size_t i : {0, 1}) {
    const ValueId factor = graph.input(mul, i);
    const auto& elements = values[static_cast<size_t>(factor)];
    const auto number = known_number(graph, factor);
    const bool is_length = (elements && elements->size() == 1 && elements->front() == length) ||
                           (number && length.value() && *number == static_cast<double>(*length.value()));
    if (is_length && counts_rows(graph, graph.input(mul, 1 - i), x)) return true;
  }
  return false;
}

/// j of j + i * length; kNone where `sum` is no such sum.
ValueId places_in_row(const Graph& graph, ValueId sum, const Dims& x, const Dim& length, const ShapeValues& values) {
  std::vector<ValueId> terms;
  add_terms(graph, sum, 0, terms);
  if (terms.size() != 2) return kNone;
  if (is_row_start(graph, terms[0], x, length, values)) return terms[1];
  return is_row_start(graph, terms[1], x, length, values) ? terms[0] : kNone;
}

/// The exporter shapes the result anew, through a vector: the last of those nodes, where its shape is `wanted`.
NodeId reshaped_to(const Graph& graph, ValueId value, const Dims& wanted) {
  NodeId found = kNone;
  for (NodeId id = only_reader(graph, value); graph.is(id, Op::kReshape); id = only_reader(graph, graph.output(id))) {
    if (graph.input(id, 0) != value) break;
    value = graph.output(id);
    if (const Dims* dims = dims_of_value(graph, value); dims && *dims == wanted) found = id;
  }
  return found;
}

bool lower_flat_rows(Graph& graph, NodeId id, const ShapeValues& values) {
  const NodeId flatten = graph.producer(graph.input(id, 0));
  const ValueId x = graph.input(flatten, 0), sum = graph.input(id, 1);
  const Dims *x_dims = dims_of_value(graph, x), *rows = dims_of_value(graph, sum);
  if (graph.node(flatten).integer("axis", 1) != 2 || !x_dims || x_dims->size() != 2 || !rows || !(rows->front() == (*x_dims)[0]))
    return false;
  const ValueId j = places_in_row(graph, sum, *x_dims, (*x_dims)[1], values);
  if (j == kNone || !counts_along(graph, j, End::kLast) || !is_shared(*dims_of_value(graph, j), *rows)) return false;

  const NodeId last = reshaped_to(graph, graph.output(id), *rows);
  std::vector<NodeId> replaced{id};
  for (NodeId next = id; last != kNone && next != last;) replaced.push_back(next = only_reader(graph, graph.output(next)));
  Patch patch(graph, replaced);
  ValueId y = look_up(graph, patch, x, j, rows->size());
  if (last == kNone) y = patch.add(Op::kUnsqueeze, {y}, {{"axes", std::vector<int64_t>{-1}}});
  patch.replace(graph.output(replaced.back()), y);
  return true;
}

/// Gather(Reshape(x, [-1]), k + i * length) with constants k from 0 to length - 1, in order: all of x.
bool lower_flat_view(Graph& graph, NodeId id, const ShapeValues& values) {
  const ValueId x = graph.input(graph.producer(graph.input(id, 0)), 0), sum = graph.input(id, 1);
  const Dims *flat = dims_of_value(graph, graph.input(id, 0)), *x_dims = dims_of_value(graph, x), *rows = dims_of_value(graph, sum);
  if (!flat || flat->size() != 1 || !x_dims || x_dims->empty() || !rows || rows->empty() || !(rows->front() == x_dims->front()))
    return false;
  const Dim length = product(*x_dims, 1, x_dims->size());
  const ValueId k = places_in_row(graph, sum, *x_dims, length, values);
  const ConstantPtr constant = k == kNone ? nullptr : graph.constant(k);
  const auto places = constant ? integers_of(*constant) : std::nullopt;
  if (!places || !(length == Dim(static_cast<int64_t>(places->size()))) || !is_shared(dims_of(constant->shape), *rows)) return false;
  for (size_t at = 0; at < places->size(); ++at)
    if ((*places)[at] != static_cast<int64_t>(at)) return false;
  std::vector<int64_t> shape{0};  // 0: as many as x has
  for (size_t axis = 1; axis < rows->size(); ++axis) shape.push_back(*(*rows)[axis].value());
  Patch patch(graph, {id});
  patch.replace(graph.output(id), patch.add(Op::kReshape, {x, patch.constant(kNone, make_constant(shape), "shape")}, {}));
  return true;
}

bool lower_gather(Graph& graph, NodeId id, const ShapeValues& values) {
  const NodeId flat = graph.producer(graph.input(id, 0));
  if (graph.node(id).integer("axis", 0) != 0) return false;
  if (graph.is(flat, Op::kFlatten)) return lower_flat_rows(graph, id, values);
  return graph.is(flat, Op::kReshape) && lower_flat_view(graph, id, values);
}

}  // namespace

Result<bool> LowerPairedGather::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes(Op::kGatherND)) changed |= lower_gather_nd(graph, id);
  const auto flat = [&](NodeId id) {
    const NodeId before = graph.producer(graph.input(id, 0));
    return graph.is(before, Op::kFlatten) || graph.is(before, Op::kReshape);
  };
  const std::vector<NodeId> gathers = graph.nodes(Op::kGather);
  if (std::ranges::none_of(gathers, flat)) return changed;
  SERIN_TRY(const ShapeValues values, infer_shapes_and_values(graph));
  for (const NodeId id : gathers) changed |= lower_gather(graph, id, values);
  return changed;
}

}  // namespace serin::graph
