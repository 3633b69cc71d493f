// Shape rules of reductions.

#include <algorithm>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

Dims reduced(const Dims& x, const std::vector<int64_t>& axes, bool keep) {
  Dims result;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const bool gone = std::ranges::binary_search(axes, static_cast<int64_t>(axis));
    if (!gone)
      result.push_back(x[axis]);
    else if (keep)
      result.push_back(1);
  }
  return result;
}

}  // namespace

Status infer_reduce(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  const bool keep = c.node().integer("keepdims", 1) != 0;
  auto axes = c.known_list("axes", 1);
  if (!axes && !c.absent("axes", 1)) return c.set(0, c.dtype(0), keep ? std::optional(c.unknown_dims(x->size())) : std::nullopt);
  if (!axes || axes->empty()) {
    if (c.node().integer("noop_with_empty_axes", 0) != 0) return c.set(0, c.dtype(0), *x);
    axes.emplace();
    for (size_t axis = 0; axis < x->size(); ++axis) axes->push_back(static_cast<int64_t>(axis));
  }
  SERIN_TRY(const auto sorted, c.axes(*axes, x->size()));
  return c.set(0, c.dtype(0), reduced(*x, sorted, keep));
}

Status infer_arg(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, DType::kInt64, std::nullopt);
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 0), x->size()));
  if ((*x)[static_cast<size_t>(axis)] == Dim(0)) return c.fail("axis {} of {} has no elements to choose from", axis, print(*x));
  return c.set(0, DType::kInt64, reduced(*x, {axis}, c.node().integer("keepdims", 1) != 0));
}

}  // namespace serin::graph
