// attention.cc: Attention, one query of one head at a time: scores against all keys, softmax, the values' weighted sum; in double.

#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

namespace {

using Operands = AttentionOperands;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// past and new rows, one after the other, as if they were one matrix.
template <class T>
struct Joined {
  const T *past, *fresh;  // of one batch and kv head
  int64_t past_rows, past_stride, fresh_stride;
  const T* row(int64_t i) const { return i < past_rows ? past + i * past_stride : fresh + (i - past_rows) * fresh_stride; }
};

template <class T>
Joined<T> joined(const TensorView& fresh, int64_t offset, const HeadStrides& s, const TensorView* past, const HeadStrides& p,
                 const AttentionRun& run, int64_t b, int64_t h) {
  return {past ? past->as<const T>() + b * p.b + h * p.h : nullptr, fresh.as<const T>() + offset + b * s.b + h * s.h, run.past, p.r, s.r};
}

/// What is added to the score of key j by query i: 0, a number, or minus infinity.
template <class T>
class Mask {
 public:
  Mask(const AttentionOp& op, const AttentionRun& run, Inputs in)
      : op_(op), run_(run), mask_(operand(in, Operands::kMask)), nonpad_(operand(in, Operands::kNonpad)) {
    if (mask_) strides_ = MaskStrides(mask_->shape, op, run);
  }
  /// Whether any query sees key j; if not, the key and its value may be anything.
  bool counts(int64_t b, int64_t j) const {
    return !(nonpad_ && j >= nonpad_->as<const int64_t>()[b]) && !(mask_ && j >= strides_.columns);
  }
  double operator()(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (op_.causal && j > i + run_.past) return kMinusInfinity;
    if (!counts(b, j)) return kMinusInfinity;
    if (!mask_) return 0;
    const int64_t at = b * strides_.b + h * strides_.h + i * strides_.q + j;
    if (mask_->dtype == DType::kBool) return mask_->as<const bool>()[at] ? 0 : kMinusInfinity;
    if (mask_->dtype == DType::kFloat32) return widen(mask_->as<const float>()[at]);
    return widen(mask_->as<const T>()[at]);
  }

 private:
  const AttentionOp& op_;
  const AttentionRun& run_;
  const TensorView* mask_;
  const TensorView* nonpad_;
  MaskStrides strides_;
};

/// In place. What is masked whole stays NaN, or becomes 0.
void softmax(std::span<double> scores, bool masked_to_zero) {
  const double max = scores.empty() ? 0 : *std::ranges::max_element(scores);
  if (max == kMinusInfinity && masked_to_zero) {
    std::ranges::fill(scores, 0.0);
    return;
  }
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - max);
  for (double& score : scores) score /= sum;
}

template <class T>
void store_scores(TensorView* out, int64_t row, std::span<const double> scores) {
  for (size_t j = 0; out && j < scores.size(); ++j)
    out->as<T>()[row * static_cast<int64_t>(scores.size()) + static_cast<int64_t>(j)] = narrow<T>(scores[j]);
}

template <class T>
Fault run(const AttentionOp& op, const AttentionRun& run, Stream& stream, Inputs in, Outputs out) {
  const Mask<T> mask(op, run, in);
  TensorView* const shown = out.size() > Operands::kScores ? &out[Operands::kScores] : nullptr;
  const std::span scores(reinterpret_cast<double*>(stream.scratch), static_cast<size_t>(run.total));
  for (int64_t b = 0; b < run.batch; ++b) {
    for (int64_t h = 0; h < op.q_heads; ++h) {
      const int64_t kv = h / (op.q_heads / op.kv_heads);
      const auto keys = joined<T>(in[Operands::kK], run.k_offset, run.k, operand(in, Operands::kPastKey), run.past_k, run, b, kv);
      const auto values = joined<T>(in[Operands::kV], run.v_offset, run.v, operand(in, Operands::kPastValue), run.past_v, run, b, kv);
      for (int64_t i = 0; i < run.q_len; ++i) {
        const T* const query = in[Operands::kQ].as<const T>() + run.q_offset + b * run.q.b + h * run.q.h + i * run.q.r;
        const int64_t row = (b * op.q_heads + h) * run.q_len + i;
        const auto show = [&](int64_t mode) {
          if (op.scores_mode == mode) store_scores<T>(shown, row, scores);
        };
        for (int64_t j = 0; j < run.total; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < op.head && mask.counts(b, j); ++p) sum += widen(query[p]) * widen(keys.row(j)[p]);
          scores[static_cast<size_t>(j)] = op.scale * sum;
        }
        show(0);
        for (double& score : scores) score = op.softcap > 0 ? op.softcap * std::tanh(score / op.softcap) : score;
        show(1);
        for (int64_t j = 0; j < run.total; ++j) scores[static_cast<size_t>(j)] += mask(b, h, i, j);
        show(2);
        softmax(scores, op.masked_to_zero);
        show(3);
        T* const y = out[Operands::kY].as<T>() + b * run.y.b + h * run.y.h + i * run.y.r;
        for (int64_t p = 0; p < op.v_head; ++p) {
          double sum = 0;
          for (int64_t j = 0; j < run.total; ++j) {
            if (mask.counts(b, j)) sum += scores[static_cast<size_t>(j)] * widen(values.row(j)[p]);
          }
          y[p] = narrow<T>(sum);
        }
      }
    }
  }
  return kOk;
}

/// present = past, then what is new, with the heads outside.
template <class T>
void store_present(Outputs out, size_t i, const AttentionOp& op, const AttentionRun& run, const TensorView& fresh, int64_t offset,
                   const HeadStrides& s, const TensorView* past, const HeadStrides& p, int64_t width) {
  if (i >= out.size()) return;
  T* target = out[i].as<T>();
  for (int64_t b = 0; b < run.batch; ++b) {
    for (int64_t h = 0; h < op.kv_heads; ++h) {
      const auto rows = joined<T>(fresh, offset, s, past, p, run, b, h);
      for (int64_t r = 0; r < run.total; ++r) target = std::copy_n(rows.row(r), width, target);
    }
  }
}

}  // namespace

Prepared attention(const GenericDesc& desc, std::string& why) {
  const auto op = attention_of(desc.attributes, desc.inputs, desc.outputs, why);
  if (!op) return nullptr;
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (i == Operands::kMask || i == Operands::kNonpad || !desc.has(i) || desc.inputs[i].dtype == desc.inputs[0].dtype) continue;
    return refuse(why, "q, k and v differ in dtype");
  }
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [op = *op](Stream& stream, Inputs in, Outputs out) -> Fault {
          const AttentionRun sizes(op, in);
          store_present<T>(out, Operands::kPresentKey, op, sizes, in[Operands::kK], sizes.k_offset, sizes.k,
                           operand(in, Operands::kPastKey), sizes.past_k, op.head);
          store_present<T>(out, Operands::kPresentValue, op, sizes, in[Operands::kV], sizes.v_offset, sizes.v,
                           operand(in, Operands::kPastValue), sizes.past_v, op.v_head);
          return run<T>(op, sizes, stream, in, out);
        },
        {.scratch_bytes = static_cast<size_t>(AttentionRun(*op, desc.inputs).total) * sizeof(double)});
  });
}

}  // namespace serin::kernels::ref
