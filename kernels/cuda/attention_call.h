// attention_call.h: The parameters of the attention kernels, and the terms of padding and mask that are added to a score.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
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

/// The value that the mask adds at its element `at`.
template <class T>
__device__ compute_t<T> mask_value(const AttentionCall<T>& c, int64_t at) {
  using C = compute_t<T>;
  if (c.mask_type == DType::kBool) return static_cast<const bool*>(c.mask)[at] ? C(0) : -std::numeric_limits<C>::infinity();
  if (c.mask_type == DType::kFloat32) return static_cast<const float*>(c.mask)[at];
  return load(static_cast<const T*>(c.mask)[at]);
}

/// The number of a sample's keys that any query sees.
template <class T>
__device__ int64_t keys_in_use(const AttentionCall<T>& c, int64_t b) {
  int64_t keys = c.total;
  if (c.nonpad && c.nonpad[b] < keys) keys = c.nonpad[b];
  if (c.mask && c.mask_at.columns < keys) keys = c.mask_at.columns;
  return keys;
}

/// Added to a key's scores for every query: the mask if it is the same for all of them, minus infinity after the keys in use.
template <class T>
__device__ compute_t<T> key_bias(const AttentionCall<T>& c, int64_t b, int64_t h, int64_t key, int64_t in_use) {
  if (key >= in_use) return -std::numeric_limits<compute_t<T>>::infinity();
  return c.mask && c.mask_at.q == 0 ? mask_value(c, b * c.mask_at.b + h * c.mask_at.h + key) : compute_t<T>(0);
}

/// The start of the mask's row for a query.
template <class T>
__device__ int64_t mask_row(const AttentionCall<T>& c, int64_t b, int64_t h, int64_t query) {
  return b * c.mask_at.b + h * c.mask_at.h + query * c.mask_at.q;
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

/// Whether all addresses and steps are multiples of kElements elements.
template <int kElements, class T>
bool are_multiples(std::initializer_list<const T*> addresses, std::initializer_list<HeadStrides> strides) {
  return std::ranges::all_of(addresses, [](const T* each) { return reinterpret_cast<uintptr_t>(each) % (kElements * sizeof(T)) == 0; }) &&
         std::ranges::all_of(strides, [](const HeadStrides& each) {
           return each.b % kElements == 0 && each.h % kElements == 0 && each.r % kElements == 0;
         });
}

/// Whether rows of operands, or of the result, may be read or written in packs of kElements elements.
template <int kElements, class T>
bool loads_packs(const AttentionCall<T>& c) {
  return c.head % kElements == 0 && c.v_head % kElements == 0 &&
         are_multiples<kElements, T>({c.q, c.k, c.v, c.past_k, c.past_v}, {c.q_at, c.k_at, c.v_at}) &&
         (!c.past_k || are_multiples<kElements, T>({}, {c.past_k_at, c.past_v_at}));
}
template <int kElements, class T>
bool stores_packs(const AttentionCall<T>& c) {
  return c.v_head % kElements == 0 && are_multiples<kElements, T>({c.y}, {c.y_at});
}

/// The first check of every row of the table; nothing, with the reason in `why`, for operators that none of them supports.
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
