// Shape rules of operators that work element by element: the result has the operand's shape, or what the operands broadcast to.

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

Result<std::optional<Dims>> broadcast_operands(const Context& c) {
  std::optional<Dims> result;
  for (size_t i = 0; i < c.operands(); ++i) {
    if (!c.has(i)) continue;
    const Dims* x = c.dims(i);
    if (!x) return std::optional<Dims>();
    const auto wider = result ? broadcast(*result, *x) : std::optional(*x);
    if (!wider) return c.fail("shapes {} and {} do not broadcast", print(*result), print(*x));
    result = wider;
  }
  return result;
}

DType first_dtype(const Context& c) {
  for (size_t i = 0; i < c.operands(); ++i) {
    if (c.dtype(i) != DType::kUndefined) return c.dtype(i);
  }
  return DType::kUndefined;
}

Status operands_have_one_dtype(const Context& c) {
  for (size_t i = 1; i < c.operands(); ++i) SERIN_CHECK(c.same_dtype(0, i));
  return {};
}

Status require_bool(const Context& c, size_t operand) {
  if (c.dtype(operand) == DType::kBool || c.dtype(operand) == DType::kUndefined) return {};
  return c.fail("operand {} is {}, it must be bool", operand, dtype_name(c.dtype(operand)));
}

}  // namespace

Status infer_unary(Context& c) { return c.set(0, c.dtype(0), c.type(0).shape); }

Status infer_not(Context& c) {
  SERIN_CHECK(require_bool(c, 0));
  return infer_unary(c);
}

Status infer_predicate(Context& c) { return c.set(0, DType::kBool, c.type(0).shape); }

Status infer_cast(Context& c) {
  SERIN_TRY(const DType to, c.dtype_attribute("to"));
  return c.set(0, to, c.type(0).shape);
}

Status infer_clip(Context& c) {
  SERIN_CHECK(operands_have_one_dtype(c));
  return infer_unary(c);
}

Status infer_arithmetic(Context& c) {
  SERIN_CHECK(operands_have_one_dtype(c));
  SERIN_TRY(auto dims, broadcast_operands(c));
  return c.set(0, first_dtype(c), std::move(dims));
}

Status infer_pow(Context& c) {
  SERIN_TRY(auto dims, broadcast_operands(c));  // the exponent may have a type of its own
  return c.set(0, c.dtype(0), std::move(dims));
}

Status infer_comparison(Context& c) {
  SERIN_CHECK(operands_have_one_dtype(c));
  SERIN_TRY(auto dims, broadcast_operands(c));
  return c.set(0, DType::kBool, std::move(dims));
}

Status infer_logic(Context& c) {
  SERIN_CHECK(require_bool(c, 0));
  SERIN_CHECK(require_bool(c, 1));
  return infer_comparison(c);
}

Status infer_where(Context& c) {
  SERIN_CHECK(require_bool(c, 0));
  SERIN_CHECK(c.same_dtype(1, 2));
  SERIN_TRY(auto dims, broadcast_operands(c));
  return c.set(0, c.dtype(1) == DType::kUndefined ? c.dtype(2) : c.dtype(1), std::move(dims));
}

Status infer_cumsum(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  if (const Dims* axis = c.elements(1); axis && c.dims(0) && axis->size() == 1 && axis->front().known()) {
    SERIN_CHECK(c.axis(*axis->front().value(), c.dims(0)->size()));
  }
  return infer_unary(c);
}

}  // namespace serin::graph
