// attention_call.h: what the kernels of attention are given, and what happens to a score: softcap, causal order, padding, mask.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/attention.h"
#include "kernels/cuda/launch.h"
#include "kernels/functors.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cuda {

template <class T>
struct AttentionCall {
  const T *q, *k, *v, *past_k, *past_v;
  const void* mask;
  const int64_t* nonpad;
  T* y;
  DType mask_type;
  bool causal, masked_to_zero;
  int64_t batch, q_heads, kv_heads, q_len, past, total, head, v_head;
  HeadStrides q_at, k_at, v_at, y_at, past_k_at, past_v_at;
  MaskStrides mask_at;
  float scale, softcap;
};

/// The score of query i for key j, both within their sequence; minus infinity where it may not look there.
template <class T>
__device__ compute_t<T> masked(const AttentionCall<T>& c, int64_t b, int64_t h, int64_t i, int64_t j, compute_t<T> score) {
  using C = compute_t<T>;
  constexpr C kMinusInfinity = -std::numeric_limits<C>::infinity();
  if (c.softcap > 0) score = static_cast<C>(c.softcap) * std::tanh(score / static_cast<C>(c.softcap));
  if (c.causal && j > i + c.past) return kMinusInfinity;
  if (c.nonpad && j >= c.nonpad[b]) return kMinusInfinity;
  if (!c.mask) return score;
  if (j >= c.mask_at.columns) return kMinusInfinity;
  const int64_t at = b * c.mask_at.b + h * c.mask_at.h + i * c.mask_at.q + j;
  if (c.mask_type == DType::kBool) return static_cast<const bool*>(c.mask)[at] ? score : kMinusInfinity;
  if (c.mask_type == DType::kFloat32) return score + static_cast<const float*>(c.mask)[at];
  return score + load(static_cast<const T*>(c.mask)[at]);
}

template <class T>
AttentionCall<T> attention_call(const AttentionOp& op, Inputs in, Outputs out) {
  using Operands = AttentionOperands;
  const AttentionRun sizes(op, in);
  AttentionCall<T> c{};
  c.q = in[Operands::kQ].as<const T>() + sizes.q_offset;
  c.k = in[Operands::kK].as<const T>() + sizes.k_offset, c.v = in[Operands::kV].as<const T>() + sizes.v_offset;
  c.past_k = operand_as<T>(in, Operands::kPastKey), c.past_v = operand_as<T>(in, Operands::kPastValue);
  c.nonpad = operand_as<int64_t>(in, Operands::kNonpad);
  if (const TensorView* mask = operand(in, Operands::kMask)) {
    c.mask = mask->data;
    c.mask_type = mask->dtype;
    c.mask_at = MaskStrides(mask->shape, op, sizes);
  }
  c.y = out[Operands::kY].as<T>();
  c.causal = op.causal, c.masked_to_zero = op.masked_to_zero;
  c.batch = sizes.batch, c.q_heads = op.q_heads, c.kv_heads = op.kv_heads;
  c.q_len = sizes.q_len, c.past = sizes.past, c.total = sizes.total, c.head = op.head, c.v_head = op.v_head;
  c.q_at = sizes.q, c.k_at = sizes.k, c.v_at = sizes.v, c.y_at = sizes.y, c.past_k_at = sizes.past_k, c.past_v_at = sizes.past_v;
  c.scale = static_cast<float>(op.scale), c.softcap = static_cast<float>(op.softcap);
  return c;
}

/// What every row of the table asks first; nothing, with the reason in `why`, for what none of them does.
inline std::optional<AttentionOp> plain_attention_of(const OpDesc& desc, std::string& why) {
  const auto op = attention_of(std::get<Generic>(desc.op).attributes, desc.inputs, desc.outputs, why);
  if (!op) return std::nullopt;
  const auto no = [&why](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  if (desc.outputs.size() > 1) return no("it shows present keys or scores");
  if (AttentionRun(*op, desc.inputs).batch * op->q_heads > 65535) return no("more than 65,535 heads in one batch");
  return op;
}

}  // namespace serin::kernels::cuda
