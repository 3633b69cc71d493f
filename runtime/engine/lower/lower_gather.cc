// lower_gather.cc: Concat, Pad, Gather, NonZero: data movement that no single set of strides describes.

#include <algorithm>

#include "kernels/indexing.h"
#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

Status lower_concat(Lowering& at) {
  std::vector<TensorId> parts;
  for (size_t i = 0; i < at.node().inputs.size(); ++i) {
    const TensorId part = at.input(i);
    if (at.shape(part).elements() != 0) parts.push_back(part);
  }
  if (parts.empty()) return {};  // nothing to write
  if (parts.size() == 1) return at.alias(at.output(), parts[0]);
  const kernels::Concat op{at.axis("axis", 0, at.shape(at.output()).rank())};
  return at.emit(op, std::move(parts), {at.output()});
}

Status lower_pad(Lowering& at) {
  const size_t rank = at.shape(at.input(0)).rank();
  const auto pads = at.integers("pads", 1);
  if (!pads) return Lowering::refuse("its pads are computed during the run");
  auto axes = at.integers("axes", 3);
  if (!axes || axes->empty()) {
    axes.emplace();
    for (size_t axis = 0; axis < rank; ++axis) axes->push_back(static_cast<int64_t>(axis));
  }
  if (pads->size() != 2 * axes->size())
    return Lowering::refuse("has " + std::to_string(pads->size()) + " pads for " + std::to_string(axes->size()) + " axes");

  kernels::Pad op;
  op.begin.assign(rank, 0);
  op.end.assign(rank, 0);
  for (size_t i = 0; i < axes->size(); ++i) {
    const auto axis = static_cast<size_t>((*axes)[i] < 0 ? (*axes)[i] + static_cast<int64_t>(rank) : (*axes)[i]);
    op.begin[axis] = (*pads)[i];
    op.end[axis] = (*pads)[i + axes->size()];
  }
  const std::string mode = at.node().text("mode", "constant");
  if (mode == "reflect")
    op.mode = kernels::Pad::Mode::kReflect;
  else if (mode == "edge")
    op.mode = kernels::Pad::Mode::kEdge;
  else if (mode == "wrap")
    op.mode = kernels::Pad::Mode::kWrap;
  else if (mode != "constant")
    return Lowering::refuse("pads with mode '" + mode + "', which cannot be run yet");

  const auto is_zero = [](int64_t pad) { return pad == 0; };
  if (std::all_of(pads->begin(), pads->end(), is_zero)) return at.alias(at.output(), at.input(0));
  std::vector<TensorId> inputs = {at.input(0)};
  if (op.mode == kernels::Pad::Mode::kConstant) {
    const double value = at.node().number("value", 0);
    if (at.has(2))
      inputs.push_back(at.input(2));
    else if (value != 0)
      inputs.push_back(at.number(at.dtype(at.output()), value));
  }
  return at.emit(op, std::move(inputs), {at.output()});
}

/// One known index is a slice.
static Status lower_one_index(Lowering& at, int64_t axis, int64_t index) {
  const Shape& shape = at.shape(at.input(0));
  const auto a = static_cast<size_t>(axis);
  const int64_t size = shape[a];
  if (index < -size || index >= size) {
    return Error{Code::kInvalidArgument, "index " + std::to_string(index) + " is out of range for axis " + std::to_string(axis) +
                                             " of size " + std::to_string(size)};
  }
  const kernels::Strides dense = kernels::row_major_strides(shape);
  std::vector<int64_t> strides;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (i == a)
      strides.resize(strides.size() + at.shape(at.input(1)).rank(), 0);  // axes of 1
    else
      strides.push_back(dense[i]);
  }
  return at.strided(at.output(), at.input(0), strides, (index < 0 ? index + size : index) * dense[a]);
}

Status lower_gather(Lowering& at) {
  const int64_t axis = at.axis("axis", 0, at.shape(at.input(0)).rank());
  const bool one = at.shape(at.input(1)).elements() == 1 && !at.bounded(at.input(0)) && !at.bounded(at.input(1));
  if (const auto index = at.integers("", 1); index && one) return lower_one_index(at, axis, index->front());
  return at.emit(kernels::Gather{axis}, {at.input(0), at.input(1)}, {at.output()});
}

Status lower_non_zero(Lowering& at) { return at.emit(kernels::NonZero{}, {at.input(0)}, {at.output()}); }

}  // namespace serin::engine
