// attention.cc: Attention, a few queries at a time, without its scores ever being written out (simd/dense_attention.h). With `--precision bf16` the
// operands of both products are rounded (simd/dense_bf16_attention_avx512.cc); the softmax is computed in f32.
//
// The work is cut into one task for each sample and key head, and where those are few, for parts of the queries. A task packs the keys that it needs
// as panels; values are read as they lie, unless they are rounded or a head is no whole number of vectors. A past is first joined with what is new in the present, which
// the operator returns anyway.

#include "kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/dense_bf16.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

using Operands = AttentionOperands;

/// Rows of one kind for every (batch, head): the operand, or the present where there is a past.
struct Rows {
  const float* data;
  HeadStrides strides;
  const float* at(int64_t b, int64_t h) const { return data + b * strides.b + h * strides.h; }
};

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const Simd& simd, const AttentionLoops& loops, const AttentionOp& op, const OpDesc& desc, int threads)
      : loops_(loops), op_(op), width_(simd.width), threads_(threads) {
    std::vector<TensorView> bounds;
    bounds.reserve(desc.inputs.size());
    for (const TensorDesc& input : desc.inputs) bounds.push_back({input.dtype, input.shape, nullptr});
    const AttentionRun run(op, bounds);
    const int64_t panel = simd.dense->panel_width;
    query_words_ = loops.elements == 1 ? 0 : kQueryBlock * loops.words(op.head);
    key_words_ = packed_size(*simd.dense, loops.words(op.head), run.total);
    const int64_t values = loops.pack_values ? loops.words(run.total) * ((op.v_head + panel - 1) / panel * panel) : value_floats(run.total);
    worker_floats_ = (kAttentionScratch + query_words_ + key_words_ + values + 15) / 16 * 16;
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(worker_floats_ * threads_) * sizeof(float); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const AttentionRun run(op_, in);
    const Rows k =
        joined(stream, out, Operands::kPresentKey, in[Operands::kK], run.k_offset, run.k, operand(in, Operands::kPastKey), run, op_.head);
    const Rows v = joined(stream, out, Operands::kPresentValue, in[Operands::kV], run.v_offset, run.v, operand(in, Operands::kPastValue),
                          run, op_.v_head);
    if (run.batch == 0 || run.q_len == 0) return kOk;
    const int64_t heads = run.batch * op_.kv_heads, group = op_.q_heads / op_.kv_heads;
    const int64_t parts = std::clamp<int64_t>((int64_t{2} * threads_ + heads - 1) / heads, 1, threads_ == 1 ? 1 : (run.q_len + 31) / 32);
    parallel_for(stream, heads * parts, [&](int64_t task, int worker) {
      const int64_t b = task / parts / op_.kv_heads, h = task / parts % op_.kv_heads, part = task % parts;
      const int64_t each = (run.q_len + parts - 1) / parts, first = part * each, rows = std::min(each, run.q_len - first);
      if (rows <= 0) return;
      const int64_t keys = visible(in, run, b);
      float* const scratch = reinterpret_cast<float*>(stream.scratch) + worker * worker_floats_;
      float* const packed_keys = scratch + kAttentionScratch + query_words_;
      loops_.pack_keys(k.at(b, h), k.strides.r, keys, op_.head, packed_keys);
      AttentionRows rows_of{};
      rows_of.rows = rows, rows_of.keys = keys, rows_of.head = op_.head, rows_of.v_head = op_.v_head;
      rows_of.k = packed_keys, rows_of.scratch = scratch;
      rows_of.q_row = run.q.r, rows_of.y_row = run.y.r;
      rows_of.v = as_read(v.at(b, h), v.strides.r, keys, packed_keys + key_words_, &rows_of.v_row);
      rows_of.scale = static_cast<float>(op_.scale), rows_of.softcap = static_cast<float>(op_.softcap);
      rows_of.first_hidden = op_.causal ? run.past + first + 1 : std::numeric_limits<int32_t>::max();
      rows_of.masked_to_zero = op_.masked_to_zero;
      for (int64_t q = h * group; q < (h + 1) * group; ++q) {
        rows_of.q = in[Operands::kQ].as<const float>() + run.q_offset + b * run.q.b + q * run.q.h + first * run.q.r;
        rows_of.y = out[Operands::kY].as<float>() + b * run.y.b + q * run.y.h + first * run.y.r;
        set_mask(rows_of, in, run, b, q, first);
        loops_.attend(rows_of);
      }
    });
    return kOk;
  }

 private:
  int64_t padded_value() const { return (op_.v_head + width_ - 1) / width_ * width_; }
  int64_t value_floats(int64_t keys) const { return padded_value() == op_.v_head ? 0 : keys * padded_value(); }

  /// Values are rounded, or read a vector at a time: rows that end within one are copied to rows that do not.
  const float* as_read(const float* v, int64_t v_row, int64_t keys, float* scratch, int64_t* row) const {
    *row = v_row;
    if (loops_.pack_values) {
      loops_.pack_values(v, v_row, keys, op_.v_head, scratch);
      return scratch;
    }
    const int64_t padded = padded_value();
    if (padded == op_.v_head) return v;
    *row = padded;
    for (int64_t i = 0; i < keys; ++i) {
      std::memcpy(scratch + i * padded, v + i * v_row, static_cast<size_t>(op_.v_head) * sizeof(float));
      std::fill(scratch + i * padded + op_.v_head, scratch + (i + 1) * padded, 0.f);
    }
    return scratch;
  }

  /// Keys that sample b has at all.
  static int64_t visible(Inputs in, const AttentionRun& run, int64_t b) {
    const TensorView* const nonpad = operand(in, Operands::kNonpad);
    return nonpad ? std::clamp<int64_t>(nonpad->as<const int64_t>()[b], 0, run.total) : run.total;
  }

  void set_mask(AttentionRows& rows, Inputs in, const AttentionRun& run, int64_t b, int64_t h, int64_t first) const {
    const TensorView* const mask = operand(in, Operands::kMask);
    if (!mask) return;
    const MaskStrides strides(mask->shape, op_, run);
    const int64_t at = b * strides.b + h * strides.h + first * strides.q;
    rows.mask_row = strides.q, rows.mask_columns = strides.columns;
    if (mask->dtype == DType::kBool)
      rows.allowed = mask->as<const bool>() + at;
    else
      rows.mask = mask->as<const float>() + at;
  }

  /// Fills the present, where it is asked for: past, then new, with the heads outside.
  Rows joined(const Stream& stream, Outputs out, size_t present, const TensorView& fresh, int64_t offset, const HeadStrides& s,
              const TensorView* past, const AttentionRun& run, int64_t width) const {
    if (present >= out.size()) return {fresh.as<const float>() + offset, s};
    float* const target = out[present].as<float>();
    const auto bytes = static_cast<size_t>(width) * sizeof(float);
    parallel_for(stream, run.batch * op_.kv_heads, [&](int64_t i, int) {
      const float* const old = past ? past->as<const float>() + i * run.past * width : nullptr;
      float* const rows = target + i * run.total * width;
      if (old) std::memcpy(rows, old, static_cast<size_t>(run.past) * bytes);
      const float* const source = fresh.as<const float>() + offset + i / op_.kv_heads * s.b + i % op_.kv_heads * s.h;
      for (int64_t r = 0; r < run.kv_len; ++r) std::memcpy(rows + (run.past + r) * width, source + r * s.r, bytes);
    });
    return {target, {op_.kv_heads * run.total * width, run.total * width, width}};
  }

  const AttentionLoops& loops_;
  const AttentionOp op_;
  const int64_t width_;
  const int threads_;
  int64_t query_words_ = 0, key_words_ = 0;  // of scratch
  int64_t worker_floats_ = 0;
};

Prepared prepare(const Simd& simd, const AttentionLoops& loops, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Generic& generic = std::get<Generic>(desc.op);
  if (generic.name != "Attention") return refuse(why, "attention only");
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    const DType dtype = desc.inputs[i].dtype;
    const bool other = i == Operands::kNonpad || (i == Operands::kMask && dtype == DType::kBool);
    if (dtype != DType::kUndefined && dtype != DType::kFloat32 && !other) return refuse(why, "f32 only");
  }
  const auto op = attention_of(generic.attributes, desc.inputs, desc.outputs, why);
  if (!op) return nullptr;
  if (desc.outputs.size() > Operands::kScores) return refuse(why, "does not keep the scores that are asked for");
  const bool past = desc.inputs.size() > Operands::kPastKey && desc.inputs[Operands::kPastKey].dtype != DType::kUndefined;
  if (past && desc.outputs.size() <= Operands::kPresentValue) return refuse(why, "has a past, but no present to join it in");
  if (op->head < 1 || op->v_head < 1) return refuse(why, "heads of no elements");
  return std::make_unique<AttentionKernel>(simd, loops, *op, desc, std::max(context.threads, 1));
}

}  // namespace

Prepared attention(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  return prepare(simd, simd.dense->attention, desc, context, why);
}

Prepared attention_bf16(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Bf16Loops* const loops = bf16_loops();
  if (!loops || simd.width != 16) return refuse(why, "this machine does not multiply bf16");
  return prepare(simd, *loops->attention, desc, context, why);
}

}  // namespace serin::kernels::cpu
