// Shape rules of Resize, GridSample and AffineGrid.
//
// Resize: floor(size * scale) for each axis, or the sizes themselves. A scale is a float; over a symbolic size it is taken as the quotient p / q of
// small integers that rounds to it (2, 1/2, 4/3), so that the result is floor(p * size / q).

#include <algorithm>
#include <cmath>

#include "runtime/graph/ops/image.h"

namespace serin::graph {
namespace {

Dim scaled(Context& c, const Dim& size, float scale) {
  if (const auto number = size.value()) {
    const double result = std::floor(static_cast<double>(*number) * static_cast<double>(scale));
    return result < static_cast<double>(kMaxElements) ? static_cast<int64_t>(result) : kMaxElements + 1;  // refused where the type is set
  }
  constexpr int64_t kMostParts = 64;
  for (int64_t q = 1; q <= kMostParts; ++q) {
    const double p = std::round(static_cast<double>(scale) * static_cast<double>(q));
    if (p >= 1 && p <= 65536 && static_cast<float>(p / static_cast<double>(q)) == scale)
      return floor_div(size * Dim(static_cast<int64_t>(p)), q);
  }
  return c.unknown_dim(scale < 65536 ? std::optional(size * Dim(static_cast<int64_t>(std::ceil(scale)))) : std::nullopt);
}

/// The elements of operand `i` where they are known f32 numbers; empty: absent, or an empty tensor that says nothing.
struct Numbers {
  bool given = false, known = false;
  std::vector<float> values;
};

Numbers numbers(const Context& c, size_t i) {
  Numbers result;
  const Dims* shape = c.dims(i);
  if (!c.has(i) || (shape && product(*shape) == Dim(0))) return result;
  result.given = true;
  const ConstantPtr constant = c.constant(i);
  if (!constant) return result;
  result.known = constant->dtype == DType::kFloat32;
  if (!result.known) return result;
  const auto values = constant->span<float>();
  result.values.assign(values.begin(), values.end());
  return result;
}

/// One scale for all axes, so that nothing is larger ("not_larger") or smaller than the sizes that were asked for.
Status keep_aspect_ratio(Context& c, const std::string& policy, const std::vector<size_t>& axes, const Dims& sizes, Dims& result) {
  std::optional<double> common;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto from = result[axes[i]].value(), to = sizes[i].value();
    if (!from || !to) {
      for (const size_t axis : axes) result[axis] = c.unknown_dim();
      return {};
    }
    if (*from == 0) return c.fail("axis {} has no elements to resize", axes[i]);
    const double scale = static_cast<double>(*to) / static_cast<double>(*from);
    common = !common ? scale : policy == "not_larger" ? std::min(*common, scale) : std::max(*common, scale);
  }
  for (const size_t axis : axes) {
    const double size = std::floor(*common * static_cast<double>(*result[axis].value()) + 0.5);
    if (!(size >= 0 && size <= static_cast<double>(kMaxElements))) return c.fail("axis {} would have {} elements", axis, size);
    result[axis] = static_cast<int64_t>(size);
  }
  return {};
}

Status resize_to(Context& c, const std::vector<size_t>& axes, Dims& result) {
  const Dims* sizes = c.elements(3);
  const std::string policy = c.node().text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return c.fail("keep_aspect_ratio_policy '{}' is unknown", policy);
  if (sizes && sizes->size() != axes.size()) return c.fail("{} sizes are given for {} axes", sizes->size(), axes.size());
  for (size_t i = 0; sizes && i < axes.size(); ++i) {
    if (const auto size = (*sizes)[i].value(); size && *size < 0) return c.fail("size {} of axis {} is negative", *size, axes[i]);
  }
  if (sizes && policy != "stretch") return keep_aspect_ratio(c, policy, axes, Dims(*sizes), result);
  for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = sizes ? (*sizes)[i] : c.unknown_dim();
  return {};
}

Status resize_by(Context& c, const std::vector<size_t>& axes, const Numbers& scales, Dims& result) {
  if (scales.known && scales.values.size() != axes.size())
    return c.fail("{} scales are given for {} axes", scales.values.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!scales.known) {
      result[axes[i]] = c.unknown_dim();
      continue;
    }
    const float scale = scales.values[i];
    if (!(scale > 0) || std::isinf(scale)) return c.fail("scale {} of axis {} is not a positive number", scale, axes[i]);
    result[axes[i]] = scaled(c, result[axes[i]], scale);
  }
  return {};
}

}  // namespace

Result<std::vector<size_t>> listed_axes(const Context& c, size_t rank) {
  std::vector<size_t> axes;
  if (!c.node().attributes.contains("axes")) {
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  const std::vector<int64_t> given = c.node().integers("axes");
  SERIN_CHECK(c.axes(given, rank));
  for (const int64_t each : given) {
    SERIN_TRY(const int64_t axis, c.axis(each, rank));
    axes.push_back(static_cast<size_t>(axis));
  }
  return axes;
}

Status infer_resize(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  Dims result = *x;
  SERIN_TRY(const std::vector<size_t> axes, listed_axes(c, result.size()));
  const Numbers scales = numbers(c, 2);
  if (!scales.given && !c.has(3)) return c.fail("has neither scales nor sizes");
  SERIN_CHECK(scales.given ? resize_by(c, axes, scales, result) : resize_to(c, axes, result));
  return c.set(0, c.dtype(0), std::move(result));
}

/// x [n, c, in...], grid [n, out..., axes] -> [n, c, out...].
Status infer_grid_sample(Context& c) {
  const Dims* x = c.dims(0);
  const Dims* grid = c.dims(1);
  if (!x || !grid) return c.set(0, c.dtype(0), std::nullopt);
  if (x->size() < 3 || grid->size() != x->size())
    return c.fail("input has shape {}, grid {}; ranks must be equal and 3 or more", print(*x), print(*grid));
  if (!unify(grid->back(), static_cast<int64_t>(x->size()) - 2))
    return c.fail("grid has shape {} for {} spatial axes", print(*grid), x->size() - 2);
  const auto batch = unify((*x)[0], (*grid)[0]);
  if (!batch) return c.fail("input has shape {}, grid {}: batches differ", print(*x), print(*grid));
  Dims result{*batch, (*x)[1]};
  result.insert(result.end(), grid->begin() + 1, grid->end() - 1);
  return c.set(0, c.dtype(0), std::move(result));
}

/// theta [n, axes, axes + 1], size (n, c, spatial...) -> [n, spatial..., axes].
Status infer_affine_grid(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims* theta = c.dims(0);
  const Dims* size = c.elements(1);
  const Dims* length = c.dims(1);
  const auto rank = size ? static_cast<int64_t>(size->size()) : length && length->size() == 1 ? (*length)[0].value() : std::nullopt;
  if (!rank) return c.set(0, c.dtype(0), std::nullopt);
  if (*rank != 4 && *rank != 5) return c.fail("size has {} elements, it must have 4 or 5", *rank);
  const int64_t axes = *rank - 2;
  if (theta && (theta->size() != 3 || !unify((*theta)[1], axes) || !unify((*theta)[2], axes + 1)))
    return c.fail("theta has shape {}, it must be [n,{},{}]", print(*theta), axes, axes + 1);
  Dims result = size ? Dims(size->begin(), size->end()) : c.unknown_dims(static_cast<size_t>(*rank));
  if (theta && !unify((*theta)[0], result[0])) return c.fail("theta has shape {} for a batch of {}", print(*theta), result[0].str());
  result.erase(result.begin() + 1);
  result.push_back(axes);
  return c.set(0, c.dtype(0), std::move(result));
}

}  // namespace serin::graph
