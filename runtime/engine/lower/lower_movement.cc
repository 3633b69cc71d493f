// lower_movement.cc: lowers Reshape and its kin, Transpose, Slice, Split, Expand, Tile. Each reads the elements of its operand in another
// order, so each is a set of strides. Where the order is the one in memory, nothing is copied.

#include <algorithm>
#include <numeric>

#include "kernels/indexing.h"
#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

namespace {

std::vector<int64_t> dense_strides(const Shape& shape) {
  const kernels::Strides strides = kernels::row_major_strides(shape);
  return {strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(shape.rank())};
}

}  // namespace

Status lower_view(Lowering& at) { return at.alias(at.output(), at.input(0)); }

Status lower_transpose(Lowering& at) {
  const std::vector<int64_t> strides = dense_strides(at.shape(at.input(0)));
  std::vector<int64_t> permutation = at.node().integers("perm");
  if (permutation.empty()) {
    permutation.resize(strides.size());
    std::iota(permutation.rbegin(), permutation.rend(), int64_t{0});
  }
  std::vector<int64_t> permuted;
  permuted.reserve(permutation.size());
  for (const int64_t axis : permutation) permuted.push_back(strides[static_cast<size_t>(axis)]);
  return at.strided(at.output(), at.input(0), permuted);
}

Status lower_slice(Lowering& at) {
  const Shape& shape = at.shape(at.input(0));
  const auto starts = at.integers("starts", 1);
  if (!starts) return Lowering::refuse("where it starts is computed during the run");
  auto axes = at.integers("axes", 3), steps = at.integers("steps", 4);
  if ((at.has(3) && !axes) || (at.has(4) && !steps)) return Lowering::refuse("its axes or steps are computed during the run");
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), int64_t{0});
  }
  if (!steps) steps.emplace(starts->size(), 1);

  // Where it ends is in the shape of the result.
  std::vector<int64_t> strides = dense_strides(shape);
  int64_t offset = 0;
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto axis = static_cast<size_t>((*axes)[i] < 0 ? (*axes)[i] + static_cast<int64_t>(shape.rank()) : (*axes)[i]);
    const int64_t size = shape[axis], step = (*steps)[i];
    int64_t start = (*starts)[i] < 0 ? (*starts)[i] + size : (*starts)[i];
    start = std::clamp<int64_t>(start, 0, step < 0 ? std::max<int64_t>(size - 1, 0) : size);
    for (const BoundedDim& bounded : at.tensor(at.input(0)).bounded) {
      if (bounded.axis == axis && ((*starts)[i] < 0 || step < 0))
        return Lowering::refuse("counts from the end of a dimension whose size depends on the data");
    }
    offset += start * strides[axis];
    strides[axis] *= step;
  }
  return at.strided(at.output(), at.input(0), strides, offset);
}

Status lower_split(Lowering& at) {
  const TensorId input = at.input(0);
  const auto axis = static_cast<size_t>(at.axis("axis", 0, at.shape(input).rank()));
  const std::vector<int64_t> strides = dense_strides(at.shape(input));
  int64_t begin = 0;
  for (size_t i = 0; i < at.node().outputs.size(); ++i) {
    if (at.node().outputs[i] == graph::kNone) return Lowering::refuse("leaves out a part that it cannot count");
    if (at.bounded(at.output(i))) return Lowering::refuse("splits a dimension whose size depends on the data");
    SERIN_CHECK(at.strided(at.output(i), input, strides, begin * strides[axis]));
    begin += at.shape(at.output(i))[axis];
  }
  return {};
}

Status lower_expand(Lowering& at) { return at.broadcast(at.output(), at.input(0)); }

/// Each repeated axis [r * d] of the result is two axes [r, d], of which the first does not move in the operand.
Status lower_tile(Lowering& at) {
  const Shape& from = at.shape(at.input(0));
  const Shape& to = at.shape(at.output());
  if (at.bounded(at.input(0))) return Lowering::refuse("repeats a tensor whose size depends on the data");
  if (from == to) return at.alias(at.output(), at.input(0));
  const std::vector<int64_t> from_strides = dense_strides(from);
  std::vector<int64_t> dims, strides;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 0 && to[axis] != from[axis]) {
      dims.push_back(to[axis] / from[axis]);
      strides.push_back(0);
    }
    dims.push_back(std::min(from[axis], to[axis]));
    strides.push_back(from_strides[axis]);
  }
  if (!Shape::fits(dims.size())) return Lowering::refuse("repeats too many axes at once");
  return at.strided(at.view(at.output(), Shape(dims)), at.input(0), strides);
}

}  // namespace serin::engine
