// lower_grid_scatter.cc
//
// Rewrites what torch's tracer writes for x[..., a:b] = y and x[..., a:b] += y: a ScatterND at the places of a grid, one index for each axis,
//
//   ScatterND(x, Concat(i0, i1, i2), y)   ->   Concat(x[..., :a], y, x[..., b:])
//
// where each index counts along its own axis and is the same along all others: all of the axis, or, of one axis, the places a .. b - 1. Also
// ScatterND(x, [[a], [a + 1] ...], y), the newer exporter's form along the first axis. It is the same tensor, but its form shows that a row
// depends on itself alone, which a proof about batches needs; and it moves memory instead of computing each place.

#include <algorithm>
#include <limits>
#include <optional>

#include "runtime/graph/ops/infer.h"
#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

/// Places begin .. end - 1 of an axis; without an end, all of it.
struct Places {
  int64_t begin = 0;
  std::optional<int64_t> end;
};

bool is_single(const Dim& dim) { return dim == Dim(1); }

/// a, a + 1, a + 2 ... from 0 on.
std::optional<Places> counted_places(const Constant& constant) {
  const auto numbers = integers_of(constant);
  if (!numbers || numbers->empty() || numbers->front() < 0) return std::nullopt;
  for (size_t at = 1; at < numbers->size(); ++at)
    if ((*numbers)[at] != (*numbers)[at - 1] + 1) return std::nullopt;
  return Places{numbers->front(), numbers->back() + 1};
}

/// The node or constant whose elements `value` shows, in the same order and each once.
ValueId elements_shown(const Graph& graph, ValueId value) {
  for (NodeId id = graph.producer(value); id != kNone; id = graph.producer(value)) {
    const Node& node = graph.node(id);
    const bool moves =
        node.op == Op::kUnsqueeze || node.op == Op::kSqueeze || node.op == Op::kReshape || node.op == Op::kExpand || node.op == Op::kCast;
    const ValueId before = moves ? node.inputs[0] : added_to_zero(graph, id);
    if (before == kNone) return value;
    const Dims *from = dims_of_value(graph, before), *to = dims_of_value(graph, value);
    if (!from || !to || !(product(*from) == product(*to))) return value;
    value = before;
  }
  return value;
}

/// What an index of shape `grid` selects along axis `axis` of x; nothing if it is not the same along all other axes, or does not count.
std::optional<Places> places_along(const Graph& graph, ValueId index, size_t axis, const Dims& grid, const Dim& length) {
  const NodeId last = graph.producer(index);  // the axis that Concat joins
  if (!graph.is(last, Op::kUnsqueeze)) return std::nullopt;
  ValueId vector = graph.input(last, 0);
  if (const NodeId expand = graph.producer(vector); graph.is(expand, Op::kExpand)) vector = graph.input(expand, 0);
  const Dims* const dims = dims_of_value(graph, vector);
  if (!dims || dims->size() > grid.size()) return std::nullopt;
  const size_t added = grid.size() - dims->size();
  for (size_t i = 0; i < dims->size(); ++i)
    if (i + added != axis && !is_single((*dims)[i])) return std::nullopt;
  const bool counts_here = axis >= added && (*dims)[axis - added] == grid[axis];
  if (!counts_here && !is_single(grid[axis])) return std::nullopt;
  vector = elements_shown(graph, vector);
  if (const ConstantPtr constant = graph.constant(vector)) return counted_places(*constant);
  const NodeId range = graph.producer(vector);
  const bool from_zero =
      graph.is(range, Op::kRange) && is_number(graph, graph.input(range, 0), 0) && is_number(graph, graph.input(range, 2), 1);
  return from_zero && grid[axis] == length ? std::optional(Places{}) : std::nullopt;
}

struct Part {
  size_t axis = 0;
  Places places;
};

/// The part of x that the indices select: all of it but for one axis. Nothing for other indices.
std::optional<Part> part_of(const Graph& graph, const Dims& x, ValueId indices) {
  const Dims* const dims = dims_of_value(graph, indices);
  if (!dims || dims->size() < 2) return std::nullopt;
  if (const ConstantPtr constant = graph.constant(indices)) {
    const auto places = dims->size() == 2 && is_single(dims->back()) ? counted_places(*constant) : std::nullopt;
    return places ? std::optional(Part{0, *places}) : std::nullopt;
  }
  const NodeId concat = graph.producer(indices);
  const Dims grid(dims->begin(), dims->end() - 1);
  const auto rank = static_cast<int64_t>(grid.size());
  if (!graph.is(concat, Op::kConcat) || grid.size() > x.size() || graph.node(concat).inputs.size() != grid.size()) return std::nullopt;
  if (const int64_t axis = graph.node(concat).integer("axis", 0); axis != -1 && axis != rank) return std::nullopt;
  Part part;
  bool found = false;
  for (size_t axis = 0; axis < grid.size(); ++axis) {
    const auto places = places_along(graph, graph.input(concat, axis), axis, grid, x[axis]);
    if (!places) return std::nullopt;
    if (!places->end || (places->begin == 0 && x[axis] == Dim(*places->end))) continue;
    if (found) return std::nullopt;
    found = true;
    part = {axis, *places};
  }
  return part;
}

/// x along `axis` from `begin` to `end`.
ValueId piece_of(Patch& patch, ValueId x, size_t axis, int64_t begin, int64_t end) {
  using List = std::vector<int64_t>;
  return patch.add(Op::kSlice, {x},
                   {{"axes", List{static_cast<int64_t>(axis)}}, {"starts", List{begin}}, {"ends", List{end}}, {"steps", List{1}}});
}

bool lower_scatter(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId x = node.inputs[0], updates = node.inputs[2];
  const Dims *dims = dims_of_value(graph, x), *written = dims_of_value(graph, updates);
  if (node.text("reduction", "none") != "none" || !dims || !written || dims->size() != written->size()) return false;
  const auto part = part_of(graph, *dims, node.inputs[1]);
  if (!part) return false;
  const auto& [axis, places] = *part;
  Dims wanted = *dims;
  if (places.end) wanted[axis] = Dim(*places.end - places.begin);
  const auto length = (*dims)[axis].value();
  if (*written != wanted || (places.end && (!length || *places.end > *length))) return false;
  Patch patch(graph, {id});
  std::vector<ValueId> parts;
  if (places.end && places.begin > 0) parts.push_back(piece_of(patch, x, axis, 0, places.begin));
  parts.push_back(updates);
  if (places.end && length != *places.end) parts.push_back(piece_of(patch, x, axis, *places.end, std::numeric_limits<int64_t>::max()));
  const ValueId y =
      parts.size() == 1 ? patch.add(Op::kIdentity, {updates}, {}) : patch.add(Op::kConcat, parts, {{"axis", static_cast<int64_t>(axis)}});
  patch.replace(graph.output(id), y);
  return true;
}

}  // namespace

Result<bool> LowerGridScatter::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes(Op::kScatterND)) changed |= lower_scatter(graph, id);
  return changed;
}

}  // namespace serin::graph
