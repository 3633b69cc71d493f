// attention.h: what one Attention is asked to do, for every backend: y = softmax(softcap(scale q k') + mask) v, head by head.
//
//   q 4-D [batch, q_heads, q_len, head]   or 3-D [batch, q_len, q_heads * head] (with the head counts as attributes)
//   k     [batch, kv_heads, kv_len, head] or     [batch, kv_len, kv_heads * head]; v likewise with v_head. Query head h reads kv head
//         h / (q_heads / kv_heads)
//   mask  broadcasts to [batch, q_heads, q_len, total]: bool (false: not looked at) or added, of q's type or f32; shorter than total: nothing beyond its end is looked at
//   past_key, past_value  [batch, kv_heads, past, head]: stand before k and v; total = past + kv_len
//   nonpad [batch]: how many keys of each sample count
//
// Beside ONNX's attributes:
//   masked_to_zero = 1          a query that may look at nothing gives zeros (torch's meaning); else NaN (ONNX's)
//   heads_inside = 1            4-D operands give y as [batch, q_len, q_heads, v_head]
//   q_view, k_view, v_view      the operand is a larger tensor of which [batch, heads, length, width] is part: these four, then the first element,
//                               then from one batch, one head, one row to the next (in elements)
#pragma once

#include <optional>
#include <string>

#include "kernels/backend.h"

namespace serin::kernels {

struct AttentionOperands {
  enum : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };
  enum : size_t { kY, kPresentKey, kPresentValue, kScores };
};

/// Where the vectors of one operand lie: element (batch, head, row, i) at batch * b + head * h + row * r + i.
struct HeadStrides {
  int64_t b = 0, h = 0, r = 0;
};

/// An operand within a larger tensor.
struct HeadsView {
  int64_t batch = 0, heads = 0, rows = 0, width = 0, offset = 0;
  HeadStrides strides;
};

/// What does not change from run to run.
struct AttentionOp {
  bool flat = false;          ///< 3-D operands
  bool heads_inside = false;  ///< of y
  std::optional<HeadsView> q_view, k_view, v_view;
  int64_t q_heads = 0, kv_heads = 0, head = 0, v_head = 0;
  double scale = 1, softcap = 0;
  bool causal = false, masked_to_zero = false;
  int64_t scores_mode = 0;  ///< what output 3 shows: 0 q k', 1 after softcap, 2 after the mask, 3 after softmax
};

/// Nothing, with the reason in `why`, where attributes or shapes contradict each other.
std::optional<AttentionOp> attention_of(const Attributes& attributes, std::span<const TensorDesc> inputs,
                                        std::span<const TensorDesc> outputs, std::string& why);

/// The sizes of one run.
struct AttentionRun {
  int64_t batch, q_len, kv_len, past, total;
  int64_t q_offset = 0, k_offset = 0, v_offset = 0;  ///< of the first element
  HeadStrides q, k, v, y, past_k, past_v, present_k, present_v;

  AttentionRun(const AttentionOp& op, std::span<const TensorView> in);
  AttentionRun(const AttentionOp& op, std::span<const TensorDesc> in);  ///< the largest
};

/// Strides of the mask over [batch, head, query], 0 where it is broadcast; its columns lie side by side.
struct MaskStrides {
  int64_t b = 0, h = 0, q = 0, columns = 0;
  MaskStrides() = default;
  MaskStrides(const Shape& mask, const AttentionOp& op, const AttentionRun& run);
};

}  // namespace serin::kernels
