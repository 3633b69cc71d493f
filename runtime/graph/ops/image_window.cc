// Shape rules of the convolutions and pools beside Conv and Pool: ConvTranspose, DeformConv, Col2Im, MaxPoolWithIndices, MaxUnpool.

#include <algorithm>
#include <limits>

#include "runtime/graph/ops/families.h"
#include "runtime/graph/ops/image.h"
#include "runtime/graph/ops/window.h"

namespace serin::graph {
namespace {

Status check_images(const Context& c, const Dims& x) {
  if (x.size() >= 3) return {};
  return c.fail("input has shape {}, it needs a batch, channels and at least one spatial axis", print(x));
}

/// The spatial dimensions of the weight; nothing where one is not known.
Result<std::optional<std::vector<int64_t>>> kernel_of(const Context& c, const Dims& w) {
  std::vector<int64_t> kernel;
  for (size_t axis = 2; axis < w.size(); ++axis) {
    const auto size = w[axis].value();
    if (!size) return std::optional<std::vector<int64_t>>();
    if (*size < 1) return c.fail("weight has shape {}, the kernel is empty", print(w));
    kernel.push_back(*size);
  }
  const auto declared = c.node().integers("kernel_shape");
  if (!declared.empty() && declared != kernel) return c.fail("kernel_shape contradicts the weight's shape {}", print(w));
  return std::optional(std::move(kernel));
}

Result<int64_t> groups(const Context& c, std::string_view key) {
  const int64_t group = c.node().integer(key, 1);
  if (group < 1) return c.fail("{} is {}, it must be positive", key, group);
  return group;
}

Dims unknown_images(Context& c, size_t rank, const Dim& batch, const Dim& channels) {
  Dims dims = c.unknown_dims(rank);
  dims[0] = batch;
  dims[1] = channels;
  return dims;
}

/// Operand `i` has that shape as far as both are known.
Status expect(const Context& c, size_t i, std::string_view what, const Dims& wanted) {
  const Dims* have = c.dims(i);
  if (!have || agree(*have, wanted)) return {};
  return c.fail("{} has shape {}, it needs {}", what, print(*have), print(wanted));
}

}  // namespace

/// x [n, c, in...], weight [c, m / group, kernel...] -> [n, m, out...].
Status infer_conv_transpose(Context& c) {
  for (size_t i = 1; i < c.operands(); ++i) SERIN_CHECK(c.same_dtype(0, i));
  const Dims* x = c.dims(0);
  const Dims* w = c.dims(1);
  if (!x || !w) return c.set(0, c.dtype(0), std::nullopt);
  SERIN_CHECK(check_images(c, *x));
  if (w->size() != x->size()) return c.fail("weight has rank {}, input has {}", w->size(), x->size());
  if (!unify((*x)[1], (*w)[0])) return c.fail("weight has {} input channels, input has {}", (*w)[0].str(), (*x)[1].str());
  SERIN_TRY(const int64_t group, groups(c, "group"));
  if (const auto channels = unify((*x)[1], (*w)[0])->value(); channels && *channels % group != 0)
    return c.fail("{} groups do not divide {} channels", group, *channels);
  const Dim m = (*w)[1] * Dim(group);
  SERIN_CHECK(expect(c, 2, "bias", {m}));
  SERIN_TRY(auto kernel, kernel_of(c, *w));
  if (!kernel) return c.set(0, c.dtype(0), unknown_images(c, x->size(), (*x)[0], m));
  auto window = resolve_transposed_window(c.node(), std::span(*x).subspan(2), std::move(*kernel));
  if (!window) return c.fail("{}", window.error().message);
  Dims result{(*x)[0], m};
  result.insert(result.end(), window->output.begin(), window->output.end());
  return c.set(0, c.dtype(0), std::move(result));
}

/// x [n, c, h, w], weight [m, c / group, kh, kw], offsets [n, groups * kh * kw * 2, out...], bias, mask [n, groups * kh * kw, out...].
Status infer_deform_conv(Context& c) {
  for (size_t i = 1; i < c.operands(); ++i) SERIN_CHECK(c.same_dtype(0, i));
  const Dims* x = c.dims(0);
  const Dims* w = c.dims(1);
  if (!x || !w) return c.set(0, c.dtype(0), std::nullopt);
  if (x->size() != 4 || w->size() != 4)
    return c.fail("input has shape {}, weight {}; two spatial axes are supported", print(*x), print(*w));
  SERIN_TRY(const int64_t group, groups(c, "group"));
  SERIN_TRY(const int64_t offset_group, groups(c, "offset_group"));
  const auto channels = (*x)[1].value(), output = (*w)[0].value();
  if (channels && (*channels % group != 0 || *channels % offset_group != 0 || !unify((*w)[1], *channels / group)))
    return c.fail("weight {} in {} groups ({} of offsets) does not fit {} channels", print(*w), group, offset_group, *channels);
  if (output && *output % group != 0) return c.fail("weight has {} output channels, which {} groups do not divide", *output, group);
  SERIN_CHECK(expect(c, 3, "bias", {(*w)[0]}));
  SERIN_TRY(auto kernel, kernel_of(c, *w));
  if (!kernel) return c.set(0, c.dtype(0), unknown_images(c, 4, (*x)[0], (*w)[0]));
  const int64_t cells = (*kernel)[0] * (*kernel)[1];
  auto window = resolve_window(c.node(), std::span(*x).subspan(2), std::move(*kernel));
  if (!window) return c.fail("{}", window.error().message);
  SERIN_CHECK(expect(c, 2, "the offsets", {(*x)[0], offset_group * cells * 2, window->output[0], window->output[1]}));
  SERIN_CHECK(expect(c, 4, "the mask", {(*x)[0], offset_group * cells, window->output[0], window->output[1]}));
  return c.set(0, c.dtype(0), Dims{(*x)[0], (*w)[0], window->output[0], window->output[1]});
}

/// x [n, c * cells, blocks], image shape, block shape -> [n, c, image...].
Status infer_col2im(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  SERIN_CHECK(c.index_dtype(2));
  const Dims* x = c.dims(0);
  if (x && x->size() != 3) return c.fail("input has shape {}, it must be [n, channels * cells, blocks]", print(*x));
  const Dims* image = c.elements(1);
  const Dims* block = c.elements(2);
  const Dims* count = image ? nullptr : c.dims(1);
  const auto axes = image ? static_cast<int64_t>(image->size()) : count && count->size() == 1 ? (*count)[0].value() : std::nullopt;
  if (!axes || !Shape::fits(static_cast<size_t>(*axes) + 2)) return c.set(0, c.dtype(0), std::nullopt);
  if (block && static_cast<int64_t>(block->size()) != *axes) return c.fail("block_shape has {} elements for {} axes", block->size(), *axes);
  for (const auto& [key, length] : {std::pair("strides", *axes), std::pair("dilations", *axes), std::pair("pads", 2 * *axes)}) {
    const std::vector<int64_t> list = c.node().integers(key);
    const int64_t least = std::string_view(key) == "pads" ? 0 : 1;
    if (!list.empty() && static_cast<int64_t>(list.size()) != length)
      return c.fail("{} has {} elements, {} are needed", key, list.size(), length);
    for (const int64_t each : list) {
      if (each < least || each > std::numeric_limits<int32_t>::max()) return c.fail("{} has {}", key, each);
    }
  }
  Dims result = c.unknown_dims(static_cast<size_t>(*axes) + 2);
  if (x) result[0] = (*x)[0];
  if (image) std::ranges::copy(*image, result.begin() + 2);
  if (x && block) {
    const Dim cells = product(*block);
    if (cells.known() && (*cells.value() < 1 || ((*x)[1].known() && *(*x)[1].value() % *cells.value() != 0)))
      return c.fail("{} rows are not a multiple of the {} cells of a block", (*x)[1].str(), cells.str());
    result[1] = floor_div((*x)[1], cells);
  }
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_max_pool_with_indices(Context& c) {
  SERIN_CHECK(infer_pool(c));
  const ValueId values = c.node().outputs[0];
  return c.set(1, DType::kInt64, c.graph().value(values).type.shape);
}

/// The size that MaxPool had as its input, or what operand 2 says.
Status infer_max_unpool(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  SERIN_CHECK(check_images(c, *x));
  SERIN_CHECK(expect(c, 1, "the tensor of indices", *x));
  std::vector<int64_t> kernel = c.node().integers("kernel_shape");
  if (kernel.size() + 2 != x->size()) return c.fail("kernel_shape has {} elements for {} spatial axes", kernel.size(), x->size() - 2);
  for (const int64_t size : kernel) {
    if (size < 1 || size > std::numeric_limits<int32_t>::max()) return c.fail("kernel_shape has {}", size);
  }
  auto window = resolve_transposed_window(c.node(), std::span(*x).subspan(2), std::move(kernel));
  if (!window) return c.fail("{}", window.error().message);
  Dims result{(*x)[0], (*x)[1]};
  result.insert(result.end(), window->output.begin(), window->output.end());
  if (!c.has(2)) return c.set(0, c.dtype(0), std::move(result));
  const Dims* wanted = c.elements(2);
  if (wanted && wanted->size() != x->size()) return c.fail("output_shape has {} elements for rank {}", wanted->size(), x->size());
  return c.set(0, c.dtype(0), wanted ? *wanted : c.unknown_dims(x->size()));
}

}  // namespace serin::graph
