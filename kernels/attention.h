// attention.h: The description of one Attention for every backend: y = softmax(softcap(scale q k') + mask) v, head by head.
//
//   q 4-D [batch, q_heads, q_len, head]   or 3-D [batch, q_len, q_heads * head] (with the head counts as attributes)
//   k     [batch, kv_heads, kv_len, head] or     [batch, kv_len, kv_heads * head]; v likewise with v_head. Query head h reads kv head
//         h / (q_heads / kv_heads)
//   mask  broadcasts to [batch, q_heads, q_len, total]: bool (false: hidden) or added, of q's type or f32; keys beyond its end are hidden
//   past_key, past_value  [batch, kv_heads, past, head]: precede k and v; total = past + kv_len
//   nonpad [batch]: the number of keys of each sample that count
//
// In addition to ONNX's attributes:
//   masked_to_zero = 1          a query whose keys are all hidden gives zeros (as in torch); otherwise NaN (as in ONNX)
//   heads_inside = 1            4-D operands give y as [batch, q_len, q_heads, v_head]
//   q_view, k_view, v_view      the operand is a part [batch, heads, length, width] of a larger tensor: these four, then the first element,
//                               then the distance from one batch, one head, one row to the next (in elements)
#pragma once

#include <optional>
#include <string>

#include "kernels/backend.h"

namespace serin::kernels {

struct AttentionOperands {
  enum : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };
  enum : size_t { kY, kPresentKey, kPresentValue, kScores };
};

/// The addresses of an operand's vectors: element (batch, head, row, i) is at batch * b + head * h + row * r + i.
struct HeadStrides {
  int64_t b = 0, h = 0, r = 0;
};

/// An operand within a larger tensor.
struct HeadsView {
  int64_t batch = 0, heads = 0, rows = 0, width = 0, offset = 0;
  HeadStrides strides;
};

/// The part that is the same in every run.
struct AttentionOp {
  bool flat = false;          ///< 3-D operands
  bool heads_inside = false;  ///< of y
  std::optional<HeadsView> q_view, k_view, v_view;
  int64_t q_heads = 0, kv_heads = 0, head = 0, v_head = 0;
  double scale = 1, softcap = 0;
  bool causal = false, masked_to_zero = false;
  int64_t scores_mode = 0;  ///< the content of output 3: 0 q k', 1 after softcap, 2 after the mask, 3 after softmax
};

/// Nothing, with the reason in `why`, if attributes or shapes contradict each other.
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

/// Strides of the mask over [batch, head, query], 0 where it is broadcast; its columns are adjacent.
struct MaskStrides {
  int64_t b = 0, h = 0, q = 0, columns = 0;
  MaskStrides() = default;
  MaskStrides(const Shape& mask, const AttentionOp& op, const AttentionRun& run);
};

}  // namespace serin::kernels
