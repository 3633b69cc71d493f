// batchable_movement.cc: the rules of operators that move elements and change shapes: where the batch axis goes, and whether items stay whole.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/graph/proofs/batchable_rule.h"

namespace serin::graph {

namespace {

using State = BatchState;
using Outcome = Result<BatchState>;

/// m where dim = batch * m; nothing where it is not such a product.
std::optional<Dim> block_of(const Dim& dim, const std::string& symbol) {
  const Dim batch = Dim::symbol(symbol);
  const Dim block = floor_div(dim, batch);
  return !mentions(block, symbol) && block * batch == dim ? std::optional(block) : std::nullopt;
}

}  // namespace

/// ConstantOfShape, Expand, Tile: a tensor that is repeated to a shape with the batch in it has the same rows everywhere.
Outcome BatchRule::expand() const {
  const bool constant = node_.op == Op::kConstantOfShape;
  if (state(constant ? 0 : 1).is_rows()) return refuse("its shape depends on the contents of the batch");
  if (!constant && state(0).is_size()) return size_of();
  if (node_.op == Op::kExpand && state(0).is_rows()) return elementwise_of(std::array<size_t, 1>{0});
  const Dims& to = result_dims();
  std::optional<State> rows;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    if (!mentions(to[axis], symbol_)) continue;
    const auto block = block_of(to[axis], symbol_);
    if (!block || rows) return refuse(fmt::format("makes shape {}, in which the batch is not one axis", print(to)));
    rows = State::rows(static_cast<int64_t>(axis), *block);
  }
  if (rows) return *rows;
  return values_[static_cast<size_t>(node_.outputs[0])] ? size_of() : State{};
}

/// The elements stay in order, so an item stays together where an axis of the result starts at the same multiple: as many elements
/// before it, batch * block' of its own.
Outcome BatchRule::reshape() const {
  for (size_t i = 1; i < node_.inputs.size(); ++i) {
    if (state(i).is_rows()) return refuse("its shape depends on the contents of the batch");
  }
  if (!state(0).is_rows()) return state(0).is_size() ? Outcome(size_of()) : Outcome(State{});
  const Dims &from = dims(0), &to = result_dims();
  const Dim before = graph::product(from, 0, static_cast<size_t>(state(0).axis));
  for (size_t axis = 0; axis < to.size(); ++axis) {
    if (!mentions(to[axis], symbol_)) continue;
    const auto block = block_of(to[axis], symbol_);
    const bool starts_alike = graph::product(to, 0, axis) == before, complete = graph::product(to) == graph::product(from);
    if (block && starts_alike && complete) {
      State rows = State::rows(static_cast<int64_t>(axis), *block);
      rows.filler = state(0).filler;
      return rows;
    }
    break;
  }
  return refuse(fmt::format("reshapes {} to {}, which mixes the batch with other axes", print(from), print(to)));
}

Outcome BatchRule::concat() const {
  if (std::ranges::none_of(node_.inputs, [&](ValueId id) { return states_[static_cast<size_t>(id)].is_rows(); })) return size_of();
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (!state(i).is_rows() || state(i).axis != state(0).axis || !(state(i).block == state(0).block))
      return refuse("joins parts with and without the batch");
  }
  if (axis_attribute(0, dims(0).size()) == state(0).axis) return refuse("concatenates along the batch axis");
  return state(0);
}

Outcome BatchRule::gather() const {
  const int64_t axis = axis_attribute(0, dims(0).size());
  if (state(0).is_size()) return state(1).is_rows() ? Outcome(refuse("computes with the size of the batch")) : Outcome(size_of());
  if (state(1).is_size()) return refuse("computes with the size of the batch");
  if (state(0).is_rows() && state(1).is_rows()) return refuse("looks up in one item what another may ask for");
  if (state(1).is_rows()) return State::rows(axis + state(1).axis, state(1).block);  // an embedding
  if (axis == state(0).axis) return refuse("picks items of the batch");
  const auto added = static_cast<int64_t>(dims(1).size()) - 1;
  return State::rows(state(0).axis + (axis < state(0).axis ? added : 0), state(0).block);
}

/// Each index looks along `axis` at its own place of the other axes.
Outcome BatchRule::gather_elements() const {
  if (!state(0).is_rows() || !state(1).is_rows() || state(1).axis != state(0).axis || !(state(0).block == state(1).block))
    return refuse("looks up in one item what another may ask for");
  if (axis_attribute(0, dims(0).size()) == state(0).axis) return refuse("picks items of the batch");
  return state(0);
}

/// With batch_dims each row is looked up by itself; else a table that is the same for all, or axes of each item that are not the batch.
Outcome BatchRule::gather_nd() const {
  const int64_t batch_dims = node_.integer("batch_dims", 0), rank = static_cast<int64_t>(dims(1).size());
  if (state(0).is_size() || state(1).is_size()) return refuse("computes with the size of the batch");
  if (state(0).is_rows() && state(1).is_rows())
    return batch_dims > 0 && first_axis(0) && first_axis(1) ? Outcome(state(0)) : refuse("looks up in one item what another may ask for");
  if (state(1).is_rows()) return state(1).axis + 1 == rank ? Outcome(refuse("has the batch within an index")) : Outcome(state(1));
  const auto picked = dims(1).back().value();
  if (!picked || state(0).axis < batch_dims + *picked) return refuse("picks items of the batch");
  return State::rows(rank - 1 + state(0).axis - batch_dims - *picked, state(0).block);
}

/// ArrayFeatureExtractor looks up a list of indices, of which each item has one or several: they come out along the last axis.
Outcome BatchRule::listed() const {
  if (!state(0).is_same()) return refuse("looks up in one item what another may ask for");
  const auto axis = static_cast<size_t>(state(1).axis);
  if (!(graph::product(dims(1), 0, axis) == Dim(1))) return refuse("has the batch elsewhere");
  return State::rows(static_cast<int64_t>(result_dims().size()) - 1, state(1).block * graph::product(dims(1), axis + 1, dims(1).size()));
}

/// OneHot puts an axis somewhere, OneHotEncoder at the end, Trilu looks at the last two axes, ArrayFeatureExtractor at the last one.
Outcome BatchRule::rows_before_the_end() const {
  SERIN_CHECK(rest_is_same(1));
  if (!state(0).is_rows()) return refuse("computes with the size of the batch");
  const auto rank = static_cast<int64_t>(dims(0).size());
  if (node_.op == Op::kOneHotEncoder) return state(0);
  if (node_.op == Op::kOneHot) {
    const int64_t added = axis_attribute(-1, dims(0).size() + 1);
    return State::rows(state(0).axis + (added <= state(0).axis ? 1 : 0), state(0).block);
  }
  if (state(0).axis >= rank - (node_.op == Op::kTrilu ? 2 : 1)) return refuse("works along the batch axis");
  return state(0);
}

Outcome BatchRule::transpose() const {
  if (!state(0).is_rows()) return state(0);
  const auto perm = node_.integers("perm");
  const auto rank = static_cast<int64_t>(dims(0).size());
  if (perm.empty()) return State::rows(rank - 1 - state(0).axis, state(0).block);
  return State::rows(std::ranges::find(perm, state(0).axis) - perm.begin(), state(0).block);
}

/// Slice, Split, Pad, Tile: fine along other axes, and where the batch axis comes out as it went in.
Outcome BatchRule::keeps_batch_whole() const {
  SERIN_CHECK(rest_is_same(1));
  if (!state(0).is_rows()) return state(0);
  const auto axis = static_cast<size_t>(state(0).axis);
  const auto touched = node_.integers("axes");
  const auto rank = static_cast<int64_t>(dims(0).size());
  const bool names_it = std::ranges::any_of(touched, [&](int64_t each) { return (each < 0 ? each + rank : each) == state(0).axis; });
  const bool sliced = node_.op == Op::kSlice && (names_it || touched.empty()) &&
                      !std::ranges::all_of(node_.integers("steps"), [](int64_t step) { return step == 1; });
  const bool padded = node_.op == Op::kPad && !pads_leave(axis);
  if (sliced || padded || !(result_dims()[axis] == dims(0)[axis])) return refuse("changes the batch axis");
  return state(0);
}

bool BatchRule::pads_leave(size_t axis) const {
  const auto pads = node_.integers("pads");
  if (pads.empty() || !node_.integers("axes").empty()) return false;
  return pads[axis] == 0 && pads[pads.size() / 2 + axis] == 0;
}

}  // namespace serin::graph
