// conv_blocked.cc: decides whether a convolution can run on channel blocks, and which of Serin's kernels computes it.

#include "kernels/cpu/conv_blocked.h"

#include <algorithm>
#include <limits>

#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

std::optional<BlockedConv> BlockedConv::of(const OpDesc& desc, int64_t b, std::string& why) {
  const Conv& op = std::get<Conv>(desc.op);
  const auto no = [&why](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  if (!is_f32(desc, why)) return std::nullopt;
  if (desc.inputs.size() != 2u + op.bias + op.epilogue.residual) return no("unexpected number of inputs");
  const Shape& x = desc.inputs[0].shape;
  const Shape& weight = desc.inputs[1].shape;
  const Shape& y = desc.outputs[0].shape;
  if (y.rank() != 5 || y[4] != b) return no("not in channel blocks");
  if (is_bounded(desc)) return no("the shape is known only at run time");
  if (weight.rank() != 4 || op.strides.size() != 2 || op.dilations.size() != 2 || op.pads.size() != 4) return no("only two spatial axes");
  if (!desc.inputs[1].constant || (op.bias && !desc.inputs[2].constant)) return no("weight or bias is not constant");
  const auto positive = [](int64_t value) { return value > 0; };
  if (!std::ranges::all_of(op.strides, positive) || !std::ranges::all_of(op.dilations, positive)) return no("a stride or dilation below 1");
  if (op.group < 1 || weight[0] % op.group != 0 || weight.elements() == 0) return no("an empty weight, or groups that do not divide it");

  BlockedConv conv{.b = b,
                   .n = y[0],
                   .c = weight[1] * op.group,
                   .h = x[2],
                   .w = x[3],
                   .m = weight[0],
                   .oh = y[2],
                   .ow = y[3],
                   .group = op.group,
                   .kernel_h = weight[2],
                   .kernel_w = weight[3],
                   .stride_h = op.strides[0],
                   .stride_w = op.strides[1],
                   .dilation_h = op.dilations[0],
                   .dilation_w = op.dilations[1],
                   .pad_h = op.pads[0],
                   .pad_w = op.pads[1],
                   .pad_end_h = op.pads[2],
                   .pad_end_w = op.pads[3],
                   .plain_x = x.rank() == 4,
                   .bias = op.bias,
                   .epilogue = op.epilogue};
  const Shape blocked{conv.n, conv.x_blocks(), conv.h, conv.w, b}, plain{conv.n, conv.c, conv.h, conv.w};
  if (!(x == (conv.plain_x ? plain : blocked)) || y[1] != conv.y_blocks()) return no("the weight does not fit x and y");
  if (std::ranges::any_of(op.pads, [](int64_t pad) { return pad < 0; })) return no("negative pads");
  if (op.epilogue.residual && !(desc.inputs.back().shape == y)) return no("the residual is broadcast");
  if (conv.plain_x && (conv.group > 1 || conv.dilation_w != 1)) return no("groups or dilation over a plain x");
  return conv;
}

BlockedActivation::BlockedActivation(const Simd& simd, const Epilogue& epilogue) : alpha_(epilogue.alpha), beta_(epilogue.beta) {
  Epilogue without_residual = epilogue;
  without_residual.residual = false;
  const std::optional<RowFinish> clamp = clamp_of(without_residual);
  clamped_ = clamp.has_value();
  low_ = clamp ? clamp->low : -std::numeric_limits<float>::infinity();
  high_ = clamp ? clamp->high : std::numeric_limits<float>::infinity();
  if (!clamp) loop_ = simd.unary(epilogue.activation);
}

PackedBuffer packed_bias(PrepareContext& context, const OpDesc& desc, const BlockedConv& conv) {
  if (!conv.bias) return nullptr;
  const int64_t count = conv.y_blocks() * conv.b;
  return packed_floats(context, desc.inputs[2], "bias_b" + std::to_string(conv.b), count, [&](const float* bias, float* to) {
    std::copy_n(bias, conv.m, to);
    std::fill(to + conv.m, to + count, 0.f);
  });
}

Prepared conv_blocked(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const std::optional<BlockedConv> conv = BlockedConv::of(desc, simd.blocked->width, why);
  if (!conv) return nullptr;
  if (!BlockedActivation(simd, conv->epilogue).known()) return refuse(why, "no vector code for the activation");
  if (conv->depthwise() && !conv->plain_x && !conv->epilogue.residual) return conv_blocked_depthwise(simd, desc, *conv, context);
  if (conv->depthwise() && conv->c > 1) return refuse(why, "a depthwise convolution of a plain x, or with a residual");
  const BlockedProducts& products = simd.blocked->products;
  if (Prepared winograd = conv_blocked_winograd(simd, products, desc, *conv, context, why)) return winograd;
  why.clear();
  return conv_blocked_direct(simd, products, desc, *conv, context);
}

Prepared conv_blocked_bf16(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const BlockedProducts* const products = bf16_products();
  if (!products || simd.blocked->width != 16) return refuse(why, "this machine does not multiply bf16");
  const std::optional<BlockedConv> conv = BlockedConv::of(desc, simd.blocked->width, why);
  if (!conv) return nullptr;
  if (!BlockedActivation(simd, conv->epilogue).known()) return refuse(why, "no vector code for the activation");
  if (conv->depthwise()) return refuse(why, "a depthwise convolution has no sums over channels");
  if (Prepared winograd = conv_blocked_winograd(simd, *products, desc, *conv, context, why)) return winograd;
  why.clear();
  return conv_blocked_direct(simd, *products, desc, *conv, context);
}

const BlockedProducts* bf16_products() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return &kBlockedBf16Avx512;
#endif
  return nullptr;
}

}  // namespace serin::kernels::cpu
