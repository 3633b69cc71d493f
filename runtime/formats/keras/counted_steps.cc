// counted_steps.cc: steps that count to the front of their sequence, and results back to the places of the steps.
//
// Every index is one of its own sequence (GatherND with batch_dims), so that the proofs about batches see that rows are independent.

#include "runtime/formats/keras/counted_steps.h"

namespace serin::formats::keras {

using graph::Op;
using graph::ValueId;

CountedSteps::CountedSteps(graph::Builder& b, ValueId mask) : b_(b), mask_(mask) {
  const ValueId zero = b_.number(DType::kInt64, 0), one = b_.number(DType::kInt64, 1);
  counts_ = b_.cast(mask_, DType::kInt64);
  steps_ = b_.squeeze(b_.slice(b_.add(Op::kShape, {mask_}), 0, 1, 2), {0});
  places_ = b_.add(Op::kRange, {zero, steps_, one});
  until_ = b_.add(Op::kCumSum, {counts_, one}, {{"exclusive", int64_t{0}}, {"reverse", int64_t{0}}});
  lengths_ = b_.cast(b_.add(Op::kReduceSum, {counts_}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}}), DType::kInt32);
}

/// Rows of x [batch, steps, ...] at places [batch, steps].
ValueId CountedSteps::look_up(ValueId x, ValueId places) {
  return b_.add(Op::kGatherND, {x, b_.unsqueeze(places, {2})}, {{"batch_dims", int64_t{1}}});
}

/// y where the condition holds, which has the first axes of y; zero elsewhere.
ValueId CountedSteps::where(ValueId condition, ValueId y) {
  const auto own = static_cast<int64_t>(b_.rank(condition).value_or(0)), rank = static_cast<int64_t>(b_.rank(y).value_or(0));
  std::vector<int64_t> axes;
  for (int64_t axis = own; axis < rank; ++axis) axes.push_back(axis);
  return b_.add(Op::kWhere, {axes.empty() ? condition : b_.unsqueeze(condition, axes), y, b_.number(b_.dtype(y), 0)});
}

ValueId CountedSteps::to_front(ValueId x) {
  // Sorted by place, where a step that does not count is `steps` later. f32 is exact for these integers.
  const ValueId late = b_.add(Op::kWhere, {mask_, b_.number(DType::kInt64, 0), steps_});
  const ValueId keys = b_.cast(b_.add(Op::kAdd, {places_, late}), DType::kFloat32);
  const auto sorted = b_.add_with_results(Op::kTopK, 2, {keys, b_.unsqueeze(steps_, {0})},
                                          {{"axis", int64_t{-1}}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}});
  return look_up(x, sorted[1]);
}

ValueId CountedSteps::spread(ValueId y, bool backwards) {
  if (backwards) return look_up(y, b_.add(Op::kSub, {until_, counts_}));  // the length, and so a zero, behind the last of them
  const ValueId zero = b_.number(DType::kInt64, 0), one = b_.number(DType::kInt64, 1);
  const ValueId started = b_.add(Op::kGreater, {until_, zero});  // if not: some step does not count, and the last place is zero
  return look_up(y, b_.add(Op::kWhere, {started, b_.add(Op::kSub, {until_, one}), b_.add(Op::kSub, {steps_, one})}));
}

ValueId CountedSteps::zeroed(ValueId y) { return where(mask_, y); }

ValueId CountedSteps::zeroed_if_empty(ValueId y) { return where(b_.add(Op::kGreater, {lengths_, b_.number(DType::kInt32, 0)}), y); }

ValueId CountedSteps::zeroed_by_end(ValueId y, bool backwards) {
  const ValueId end = b_.constant(graph::make_scalar(DType::kInt64, backwards ? 0 : -1));
  return where(b_.add(Op::kGather, {mask_, end}, {{"axis", int64_t{1}}}), y);
}

}  // namespace serin::formats::keras
