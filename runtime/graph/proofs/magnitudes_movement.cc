// magnitudes_movement.cc: a piece of what is moved is found by its axis, and by how many elements lie between its neighbours.

#include "runtime/graph/proofs/magnitudes_movement.h"

#include <algorithm>

namespace serin::graph {
namespace {

using Sources = std::vector<std::pair<ValueId, Piece>>;

const Dims& dims_of(const Graph& graph, ValueId id) { return *graph.value(id).type.shape; }

/// Neighbours stay neighbours where as much lies between them, and pieces stay whole where the axis they come from is made of them, too.
Sources reshaped(const Dims& from, ValueId x, const Dims& dims, Piece piece) {
  const auto behind = [](const Dims& all, size_t axis) {
    Dim product = 1;
    for (size_t i = axis + 1; i < all.size(); ++i) product = product * all[i];
    return product;
  };
  for (size_t axis = 0; axis < from.size(); ++axis) {
    const auto size = from[axis].value();
    if (size && *size > 0 && *size % piece.length == 0 && behind(from, axis) == behind(dims, piece.axis))
      return {{x, {axis, piece.length}}};
  }
  return {};
}

/// A part of all that there is along the axis, where it is cut there.
Sources cut(const Dims& from, ValueId x, const Dims& dims, Piece piece) {
  if (from[piece.axis] == dims[piece.axis]) return {{x, piece}};
  const auto size = from[piece.axis].value();
  return size ? Sources{{x, {piece.axis, *size}}} : Sources{};
}

Sources gathered(const Graph& graph, const Node& node, Piece piece) {
  const ValueId x = node.inputs[0];
  const int64_t given = node.integer("axis", 0);
  const size_t rank = dims_of(graph, x).size(), added = dims_of(graph, node.inputs[1]).size();
  const size_t axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(rank) : given);
  if (piece.axis < axis) return {{x, piece}};
  return piece.axis >= axis + added ? Sources{{x, {piece.axis + 1 - added, piece.length}}} : Sources{};
}

}  // namespace

std::vector<std::pair<ValueId, Piece>> sources_of(const Graph& graph, const Node& node, const Dims& dims, Piece piece) {
  const auto is_of_pieces = [&](ValueId id) {
    const auto size = id == kNone ? std::nullopt : dims_of(graph, id)[piece.axis].value();
    return size && *size % piece.length == 0;
  };
  const bool single = piece.length == 1;
  switch (node.op) {
    case Op::kReshape:
    case Op::kFlatten:
    case Op::kSqueeze:
    case Op::kUnsqueeze:
      return single ? Sources{{node.inputs[0], piece}} : reshaped(dims_of(graph, node.inputs[0]), node.inputs[0], dims, piece);
    case Op::kTranspose: {
      const auto perm = node.integers("perm");
      if (!single) piece.axis = perm.empty() ? dims.size() - 1 - piece.axis : static_cast<size_t>(perm[piece.axis]);
      return {{node.inputs[0], piece}};
    }
    case Op::kSplit:
      if (single || std::ranges::all_of(node.outputs, is_of_pieces)) return {{node.inputs[0], piece}};
      [[fallthrough]];
    case Op::kSlice: return single ? Sources{{node.inputs[0], piece}} : cut(dims_of(graph, node.inputs[0]), node.inputs[0], dims, piece);
    case Op::kConcat: {
      if (!single && !std::ranges::all_of(node.inputs, is_of_pieces)) return {};
      Sources all;
      for (const ValueId id : node.inputs) all.emplace_back(id, piece);
      return all;
    }
    case Op::kGather: return single ? Sources{{node.inputs[0], piece}} : gathered(graph, node, piece);
    default: return {};
  }
}

}  // namespace serin::graph
