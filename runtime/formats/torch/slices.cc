// slices.cc: parts of tensors, and writes into them.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

ValueId sliced_by(NodeImport& node, ValueId x, int64_t axis, const Size& begin, const Size& end, int64_t step) {
  if (begin.number && end.number) return sliced(node.b, x, axis, *begin.number, *end.number, step);
  return node.b.add(Op::kSlice, {x, node.shape_of({begin}), node.shape_of({end}), node.b.integers({axis}), node.b.integers({step})});
}

void import_slice(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x)), step = node.integer("step", 1);
  if (step < 1) return node.corrupt(fmt::format("a step of {}", step));
  const Size begin = node.size("start", 0), end = node.size("end", kEnd);
  const auto length = node.b.size(x, static_cast<size_t>(axis));
  const bool all = begin.number == 0 && step == 1 && end.number && (*end.number == kEnd || (length && *end.number >= *length));
  node.give(all ? x : sliced_by(node, x, axis, begin, end, step));
}

void import_narrow(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  const Size begin = node.size("start", 0), length = node.size("length", 0);
  if (begin.number && length.number) return node.give(sliced(node.b, x, axis, *begin.number, *begin.number + *length.number));
  node.give(sliced_by(node, x, axis, begin, {std::nullopt, node.b.add(Op::kAdd, {node.scalar(begin), node.scalar(length)})}, 1));
}

void import_select(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  node.give(node.b.add(Op::kGather, {x, node.scalar(node.size("index", 0))}, {{"axis", axis}}));
}

constexpr OperatorRow kSlices[] = {
    {"aten.narrow", import_narrow, Op::kSlice, Alias::kView},
    {"aten.select", import_select, Op::kGather, Alias::kView},
    {"aten.slice", import_slice, Op::kSlice, Alias::kView},
};

}  // namespace

ValueId replaced(NodeImport& node, ValueId into, ValueId value, size_t axis, Size begin, Size end, int64_t step) {
  const auto at = static_cast<int64_t>(axis);
  const auto length = node.b.size(into, axis);
  if (step != 1 || !begin.number || !end.number || (!length && (*begin.number < 0 || *end.number < 0)))
    return node.unsupported("writes to places that are not known"), into;
  int64_t first = *begin.number, last = *end.number;
  if (length) {
    first = std::clamp<int64_t>(first < 0 ? first + *length : first, 0, *length);
    last = std::clamp<int64_t>(last < 0 ? last + *length : last, first, *length);
  }
  std::vector<ValueId> parts;
  if (first > 0) parts.push_back(sliced(node.b, into, at, 0, first));
  parts.push_back(value);
  if (!length ? last != kEnd : last < *length) parts.push_back(sliced(node.b, into, at, last, kEnd));
  return parts.size() == 1 ? value : node.b.add(Op::kConcat, parts, {{"axis", at}});
}

ValueId written_back(NodeImport& view, ValueId into, ValueId value) {
  const bool complex = view.gives_complex() || view.is_complex("self");
  const OperatorRow* const row = complex ? find_complex_operator(view.node().target) : find_operator(view.node().target);
  const size_t rank = view.rank(into) - (view.is_complex("self") ? 1 : 0);
  switch (row->op) {
    case Op::kIdentity: return value;
    case Op::kReshape:
    case Op::kUnsqueeze:
    case Op::kSqueeze: return view.b.add(Op::kReshape, {value, view.b.add(Op::kShape, {into})});
    case Op::kSlice: {
      if (row->target != "aten.slice") break;
      const auto axis = static_cast<size_t>(view.axis(view.integer("dim", 0), rank));
      return replaced(view, into, value, axis, view.size("start", 0), view.size("end", kEnd), view.integer("step", 1));
    }
    case Op::kGather: {
      const auto index = view.size("index", 0).number;
      if (row->target != "aten.select" || !index || *index == -1) break;
      const Size begin{index, kNone}, end{*index + 1, kNone};
      const int64_t axis = view.axis(view.integer("dim", 0), rank);
      return replaced(view, into, view.b.unsqueeze(value, {axis}), static_cast<size_t>(axis), begin, end, 1);
    }
    case Op::kTranspose: {
      if (row->target != "aten.transpose" && row->target != "aten.t") break;
      row->import(view, row->op);
      const graph::NodeId made = view.b.graph().producer(view.results()[0]);
      return view.b.transpose(value, view.b.graph().node(made).integers("perm"));
    }
    default: break;
  }
  view.unsupported("writes into a view that cannot be written to; export program.run_decompositions({})");
  return into;
}

std::span<const OperatorRow> slice_operators() { return kSlices; }

}  // namespace serin::formats::torch
