// quant_rules.cc: shape rules of quantised operators and of what changes an element's type: results have the shape of the operand, of the product or of
// the convolution; the type is that of the zero point.

#include "kernels/narrow.h"
#include "runtime/graph/ops/families.h"
#include "runtime/graph/ops/quant.h"
#include "runtime/graph/ops/window.h"

namespace serin::graph {

Status infer_cast_like(Context& c) { return c.set(0, c.dtype(1), c.type(0).shape); }

Status infer_bit_cast(Context& c) {
  SERIN_TRY(const DType to, c.dtype_attribute("to"));
  const DType from = c.dtype(0);
  if (from == DType::kString || to == DType::kString) return c.fail("strings have no bits to look at");
  if (from != DType::kUndefined && kernels::dtype_bits(from) != kernels::dtype_bits(to))
    return c.fail("operand 0 is {}, it has not as many bits as {}", dtype_name(from), dtype_name(to));
  return c.set(0, to, c.type(0).shape);
}

namespace {

/// The scale fits x: one number, one for each index of `axis`, or one for each block along it. The zero point has the scale's shape.
Status check_granularity(const Context& c) {
  const int64_t block_size = c.node().integer("block_size", 0);
  if (block_size < 0) return c.fail("block_size is {}, it must be positive", block_size);
  const Dims* x = c.dims(0);
  const Dims* scale = c.dims(1);
  const Dims* zero = c.dims(2);
  if (scale && zero && !(*scale == *zero) && !(product(*scale) == Dim(1) && product(*zero) == Dim(1)))
    return c.fail("the zero point has shape {}, the scale {}", print(*zero), print(*scale));
  if (!x || !scale || product(*scale) == Dim(1)) return {};
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 1), x->size()));
  const auto at = static_cast<size_t>(axis);
  if (block_size == 0) {
    if (scale->size() != 1 || !unify((*scale)[0], (*x)[at]))
      return c.fail("the scale has shape {}, axis {} of {} needs [{}]", print(*scale), axis, print(*x), (*x)[at].str());
    return {};
  }
  if (scale->size() != x->size()) return c.fail("the scale has shape {}, blocks of {} need as many axes", print(*scale), print(*x));
  for (size_t i = 0; i < x->size(); ++i) {
    const Dim wanted = i == at ? ceil_div((*x)[i], block_size) : (*x)[i];
    if (!unify((*scale)[i], wanted))
      return c.fail("the scale has shape {}, blocks of {} along axis {} of {} need {} there", print(*scale), block_size, axis, print(*x),
                    wanted.str());
  }
  return {};
}

}  // namespace

Status infer_quantize_linear(Context& c) {
  SERIN_CHECK(check_granularity(c));
  DType to = c.has(2) ? c.dtype(2) : DType::kUInt8;
  if (c.node().attributes.contains("output_dtype")) {
    SERIN_TRY(const DType wanted, c.dtype_attribute("output_dtype"));
    if (c.has(2) && to != DType::kUndefined && to != wanted)
      return c.fail("output_dtype is {}, the zero point is {}", dtype_name(wanted), dtype_name(to));
    to = wanted;
  }
  return c.set(0, to, c.type(0).shape);
}

Status infer_dequantize_linear(Context& c) {
  SERIN_CHECK(c.same_dtype(0, 2));
  SERIN_CHECK(check_granularity(c));
  DType to = c.dtype(1);
  if (c.node().attributes.contains("output_dtype")) {
    SERIN_TRY(to, c.dtype_attribute("output_dtype"));
  }
  return c.set(0, to, c.type(0).shape);
}

Status infer_dynamic_quantize_linear(Context& c) {
  SERIN_CHECK(c.set(0, DType::kUInt8, c.type(0).shape));
  SERIN_CHECK(c.set(1, DType::kFloat32, Dims{}));
  return c.set(2, DType::kUInt8, Dims{});
}

namespace {

Status check_bytes(const Context& c, std::initializer_list<size_t> operands) {
  for (const size_t i : operands) {
    const DType dtype = c.dtype(i);
    if (dtype != DType::kInt8 && dtype != DType::kUInt8 && dtype != DType::kUndefined)
      return c.fail("operand {} is {}, it must be i8 or u8", i, dtype_name(dtype));
  }
  return {};
}

Status infer_matmul_of(Context& c, size_t a, size_t b, DType to) {
  if (!c.dims(a) || !c.dims(b)) return c.set(0, to, std::nullopt);
  SERIN_TRY(Dims result, matmul_shape(c, *c.dims(a), *c.dims(b)));
  return c.set(0, to, std::move(result));
}

}  // namespace

Status infer_matmul_integer(Context& c) {
  SERIN_CHECK(check_bytes(c, {0, 1}));
  SERIN_CHECK(c.same_dtype(0, 2));
  SERIN_CHECK(c.same_dtype(1, 3));
  return infer_matmul_of(c, 0, 1, DType::kInt32);
}

Status infer_qlinear_matmul(Context& c) {
  SERIN_CHECK(check_bytes(c, {0, 3, 7}));
  SERIN_CHECK(c.same_dtype(0, 2));
  SERIN_CHECK(c.same_dtype(3, 5));
  return infer_matmul_of(c, 0, 3, c.dtype(7));
}

Status infer_quantized_matmul(Context& c) {
  SERIN_CHECK(check_bytes(c, {0, 3}));
  return infer_matmul_of(c, 0, 3, c.has(7) ? c.dtype(8) : DType::kFloat32);
}

Status infer_dynamic_quantize_matmul(Context& c) {
  SERIN_CHECK(check_bytes(c, {1}));
  return infer_matmul_of(c, 0, 1, DType::kFloat32);
}

Status infer_matmul_nbits(Context& c) {
  const int64_t k = c.node().integer("K", 0), n = c.node().integer("N", 0);
  if (k < 1 || n < 1) return c.fail("K is {} and N is {}, they must be positive", k, n);
  if (!c.dims(0)) return c.set(0, c.dtype(0), std::nullopt);
  Dims result = *c.dims(0);
  if (result.empty() || !unify(result.back(), Dim(k))) return c.fail("cannot multiply {} by a matrix of {} rows", print(result), k);
  result.back() = n;
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_conv_integer(Context& c) {
  SERIN_CHECK(check_bytes(c, {0, 1}));
  SERIN_CHECK(c.same_dtype(0, 2));
  SERIN_CHECK(c.same_dtype(1, 3));
  return infer_conv_of(c, 0, 1, kNoOperand, DType::kInt32);
}

Status infer_qlinear_conv(Context& c) {
  SERIN_CHECK(check_bytes(c, {0, 3, 7}));
  SERIN_CHECK(c.same_dtype(0, 2));
  SERIN_CHECK(c.same_dtype(3, 5));
  return infer_conv_of(c, 0, 3, 8, c.has(13) ? c.dtype(13) : c.dtype(7));
}

Status infer_quantized_binary(Context& c) {
  if (!c.dims(0) || !c.dims(3)) return c.set(0, c.dtype(7), std::nullopt);
  auto result = broadcast(*c.dims(0), *c.dims(3));
  if (!result) return c.fail("shapes {} and {} do not broadcast", print(*c.dims(0)), print(*c.dims(3)));
  return c.set(0, c.dtype(7), std::move(*result));
}

Status infer_quantized_global_average_pool(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(4), std::nullopt);
  if (x->size() < 3) return c.fail("input has shape {}, it needs a batch, channels and at least one spatial axis", print(*x));
  const bool channels_last = c.node().integer("channels_last", 0) != 0;
  Dims result(x->size(), Dim(1));
  result[0] = (*x)[0];
  const size_t channels = channels_last ? x->size() - 1 : 1;
  result[channels] = (*x)[channels];
  return c.set(0, c.dtype(4), std::move(result));
}

Status infer_quantized_max_pool(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (x->size() < 3) return c.fail("input has shape {}, it needs a batch, at least one spatial axis and channels", print(*x));
  auto window = resolve_window(c.node(), std::span(*x).subspan(1, x->size() - 2), {});
  if (!window) return c.fail("{}", window.error().message);
  Dims result{(*x)[0]};
  result.insert(result.end(), window->output.begin(), window->output.end());
  result.push_back(x->back());
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_quantized_lookup(Context& c) { return c.set(0, c.dtype(1), c.type(0).shape); }

}  // namespace serin::graph
