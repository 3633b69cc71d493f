// Shape rules of operators whose result is about shapes or made from numbers: Shape, Size, ConstantOfShape, Range, NonZero.

#include <algorithm>
#include <cmath>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

std::optional<double> known_number(const Context& c, size_t operand) {
  if (const auto constant = c.constant(operand)) return number_of(*constant);
  const Dims* element = c.elements(operand);
  if (!element || element->size() != 1 || !element->front().known()) return std::nullopt;
  return static_cast<double>(*element->front().value());
}

}  // namespace

Status infer_shape(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, DType::kInt64, c.unknown_dims(1));
  const auto rank = static_cast<int64_t>(x->size());
  const auto bound = [&](int64_t given) { return std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank); };
  const int64_t start = bound(c.node().integer("start", 0)), end = bound(c.node().integer("end", rank));
  return c.set(0, DType::kInt64, Dims{std::max<int64_t>(0, end - start)});
}

Status infer_size(Context& c) { return c.set(0, DType::kInt64, Dims{}); }

Status infer_constant_of_shape(Context& c) {
  SERIN_CHECK(c.index_dtype(0));
  const ConstantPtr value = c.node().constant("value");
  if (value && value->elements() != 1) return c.fail("value has shape {}, it must be one element", value->shape.str());
  const DType dtype = value ? value->dtype : DType::kFloat32;
  if (const Dims* target = c.elements(0)) return c.set(0, dtype, *target);
  const Dims* shape = c.dims(0);
  const auto rank = shape && shape->size() == 1 ? (*shape)[0].value() : std::nullopt;
  if (!rank || !Shape::fits(static_cast<size_t>(*rank))) return c.set(0, dtype, std::nullopt);
  return c.set(0, dtype, c.unknown_dims(static_cast<size_t>(*rank)));
}

Status infer_range(Context& c) {
  SERIN_CHECK(c.same_dtype(0, 1));
  SERIN_CHECK(c.same_dtype(0, 2));
  for (size_t i = 0; i < 3; ++i) {
    if (const Dims* x = c.dims(i); x && product(*x).known() && !(product(*x) == Dim(1)))
      return c.fail("operand {} has shape {}, it must be one number", i, print(*x));
  }
  const auto start = known_number(c, 0), limit = known_number(c, 1), delta = known_number(c, 2);
  if (delta && (*delta == 0 || std::isnan(*delta))) return c.fail("delta is {}", *delta);
  if (start && limit && delta) {
    const double count = std::max(0.0, std::ceil((*limit - *start) / *delta));
    if (!(count <= static_cast<double>(kMaxElements)))
      return c.fail("from {} to {} by {} is more than the limit of {} elements", *start, *limit, *delta, kMaxElements);
    return c.set(0, c.dtype(0), Dims{static_cast<int64_t>(count)});
  }
  const Dims* from = c.elements(0);
  const Dims* to = c.elements(1);
  const Dims* by = c.elements(2);
  if (from && to && by && by->front().positive()) {
    const Dim length = ceil_div(to->front() - from->front(), by->front());
    return c.set(0, c.dtype(0), Dims{max(length, 0)});
  }
  return c.set(0, c.dtype(0), c.unknown_dims(1));
}

Status infer_nonzero(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, DType::kInt64, c.unknown_dims(2));
  return c.set(0, DType::kInt64, Dims{static_cast<int64_t>(x->size()), c.unknown_dim(product(*x))});
}

}  // namespace serin::graph
