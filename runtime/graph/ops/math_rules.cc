// math_rules.cc: shape rules of one family: functions of single elements, bits, windows, transforms, random numbers.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

namespace {

bool is_whole_number(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUInt64; }

}  // namespace

Status infer_bits(Context& c) {
  for (size_t i = 0; i < c.operands(); ++i) {
    if (c.dtype(i) != DType::kUndefined && !is_whole_number(c.dtype(i)))
      return c.fail("operand {} is {}, it must be an integer", i, dtype_name(c.dtype(i)));
  }
  return infer_arithmetic(c);
}

/// The slope broadcasts to x, never x to the slope.
Status infer_prelu(Context& c) {
  SERIN_CHECK(c.same_dtype(0, 1));
  const Dims *x = c.dims(0), *slope = c.dims(1);
  if (!x || !slope) return infer_unary(c);
  const auto wide = broadcast(*x, *slope);
  if (!wide || wide->size() != x->size()) return c.fail("slope has shape {}, which does not broadcast to {}", print(*slope), print(*x));
  return c.set(0, c.dtype(0), *x);
}

Status infer_det(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (x->size() < 2 || !unify((*x)[x->size() - 1], (*x)[x->size() - 2])) return c.fail("needs square matrices, got {}", print(*x));
  return c.set(0, c.dtype(0), Dims(x->begin(), x->end() - 2));
}

Status infer_eye_like(Context& c) {
  SERIN_TRY(const DType dtype, c.dtype_attribute("dtype", c.dtype(0)));
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, dtype, std::nullopt);
  if (x->size() != 2) return c.fail("needs a matrix, got {}", print(*x));
  return c.set(0, dtype, *x);
}

Status infer_random(Context& c) {
  SERIN_TRY(const DType dtype, c.dtype_attribute("dtype", DType::kFloat32));
  const auto shape = c.node().integers("shape");
  return c.set(0, dtype, Dims(shape.begin(), shape.end()));
}

Status infer_random_like(Context& c) {
  SERIN_TRY(const DType dtype, c.dtype_attribute("dtype", c.dtype(0)));
  return c.set(0, dtype, c.type(0).shape);
}

Status infer_multinomial(Context& c) {
  SERIN_TRY(const DType dtype, c.dtype_attribute("dtype", DType::kInt32));
  if (dtype != DType::kInt32 && dtype != DType::kInt64) return c.fail("dtype is {}, it must be i32 or i64", dtype_name(dtype));
  const Dims* x = c.dims(0);
  if (x && x->size() != 2) return c.fail("needs [batch, classes], got {}", print(*x));
  const Dim batch = x ? (*x)[0] : c.unknown_dim();
  return c.set(0, dtype, Dims{batch, c.node().integer("sample_size", 1)});
}

}  // namespace serin::graph
