// Shape rules of operators that only look at the elements in another way: Reshape, Flatten, Squeeze, Unsqueeze, Transpose.

#include <algorithm>
#include <numeric>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

/// Fills in the 0s (copied from the input) and the -1 (what is left) of a Reshape's target.
Result<Dims> resolve_target(const Context& c, const Dims& x, const Dims& target) {
  const bool allow_zero = c.node().integer("allowzero", 0) != 0;
  Dims result;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < target.size(); ++i) {
    const auto number = target[i].value();
    if (number == -1) {
      if (inferred) return c.fail("target {} has more than one -1", print(target));
      inferred = i;
      result.push_back(1);
    } else if (number == 0 && !allow_zero) {
      if (i >= x.size()) return c.fail("target {} copies dimension {}, input has shape {}", print(target), i, print(x));
      result.push_back(x[i]);
    } else if (number && *number < 0) {
      return c.fail("target {} has dimension {}", print(target), *number);
    } else {
      result.push_back(target[i]);
    }
  }
  const Dim total = product(x), others = product(result);
  const bool known = total.known() && others.known();
  if (inferred) {
    const bool divides = !known || (others == Dim(0) ? total == Dim(0) : *total.value() % *others.value() == 0);
    if (!divides)
      return c.fail("cannot reshape {} to {}: {} elements are not a multiple of {}", print(x), print(target), total.str(), others.str());
    result[*inferred] = floor_div(total, others);
  } else if (known && !(total == others)) {
    return c.fail("cannot reshape {} to {}: {} elements to {}", print(x), print(target), total.str(), others.str());
  }
  return result;
}

}  // namespace

Status infer_reshape(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims* shape = c.dims(1);
  if (shape && shape->size() != 1) return c.fail("the target has shape {}, it must be a vector", print(*shape));
  const Dims* target = c.elements(1);
  if (!target) {
    const auto rank = shape ? (*shape)[0].value() : std::nullopt;
    if (!rank || !Shape::fits(static_cast<size_t>(*rank))) return c.set(0, c.dtype(0), std::nullopt);
    return c.set(0, c.dtype(0), c.unknown_dims(static_cast<size_t>(*rank)));
  }
  const Dims* x = c.dims(0);
  if (!x) {
    Dims result = *target;
    for (Dim& dim : result) {
      if (!dim.positive()) dim = c.unknown_dim();
    }
    return c.set(0, c.dtype(0), std::move(result));
  }
  SERIN_TRY(Dims result, resolve_target(c, *x, *target));
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_flatten(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), c.unknown_dims(2));
  const int64_t given = c.node().integer("axis", 1);
  const auto rank = static_cast<int64_t>(x->size());
  if (given < -rank || given > rank) return c.fail("axis {} is out of range for rank {}", given, rank);
  const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
  return c.set(0, c.dtype(0), Dims{product(*x, 0, axis), product(*x, axis, x->size())});
}

Status infer_squeeze(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  auto axes = c.known_list("axes", 1);
  if (!axes && !c.absent("axes", 1)) return c.set(0, c.dtype(0), std::nullopt);
  if (!axes) {
    axes.emplace();
    for (size_t axis = 0; axis < x->size(); ++axis) {
      if (!(*x)[axis].known()) return c.set(0, c.dtype(0), std::nullopt);  // whether it is dropped depends on its size
      if ((*x)[axis] == Dim(1)) axes->push_back(static_cast<int64_t>(axis));
    }
  }
  SERIN_TRY(const auto sorted, c.axes(*axes, x->size()));
  Dims result;
  for (size_t axis = 0; axis < x->size(); ++axis) {
    const Dim& dim = (*x)[axis];
    if (!std::ranges::binary_search(sorted, static_cast<int64_t>(axis)))
      result.push_back(dim);
    else if (dim.known() && !(dim == Dim(1)))
      return c.fail("axis {} of {} is {}, only 1 can be squeezed", axis, print(*x), dim.str());
  }
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_unsqueeze(Context& c) {
  const Dims* x = c.dims(0);
  const auto axes = c.known_list("axes", 1);
  if (!axes && c.absent("axes", 1)) return c.fail("attribute 'axes' is missing");
  if (!x || !axes) return c.set(0, c.dtype(0), std::nullopt);
  const size_t rank = x->size() + axes->size();
  if (!Shape::fits(rank)) return c.fail("the result would have rank {}; at most {} is supported", rank, Shape::kMaxRank);
  SERIN_TRY(const auto sorted, c.axes(*axes, rank));
  Dims result;
  for (size_t axis = 0, from = 0; axis < rank; ++axis) {
    const bool fresh = std::ranges::binary_search(sorted, static_cast<int64_t>(axis));
    result.push_back(fresh ? Dim(1) : (*x)[from++]);
  }
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_transpose(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  std::vector<int64_t> perm = c.node().integers("perm");
  if (!c.node().attributes.contains("perm")) {
    perm.resize(x->size());
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  std::vector<int64_t> sorted = perm;
  std::ranges::sort(sorted);
  bool permutes = perm.size() == x->size();
  for (size_t i = 0; permutes && i < sorted.size(); ++i) permutes = sorted[i] == static_cast<int64_t>(i);
  if (!permutes) return c.fail("perm [{}] is not a permutation of the {} axes", fmt::join(perm, ","), x->size());
  Dims result;
  for (const int64_t axis : perm) result.push_back((*x)[static_cast<size_t>(axis)]);
  return c.set(0, c.dtype(0), std::move(result));
}

}  // namespace serin::graph
