// Shape rules of matrix products. MatMul has NumPy's rules: leading axes broadcast, a vector is a row on the left and a column on the right.

#include "runtime/graph/ops/families.h"
#include "runtime/graph/ops/quant.h"

namespace serin::graph {
namespace {

Status same_dtypes(const Context& c) {
  for (size_t i = 1; i < c.operands(); ++i) SERIN_CHECK(c.same_dtype(0, i));
  return {};
}

/// [..., m, k] x [..., k, n] with vectors made matrices; their extra axis is dropped again.
Result<Dims> product_shape(const Context& c, Dims a, Dims b) {
  if (a.empty() || b.empty()) return c.fail("cannot multiply {} by {}: a scalar", print(a), print(b));
  const bool row = a.size() == 1, column = b.size() == 1;
  const std::string shapes = print(a) + " by " + print(b);
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.push_back(Dim(1));
  const Dim& inner_a = a.back();
  const Dim& inner_b = b[b.size() - 2];
  if (!unify(inner_a, inner_b)) return c.fail("cannot multiply {}: inner dimensions are {} and {}", shapes, inner_a.str(), inner_b.str());
  auto result = broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!result) return c.fail("cannot multiply {}: leading dimensions do not broadcast", shapes);
  if (!row) result->push_back(a[a.size() - 2]);
  if (!column) result->push_back(b.back());
  return *result;
}

}  // namespace

Result<Dims> matmul_shape(const Context& c, const Dims& a, const Dims& b) { return product_shape(c, a, b); }

Status infer_matmul(Context& c) {
  SERIN_CHECK(same_dtypes(c));
  if (!c.dims(0) || !c.dims(1)) return c.set(0, c.dtype(0), std::nullopt);
  SERIN_TRY(Dims result, product_shape(c, *c.dims(0), *c.dims(1)));
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_gemm(Context& c) {
  SERIN_CHECK(same_dtypes(c));
  if (!c.dims(0) || !c.dims(1)) return c.set(0, c.dtype(0), std::nullopt);
  Dims a = *c.dims(0), b = *c.dims(1);
  if (a.size() != 2 || b.size() != 2) return c.fail("operands have shapes {} and {}, both must be matrices", print(a), print(b));
  if (c.node().integer("transA", 0) != 0) std::swap(a[0], a[1]);
  if (c.node().integer("transB", 0) != 0) std::swap(b[0], b[1]);
  SERIN_TRY(Dims result, product_shape(c, std::move(a), std::move(b)));
  if (const Dims* bias = c.dims(2)) {
    const auto wide = broadcast(result, *bias);
    if (!wide || wide->size() != 2 || !unify((*wide)[0], result[0]) || !unify((*wide)[1], result[1]))
      return c.fail("bias has shape {}, which does not broadcast to {}", print(*bias), print(result));
  }
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_fused_matmul(Context& c) {
  SERIN_CHECK(same_dtypes(c));
  if (!c.dims(0) || !c.dims(1)) return c.set(0, c.dtype(0), std::nullopt);
  Dims a = *c.dims(0), b = *c.dims(1);
  const bool trans_a = c.node().integer("transA", 0) != 0, trans_b = c.node().integer("transB", 0) != 0;
  if ((trans_a && a.size() < 2) || (trans_b && b.size() < 2))
    return c.fail("operands have shapes {} and {}, a vector cannot be transposed", print(a), print(b));
  if (trans_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (trans_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
  SERIN_TRY(Dims result, product_shape(c, std::move(a), std::move(b)));
  return c.set(0, c.dtype(0), std::move(result));
}

}  // namespace serin::graph
