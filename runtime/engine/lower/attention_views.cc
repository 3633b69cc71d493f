// attention_views.cc: q, k and v come out of one product and are cut, reshaped and transposed into heads: three copies, or more where the
// exporter put the sequence first. A kernel that attends steps over heads and rows by strides anyway, so it can take the strides of the
// product itself.
//
// Each operand is followed back through strided copies (StridedCopy, and views, which copy nothing) while every one of its four axes stays
// one stride in what was copied. Attention then gets the tensor at the start of the chain, and the axes as attributes
// (kernels/attention.h).
//
// A mask that repeats a smaller one is read from that: kernels broadcast masks themselves, and one for all queries costs them less than one for each.

#include "runtime/engine/lower/attention_views.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/indexing.h"

namespace serin::engine {

namespace {

struct Axis {
  int64_t size, stride;
};

/// Elements of `tensor`, flat: offset + sum(index * stride).
struct Walk {
  TensorId tensor;
  int64_t offset = 0;
  std::array<Axis, 4> axes;
};

/// The step that makes each tensor, where it is a strided copy.
std::vector<const Step*> strided_copies(const Program& program) {
  std::vector<const Step*> makers(program.tensors.size(), nullptr);
  for (const Step& step : program.steps) {
    if (std::holds_alternative<kernels::StridedCopy>(step.kernel) && step.bodies.empty())
      makers[static_cast<size_t>(step.outputs[0])] = &step;
  }
  return makers;
}

/// The same walk over what `copy` copied; nothing where one of its axes would have no single stride there.
std::optional<Walk> before(const Program& program, const Step& copy, const Walk& walk) {
  const auto& op = std::get<kernels::StridedCopy>(copy.kernel);
  const Shape& shape = program.tensor(copy.outputs[0]).shape;
  const kernels::Strides dense = kernels::row_major_strides(shape);
  std::vector<int64_t> at(shape.rank());  // of the first element, then of the last one that the axes so far reach
  Walk result{.tensor = copy.inputs[0], .offset = op.offset, .axes = {}};
  for (size_t i = 0; i < shape.rank(); ++i) {
    at[i] = walk.offset / dense[i] % shape[i];
    result.offset += at[i] * op.strides[i];
  }
  for (size_t a = 0; a < walk.axes.size(); ++a) {
    const Axis& axis = walk.axes[a];
    result.axes[a] = {axis.size, 0};
    if (axis.size == 1) continue;
    // The axis of the copy along which this one steps, without leaving it.
    bool found = false;
    for (size_t i = 0; i < shape.rank() && !found; ++i) {
      if (shape[i] == 1 || axis.stride % dense[i] != 0) continue;
      const int64_t steps = axis.stride / dense[i];
      if (at[i] + (axis.size - 1) * steps >= shape[i]) continue;
      at[i] += (axis.size - 1) * steps;
      result.axes[a].stride = steps * op.strides[i];
      found = true;
    }
    if (!found) return std::nullopt;
  }
  return result;
}

Walk walk_back(const Program& program, const std::vector<const Step*>& copies, TensorId id) {
  const Tensor& tensor = program.tensor(id);
  const kernels::Strides dense = kernels::row_major_strides(tensor.shape);
  Walk walk{.tensor = id, .offset = 0, .axes = {}};
  for (size_t i = 0; i < 4; ++i) walk.axes[i] = {tensor.shape[i], dense[i]};
  for (;;) {
    const auto [root, bytes] = program.root(walk.tensor);
    const Tensor& seen = program.tensor(root);
    const size_t size = dtype_size(seen.dtype);
    if (size == 0 || bytes % size != 0 || seen.dtype != tensor.dtype || seen.storage != Storage::kFixed) return walk;
    Walk at_root = walk;
    at_root.tensor = root;
    at_root.offset += static_cast<int64_t>(bytes / size);
    const Step* const copy = copies[static_cast<size_t>(root)];
    const auto further = copy ? before(program, *copy, at_root) : std::nullopt;
    if (!further) return at_root;
    walk = *further;
  }
}

bool is_attention(const Step& step) {
  const auto* const generic = std::get_if<kernels::Generic>(&step.kernel);
  return generic && generic->name == "Attention" && step.bodies.empty();
}

/// What `mask` repeats along some of its axes, and nothing else; `mask` itself where it is no such copy.
TensorId unrepeated(const Program& program, const std::vector<const Step*>& copies, TensorId mask) {
  for (;;) {
    const Tensor& tensor = program.tensor(mask);
    const auto [root, bytes] = program.root(mask);
    const Tensor& seen = program.tensor(root);
    const Step* const copy = copies[static_cast<size_t>(root)];
    if (!copy || bytes != 0 || seen.shape != tensor.shape || seen.storage != Storage::kFixed) return mask;
    const auto& op = std::get<kernels::StridedCopy>(copy->kernel);
    const Tensor& from = program.tensor(copy->inputs[0]);
    const kernels::Strides repeated = kernels::broadcast_strides(from.shape, seen.shape);
    // Its last axis has a value for each key, also before.
    const bool broadcasts = op.offset == 0 && from.storage == Storage::kFixed && from.shape.rank() == seen.shape.rank() &&
                            from.shape.back() == seen.shape.back() && std::equal(op.strides.begin(), op.strides.end(), repeated.begin());
    for (size_t axis = 0; axis < seen.shape.rank() && broadcasts; ++axis) {
      if (from.shape[axis] != 1 && from.shape[axis] != seen.shape[axis]) return mask;
    }
    if (!broadcasts) return mask;
    mask = copy->inputs[0];
  }
}

/// Steps whose results reach no output, from the last to the first.
void drop_unread_steps(Program& program) {
  std::vector<bool> read(program.tensors.size(), false);
  const auto mark = [&](TensorId id) {
    if (id != kNoTensor) read[static_cast<size_t>(program.root(id).first)] = true;
  };
  for (const TensorId id : program.outputs) mark(id);
  std::vector<bool> keep(program.steps.size(), false);
  for (size_t i = program.steps.size(); i-- > 0;) {
    const Step& step = program.steps[i];
    keep[i] = std::ranges::any_of(step.outputs,
                                  [&](TensorId id) { return id == kNoTensor || read[static_cast<size_t>(program.root(id).first)]; });
    if (keep[i]) std::ranges::for_each(step.inputs, mark);
  }
  size_t i = 0;
  std::erase_if(program.steps, [&](const Step&) { return !keep[i++]; });
}

}  // namespace

void view_attention_operands(Program& program) {
  const std::vector<const Step*> copies = strided_copies(program);
  bool changed = false;
  for (Step& step : program.steps) {
    if (!is_attention(step)) continue;
    constexpr size_t kMask = kernels::AttentionOperands::kMask;
    if (step.inputs.size() > kMask && step.inputs[kMask] != kNoTensor && program.tensor(step.inputs[kMask]).shape.rank() > 0) {
      const TensorId mask = unrepeated(program, copies, step.inputs[kMask]);
      changed |= mask != step.inputs[kMask];
      step.inputs[kMask] = mask;
    }
    constexpr const char* kViews[] = {"q_view", "k_view", "v_view"};
    for (size_t i = 0; i < 3; ++i) {
      const Tensor& operand = program.tensor(step.inputs[i]);
      if (operand.shape.rank() != 4 || operand.storage != Storage::kFixed || operand.shape.elements() == 0) continue;
      const Walk walk = walk_back(program, copies, step.inputs[i]);
      const auto& [batch, heads, rows, width] = walk.axes;
      if (walk.tensor == program.root(step.inputs[i]).first || (width.stride != 1 && width.size != 1)) continue;
      if (std::ranges::any_of(walk.axes, [](const Axis& axis) { return axis.stride < 0; })) continue;
      auto& attributes = std::get<kernels::Generic>(step.kernel).attributes;
      attributes.set(kViews[i], std::vector<int64_t>{batch.size, heads.size, rows.size, width.size, walk.offset, batch.stride, heads.stride,
                                                     rows.stride});
      step.inputs[i] = walk.tensor;
      changed = true;
    }
  }
  if (changed) drop_unread_steps(program);
}

}  // namespace serin::engine
