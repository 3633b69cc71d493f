// magnitudes_movement.cc: a piece of what is moved is found by its axis, and by how many elements lie between its neighbours.

#include "runtime/graph/proofs/magnitudes_movement.h"

#include <algorithm>

namespace serin::graph {
namespace {

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

bool is_of_pieces(const Graph& graph, ValueId id, Piece piece) {
  const auto size = id == kNone ? std::nullopt : dims_of(graph, id)[piece.axis].value();
  return size && *size % piece.length == 0;
}

}  // namespace

Sources sources_of_reshape(const Graph& graph, const Node& node, const Dims& dims, Piece piece) {
  const ValueId x = node.inputs[0];
  return piece.length == 1 ? Sources{{x, piece}} : reshaped(dims_of(graph, x), x, dims, piece);
}

Sources sources_of_transpose(const Graph& /*graph*/, const Node& node, const Dims& dims, Piece piece) {
  const auto perm = node.integers("perm");
  if (piece.length != 1) piece.axis = perm.empty() ? dims.size() - 1 - piece.axis : static_cast<size_t>(perm[piece.axis]);
  return {{node.inputs[0], piece}};
}

Sources sources_of_split(const Graph& graph, const Node& node, const Dims& dims, Piece piece) {
  const auto is_whole = [&](ValueId id) { return is_of_pieces(graph, id, piece); };
  if (piece.length == 1 || std::ranges::all_of(node.outputs, is_whole)) return {{node.inputs[0], piece}};
  return sources_of_slice(graph, node, dims, piece);
}

Sources sources_of_slice(const Graph& graph, const Node& node, const Dims& dims, Piece piece) {
  const ValueId x = node.inputs[0];
  return piece.length == 1 ? Sources{{x, piece}} : cut(dims_of(graph, x), x, dims, piece);
}

Sources sources_of_concat(const Graph& graph, const Node& node, const Dims& /*dims*/, Piece piece) {
  const auto is_whole = [&](ValueId id) { return is_of_pieces(graph, id, piece); };
  if (piece.length != 1 && !std::ranges::all_of(node.inputs, is_whole)) return {};
  Sources all;
  for (const ValueId id : node.inputs) all.emplace_back(id, piece);
  return all;
}

Sources sources_of_gather(const Graph& graph, const Node& node, const Dims& /*dims*/, Piece piece) {
  return piece.length == 1 ? Sources{{node.inputs[0], piece}} : gathered(graph, node, piece);
}

}  // namespace serin::graph
