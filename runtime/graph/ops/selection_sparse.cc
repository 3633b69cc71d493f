// Shape rules of sparse tensors: indices [values, rank], values, shape [rank].

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

Status require_matrix(const Context& c) {
  const Dims* indices = c.dims(0);
  if (indices && indices->size() != 2) return c.fail("indices have shape {}, they must be [values, rank]", print(*indices));
  return {};
}

/// A small number in an operand, as a size.
std::optional<Dim> size_in(const Context& c, size_t operand) {
  const Dims* known = c.elements(operand);
  const bool usable = known && !known->empty() && !(known->front().known() && *known->front().value() < 0);
  return usable ? std::optional(known->front()) : std::nullopt;
}

}  // namespace

Status infer_sparse_reshape(Context& c) {
  SERIN_CHECK(require_matrix(c));
  const Dims* indices = c.dims(0);
  const Dims* to = c.dims(2);
  if (to && to->size() != 1) return c.fail("the new shape has shape {}, it must be a list", print(*to));
  const Dim rank = to ? to->front() : c.unknown_dim();
  SERIN_CHECK(c.set(0, DType::kInt64, Dims{indices ? indices->front() : c.unknown_dim(), rank}));
  return c.set(1, DType::kInt64, Dims{rank});
}

Status infer_fill_empty_rows(Context& c) {
  SERIN_CHECK(require_matrix(c));
  const Dims* indices = c.dims(0);
  const Dim values = c.unknown_dim();
  SERIN_CHECK(c.same_dtype(1, 3));
  SERIN_CHECK(c.set(0, DType::kInt64, Dims{values, indices ? (*indices)[1] : c.unknown_dim()}));
  SERIN_CHECK(c.set(1, c.dtype(1), Dims{values}));
  const auto rows = size_in(c, 2);
  SERIN_CHECK(c.set(2, DType::kBool, Dims{rows ? *rows : c.unknown_dim()}));
  return c.set(3, DType::kInt64, Dims{indices ? indices->front() : c.unknown_dim()});
}

Status infer_segment_reduce(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (x->empty()) return c.fail("rows have shape {}", print(*x));
  const auto count = c.has(2) ? size_in(c, 2) : std::nullopt;
  Dims y = *x;
  y.front() = count ? *count : c.unknown_dim();
  return c.set(0, c.dtype(0), std::move(y));
}

}  // namespace serin::graph
