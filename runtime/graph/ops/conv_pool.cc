// Shape rules of convolutions and pools: x [n, c, spatial...], weight [o, c / group, kernel...].

#include <algorithm>

#include "runtime/graph/ops/families.h"
#include "runtime/graph/ops/quant.h"
#include "runtime/graph/ops/window.h"

namespace serin::graph {
namespace {

Status check_float(const Context& c) {
  switch (c.dtype(0)) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kUndefined: return {};
    default: return c.fail("operand 0 is {}, it must be a floating point type", dtype_name(c.dtype(0)));
  }
}

Status check_channels(const Context& c, const Dims& x, const Dims& w) {
  const int64_t group = c.node().integer("group", 1);
  if (group < 1) return c.fail("group is {}, it must be positive", group);
  const auto input = x[1].value(), per_group = w[1].value(), output = w[0].value();
  if (per_group && input && (*input % group != 0 || *input / group != *per_group)) {
    if (group == 1) return c.fail("weight has {} channels, input has {}", *per_group, *input);
    return c.fail("weight has {} channels per group in {} groups, input has {}", *per_group, group, *input);
  }
  if (output && *output % group != 0) return c.fail("weight has {} output channels, which {} groups do not divide", *output, group);
  return {};
}

Status check_bias(const Context& c, const Dims* bias, const Dim& channels) {
  if (!bias || (bias->size() == 1 && unify((*bias)[0], channels))) return {};
  return c.fail("bias has shape {}, it needs [{}]", print(*bias), channels.str());
}

/// [n, spatial..., c] as [n, c, spatial...], and back.
Dims channels_first(const Dims& dims) {
  Dims result = dims;
  std::rotate(result.begin() + 1, result.end() - 1, result.end());
  return result;
}
Dims channels_last(const Dims& dims) {
  Dims result = dims;
  std::rotate(result.begin() + 1, result.begin() + 2, result.end());
  return result;
}

/// The result's shape, channels first; nothing where the kernel's size is not known: only n and c are true then.
Result<Dims> conv_dims(Context& c, const Dims& x, const Dims& w, const Dims* bias) {
  if (x.size() < 3) return c.fail("input has shape {}, it needs a batch, channels and at least one spatial axis", print(x));
  if (w.size() != x.size()) return c.fail("weight has rank {}, input has {}", w.size(), x.size());
  SERIN_CHECK(check_channels(c, x, w));
  SERIN_CHECK(check_bias(c, bias, w[0]));

  std::vector<int64_t> kernel;
  for (size_t axis = 2; axis < w.size(); ++axis) {
    const auto size = w[axis].value();
    if (!size) {
      Dims dims = c.unknown_dims(x.size());
      dims[0] = x[0];
      dims[1] = w[0];
      return dims;
    }
    if (*size < 1) return c.fail("weight has shape {}, the kernel is empty", print(w));
    kernel.push_back(*size);
  }
  const auto declared = c.node().integers("kernel_shape");
  if (!declared.empty() && declared != kernel) return c.fail("kernel_shape contradicts the weight's shape {}", print(w));
  auto window = resolve_window(c.node(), std::span(x).subspan(2), std::move(kernel));
  if (!window) return c.fail("{}", window.error().message);
  Dims result{x[0], w[0]};
  result.insert(result.end(), window->output.begin(), window->output.end());
  return result;
}

}  // namespace

Status infer_conv_of(Context& c, size_t x, size_t weight, size_t bias, DType to) {
  const Dims* input = c.dims(x);
  const Dims* filters = c.dims(weight);
  const Dims* added = bias == kNoOperand ? nullptr : c.dims(bias);
  if (!input || !filters) return c.set(0, to, std::nullopt);
  const bool last = c.node().integer("channels_last", 0) != 0 && input->size() > 2;
  SERIN_TRY(Dims result, conv_dims(c, last ? channels_first(*input) : *input, *filters, added));
  return c.set(0, to, last ? channels_last(result) : std::move(result));
}

Status infer_conv(Context& c) {
  SERIN_CHECK(check_float(c));
  for (size_t i = 1; i < c.operands(); ++i) SERIN_CHECK(c.same_dtype(0, i));
  const Dims* residual = c.dims(3);
  if (residual && c.dims(0) && residual->size() != c.dims(0)->size())
    return c.fail("residual has shape {}, input has {}", print(*residual), print(*c.dims(0)));
  return infer_conv_of(c, 0, 1, 2, c.dtype(0));
}

Status infer_pool(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (x->size() < 3) return c.fail("input has shape {}, it needs a batch, channels and at least one spatial axis", print(*x));
  auto window = resolve_window(c.node(), std::span(*x).subspan(2), {});
  if (!window) return c.fail("{}", window.error().message);
  for (size_t i = 0; i < window->pads.size(); ++i) {
    const size_t axis = i % window->kernel.size();
    const int64_t extent = (window->kernel[axis] - 1) * window->dilations[axis] + 1;
    if (window->pads[i] >= extent)
      return c.fail("padding {} is not smaller than the kernel, which covers {}: a window would see nothing", window->pads[i], extent);
  }
  Dims result{(*x)[0], (*x)[1]};
  result.insert(result.end(), window->output.begin(), window->output.end());
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_global_pool(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (x->size() < 3) return c.fail("input has shape {}, it needs a batch, channels and at least one spatial axis", print(*x));
  Dims result(x->size(), Dim(1));
  result[0] = (*x)[0];
  result[1] = (*x)[1];
  return c.set(0, c.dtype(0), std::move(result));
}

}  // namespace serin::graph
