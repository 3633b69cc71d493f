// Shape rules of operators that put tensors together, take them apart or repeat them: Concat, Split, Pad, Tile, Expand.

#include <algorithm>
#include <limits>

#include "runtime/graph/ops/families.h"

namespace serin::graph {

Status infer_concat(Context& c) {
  for (size_t i = 0; i < c.operands(); ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
    SERIN_CHECK(c.same_dtype(0, i));
    if (!c.dims(i)) return c.set(0, c.dtype(0), std::nullopt);
  }
  Dims result = *c.dims(0);
  if (!c.node().attributes.contains("axis")) return c.fail("attribute 'axis' is missing");
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 0), result.size()));
  for (size_t i = 1; i < c.operands(); ++i) {
    const Dims& x = *c.dims(i);
    if (x.size() != result.size())
      return c.fail("operand {} has shape {}, operand 0 has {}; ranks must be equal", i, print(x), print(*c.dims(0)));
    for (size_t j = 0; j < x.size(); ++j) {
      if (j == static_cast<size_t>(axis)) {
        result[j] = result[j] + x[j];
        continue;
      }
      const auto both = unify(result[j], x[j]);
      if (!both) return c.fail("operand {} has shape {}, operand 0 has {}; only axis {} may differ", i, print(x), print(*c.dims(0)), axis);
      result[j] = *both;
    }
  }
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_split(Context& c) {
  const Dims* x = c.dims(0);
  const size_t parts = c.results();
  if (!x) {
    for (size_t i = 0; i < parts; ++i) SERIN_CHECK(c.set(i, c.dtype(0), std::nullopt));
    return {};
  }
  const Dims whole = *x;
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 0), whole.size()));
  const Dim size = whole[static_cast<size_t>(axis)];
  auto sizes = c.list("split", 1);
  if (!sizes && c.absent("split", 1)) {
    const Dim part = ceil_div(size, static_cast<int64_t>(parts));
    sizes = Dims(parts, part);
    sizes->back() = size - part * Dim(static_cast<int64_t>(parts) - 1);
  }
  if (!sizes)
    sizes = c.unknown_dims(parts);
  else if (sizes->size() != parts)
    return c.fail("{} sizes are given for {} results", sizes->size(), parts);
  else if (const Dim sum =
               [&] {
                 Dim total = 0;
                 for (const Dim& each : *sizes) total = total + each;
                 return total;
               }();
           !unify(sum, size)) {
    return c.fail("sizes {} add up to {}, axis {} of {} has {}", print(*sizes), sum.str(), axis, print(whole), size.str());
  }
  for (size_t i = 0; i < parts; ++i) {
    Dims part = whole;
    part[static_cast<size_t>(axis)] = (*sizes)[i];
    SERIN_CHECK(c.set(i, c.dtype(0), std::move(part)));
  }
  return {};
}

Status infer_pad(Context& c) {
  const Dims* x = c.dims(0);
  if (c.absent("pads", 1)) return c.fail("attribute 'pads' is missing");
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  const auto pads = c.list("pads", 1);
  if (!pads) return c.set(0, c.dtype(0), c.unknown_dims(x->size()));
  const std::string mode = c.node().text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") return c.fail("mode '{}' is unknown", mode);

  if (!c.absent("axes", 3) && !c.known_list("axes", 3)) return c.set(0, c.dtype(0), c.unknown_dims(x->size()));
  std::vector<int64_t> axes = c.known_list("axes", 3).value_or(std::vector<int64_t>());
  if (c.absent("axes", 3)) {
    for (size_t i = 0; i < x->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (pads->size() != 2 * axes.size()) return c.fail("pads has {} elements, {} axes need {}", pads->size(), axes.size(), 2 * axes.size());
  SERIN_CHECK(c.axes(axes, x->size()));
  Dims result = *x;
  for (size_t i = 0; i < axes.size(); ++i) {
    SERIN_TRY(const int64_t axis, c.axis(axes[i], x->size()));
    Dim& dim = result[static_cast<size_t>(axis)];
    for (const Dim& side : {(*pads)[i], (*pads)[axes.size() + i]}) {
      const bool reflects = mode == "reflect" && side.known() && dim.known();
      const Dim& size = (*x)[static_cast<size_t>(axis)];
      if (reflects && *side.value() > 0 && size.known() && *side.value() >= *size.value()) {
        return c.fail("reflecting {} elements at axis {} of {}, which has too few", side.str(), axis, print(*x));
      }
      if (mode != "constant" && size == Dim(0) && !(side == Dim(0)))
        return c.fail("axis {} of {} has no elements to repeat", axis, print(*x));
    }
    dim = dim + (*pads)[i] + (*pads)[axes.size() + i];
  }
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_tile(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  const Dims* repeats = c.elements(1);
  if (!repeats) return c.set(0, c.dtype(0), c.unknown_dims(x->size()));
  if (repeats->size() != x->size()) return c.fail("{} repeats are given, input has shape {}", repeats->size(), print(*x));
  Dims result;
  for (size_t i = 0; i < x->size(); ++i) {
    const auto times = (*repeats)[i].value();
    if (times && *times < 0) return c.fail("repeat {} of axis {} is negative", *times, i);
    result.push_back((*x)[i] * (*repeats)[i]);
  }
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_expand(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims* x = c.dims(0);
  const Dims* target = c.elements(1);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (!target) {
    const Dims* shape = c.dims(1);
    const auto rank = shape && shape->size() == 1 ? (*shape)[0].value() : std::nullopt;
    if (!rank || !Shape::fits(static_cast<size_t>(*rank))) return c.set(0, c.dtype(0), std::nullopt);
    return c.set(0, c.dtype(0), c.unknown_dims(std::max(x->size(), static_cast<size_t>(*rank))));
  }
  for (const Dim& dim : *target) {
    if (dim.known() && *dim.value() < 0) return c.fail("target {} has a negative dimension", print(*target));
  }
  auto result = broadcast(*x, *target);
  if (!result) return c.fail("{} does not broadcast to {}", print(*x), print(*target));
  return c.set(0, c.dtype(0), std::move(*result));
}

}  // namespace serin::graph
