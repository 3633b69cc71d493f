// batchable_layers.cc: the rules of whole layers, whose operands have places for the batch: convolutions, attention, RNNs.

#include <fmt/format.h>

#include "runtime/graph/proofs/batchable_rule.h"

namespace serin::graph {

namespace {

using State = BatchState;
using Outcome = Result<BatchState>;

}  // namespace

/// Operand i has the batch, one item a row, on its first axis.
bool BatchRule::first_axis(size_t i) const { return state(i).is_rows() && state(i).axis == 0 && state(i).block == state(0).block; }

/// Boxes and scores of each image; limits for all.
Outcome BatchRule::detections() const {
  SERIN_CHECK(rest_is_same(2));
  if (!first_axis(0) || !first_axis(1)) return refuse("boxes or scores have the batch elsewhere");
  return state(1);
}

/// GridSample, LinearAttention, CausalConvWithState: item i of the result is a function of item i of every operand that has the batch at all.
Outcome BatchRule::per_item() const {
  const bool all_have_it = node_.op != Op::kCausalConvWithState;  // whose filter and bias do not
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (node_.inputs[i] == kNone) continue;
    const bool parameter = !all_have_it && (i == 1 || i == 2);
    if (parameter ? !state(i).is_same() : !first_axis(i)) return refuse(fmt::format("operand {} has the batch elsewhere", i));
  }
  return state(0);
}

/// STFT: x [batch, n, 1 or 2] by a step, a window and a length that are the same for all.
Outcome BatchRule::signal() const {
  SERIN_CHECK(rest_is_same(1));
  return first_axis(0) ? Outcome(state(0)) : Outcome(refuse("has the batch elsewhere than on its first axis"));
}

/// q, k, v, mask, past keys, past values, lengths: all have the batch first, but for a mask that is the same for every item.
Outcome BatchRule::attention() const {
  constexpr size_t kMask = 3;
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (node_.inputs[i] == kNone || (i == kMask && state(i).is_same() && !tells_items_apart(i, 4))) continue;
    if (i == kMask && dims(i).size() != 4) return refuse("has a mask with the batch elsewhere");
    if (!first_axis(i)) return refuse(fmt::format("operand {} has the batch elsewhere", i));
  }
  return state(0);
}

/// Whether operand i, broadcast to `rank` axes, has a first axis of more than one element.
bool BatchRule::tells_items_apart(size_t i, size_t rank) const { return dims(i).size() >= rank && !(dims(i).front() == Dim(1)); }

/// x, cos, sin, positions. The tables have a row for each position, or for each position of each item.
Outcome BatchRule::rotary() const {
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (node_.inputs[i] == kNone) continue;
    const bool fits = first_axis(i) || ((i == 1 || i == 2) && state(i).is_same() && node_.inputs.size() > 3 && node_.inputs[3] != kNone);
    if (!fits) return refuse(fmt::format("operand {} has the batch elsewhere", i));
  }
  return state(0);
}

/// x [n, c, spatial...] or [n, spatial..., c] with parameters; fused convolutions add a residual of the result's shape.
Outcome BatchRule::image() const {
  const size_t residual = node_.op == Op::kFusedConv ? 3 : node_.op == Op::kQLinearConv ? 9 : node_.inputs.size();
  for (size_t i = 1; i < node_.inputs.size(); ++i) {
    if (i == residual) continue;
    if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
  }
  if (!state(0).is_rows() || state(0).axis != 0) return refuse("has the batch elsewhere than on its first axis");
  const bool added = residual < node_.inputs.size() && node_.inputs[residual] != kNone;
  if (added && !first_axis(residual)) return refuse("adds a residual with the batch elsewhere");
  return state(0);
}

/// Each axis is sampled by itself; the shape says whether the batch keeps its size, and so every item its place.
Outcome BatchRule::resize() const {
  if (!state(0).is_rows()) return refuse("computes with the size of the batch");
  if (node_.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return refuse("may cut the batch axis");
  for (size_t i = 1; i < node_.inputs.size(); ++i) {
    if (state(i).is_rows()) return refuse("its shape depends on the contents of the batch");
  }
  return state(0);
}

/// x [steps, batch, features], states [directions, batch, hidden], lengths [batch]; with layout 1 the batch is first everywhere.
Outcome BatchRule::recurrent() const {
  constexpr size_t kX = 0, kLengths = 4, kState = 5, kCell = 6;
  const bool batch_first = node_.integer("layout", 0) != 0;
  const int64_t axis = batch_first ? 0 : 1;
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (node_.inputs[i] == kNone) continue;
    const bool is_batch = i == kX || i == kLengths || i == kState || i == kCell;
    if (!is_batch && !state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
    if (!is_batch) continue;
    const bool fits = state(i).is_rows() && state(i).axis == (i == kLengths ? 0 : axis) && state(i).block == state(kX).block;
    if (!fits) return refuse(fmt::format("operand {} has the batch elsewhere", i));
  }
  return State::rows(batch_first ? 0 : result_ == 0 ? 2 : 1, state(kX).block);
}

}  // namespace serin::graph
