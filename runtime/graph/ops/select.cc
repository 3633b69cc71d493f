// Shape rules of operators that take a part of a tensor: Gather, Slice.

#include <algorithm>
#include <limits>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

constexpr int64_t kFar = std::numeric_limits<int32_t>::max();  // exporters write "to the end" as INT32_MAX or INT64_MAX

/// A Slice bound as an index into [0, size]; nothing where its sign cannot be told.
std::optional<Dim> clamp_bound(const Dim& bound, const Dim& size) {
  if (const auto number = bound.value()) {
    if (*number >= kFar && !size.known()) return size;
    if (*number <= -kFar && !size.known()) return Dim(0);
    return *number < 0 ? max(bound + size, 0) : min(bound, size);
  }
  if (bound.nonnegative()) return min(bound, size);
  if ((Dim(0) - bound).nonnegative()) return max(bound + size, 0);
  return std::nullopt;
}

/// Elements that start:end:step takes of `size`, all numbers, as Python counts.
int64_t slice_count(int64_t size, int64_t start, int64_t end, int64_t step) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto clamp = [&](int64_t bound) { return std::clamp(bound < 0 ? bound + size : bound, low, high); };
  // A bound further left than the beginning stays left of it when the step is negative.
  const auto from = clamp(start), to = end < -size ? low : clamp(end);
  if (step > 0) return from >= to ? 0 : (to - from - 1) / step + 1;
  const auto stride = step == std::numeric_limits<int64_t>::min() ? std::numeric_limits<int64_t>::max() : -step;
  return from <= to ? 0 : (from - to - 1) / stride + 1;
}

Dim slice_length(Context& c, const Dim& size, const Dim& start, const Dim& end, const Dim& step) {
  const auto by = step.value();
  if (!by) return c.unknown_dim(size);
  if (size.known() && start.known() && end.known()) return slice_count(*size.value(), *start.value(), *end.value(), *by);
  if (*by == -1 && start == Dim(-1) && end.known() && *end.value() <= -kFar) return size;             // reversed
  if (*by > 0 && start.nonnegative() && end.known() && (*end.value() < 0 || *end.value() >= kFar)) {  // to the end, or so many before it
    const Dim stop = *end.value() < 0 ? size + end : size;
    return ceil_div(max(stop - start, 0), step);
  }
  const auto from = clamp_bound(start, size), to = clamp_bound(end, size);
  if (*by < 0 || !from || !to) return c.unknown_dim(size);
  return ceil_div(max(*to - *from, 0), step);
}

}  // namespace

Status infer_gather(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims* data = c.dims(0);
  const Dims* indices = c.dims(1);
  if (!data || !indices) return c.set(0, c.dtype(0), std::nullopt);
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 0), data->size()));
  Dims result(data->begin(), data->begin() + axis);
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), data->begin() + axis + 1, data->end());
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_slice(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (c.absent("starts", 1) || c.absent("ends", 2)) return c.fail("starts or ends is missing");
  const auto starts = c.list("starts", 1), ends = c.list("ends", 2), steps = c.list("steps", 4);
  auto axes = c.known_list("axes", 3);
  if (!axes && !c.absent("axes", 3)) return c.set(0, c.dtype(0), c.unknown_dims(x->size()));
  if (!axes) {
    const auto count = starts                                                           ? starts->size()
                       : c.dims(1) && c.dims(1)->size() == 1 && (*c.dims(1))[0].known() ? static_cast<size_t>(*(*c.dims(1))[0].value())
                                                                                        : x->size();
    if (count > x->size()) return c.fail("{} axes are sliced, input has shape {}", count, print(*x));
    axes.emplace();
    for (size_t i = 0; i < count; ++i) axes->push_back(static_cast<int64_t>(i));
  }
  SERIN_CHECK(c.axes(*axes, x->size()));
  const auto fits = [&](const std::optional<Dims>& list) { return !list || list->size() == axes->size(); };
  if (!fits(starts) || !fits(ends) || !fits(steps)) return c.fail("starts, ends, axes and steps do not have the same length");

  Dims result = *x;
  for (size_t i = 0; i < axes->size(); ++i) {
    SERIN_TRY(const int64_t axis, c.axis((*axes)[i], x->size()));
    Dim& dim = result[static_cast<size_t>(axis)];
    const Dim step = steps ? (*steps)[i] : Dim(1);
    if (step == Dim(0)) return c.fail("the step of axis {} is 0", axis);
    const bool steps_known = steps || c.absent("steps", 4);
    dim = starts && ends && steps_known ? slice_length(c, dim, (*starts)[i], (*ends)[i], step) : c.unknown_dim(dim);
  }
  return c.set(0, c.dtype(0), std::move(result));
}

}  // namespace serin::graph
