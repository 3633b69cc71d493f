// matmul_nbits.cc: y = a times a weight of 4 or 8 bits with a scale for each block of a column (MatMulNBits of com.microsoft), in f32.
//
// The weight stays packed in memory, which is what it is packed for. Few rows of a (a language model that writes its answer has one) are multiplied with the
// weights as they come out of their bytes, which then cross memory once and are never floats anywhere but in registers (simd/nbits.h). For many rows each panel
// of columns becomes floats in scratch, in the order that the micro-kernel reads, and stays in the second cache while the rows pass by.
//
// Where a model allows it (accuracy_level 4) rows are rounded to 8 bits, a scale for each block, and a block's sum is exact (simd/nbits_int8.h): all rows, however
// many, so that an answer does not depend on the batch it was computed in.

#include <algorithm>
#include <vector>

#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/quant.h"
#include "kernels/cpu/simd/dense.h"
#include "kernels/cpu/simd/nbits_int8.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kFewRows = 12;        // beyond, a panel of floats pays
constexpr int64_t kLargest = 1 << 20;   // of K, N and a block: no product overflows
constexpr int64_t kDepth = 896;         // of k at a time, as in gemm.cc
constexpr int64_t kColumnsOfTask = 64;  // of few rows
constexpr int64_t kInt8 = 4;            // accuracy_level: the least exact type that the model allows

/// An operator's operands by what they are.
struct Operands {
  const float* a;
  const uint8_t* weight;
  const float* scales;
  const uint8_t* zeros;  ///< null: all in the middle of the range
  const float* bias;     ///< null: none

  explicit Operands(Inputs in)
      : a(in[0].as<const float>()),
        weight(in[1].as<const uint8_t>()),
        scales(in[2].as<const float>()),
        zeros(operand_as<uint8_t>(in, 3)),
        bias(operand_as<float>(in, 5)) {}
};

class NBitsKernel final : public Kernel {
 public:
  /// `int8`: null, or for all rows.
  NBitsKernel(const Simd& simd, const NBitsInt8Loops* int8, const NBitsShape& shape, int64_t k, int64_t n, int64_t rows, int workers)
      : simd_(simd), int8_(int8), shape_(shape), k_(k), n_(n), rows_(rows), workers_(workers) {}

  std::string_view name() const override { return int8_ ? "matmul_nbits_int8_avx512vnni" : ""; }

  size_t scratch_bytes() const override {
    if (int8_) return static_cast<size_t>(rows_ * (NBitsActivations::chunks(shape_) * kFloatsOfChunk + shape_.blocks)) * sizeof(float);
    const int64_t few = std::min(rows_, kFewRows) * (depth() + shape_.blocks);
    const int64_t panels = are_few(rows_) ? 0 : workers_ * simd_.dense->panel_width * (blocks_of_part() + 1) * shape_.block;
    return static_cast<size_t>(std::max(few, panels)) * sizeof(float);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Operands operands(in);
    const int64_t rows = in[0].elements() / k_;
    float* const y = out[0].as<float>();
    if (int8_)
      rounded_rows(stream, operands, rows, y);
    else
      are_few(rows) ? few_rows(stream, operands, rows, y) : panels(stream, operands, rows, y);
    return kOk;
  }

 private:
  bool are_few(int64_t rows) const { return rows <= kFewRows && shape_.block % (2 * simd_.width) == 0; }
  int64_t blocks_of_part() const { return std::max<int64_t>(1, kDepth / shape_.block); }
  int64_t depth() const { return shape_.blocks * shape_.block; }
  int64_t column_bytes() const { return depth() * shape_.bits / 8; }
  int64_t zero_bytes() const { return (shape_.blocks * shape_.bits + 7) / 8; }

  static constexpr int64_t kFloatsOfChunk = 16 + NBitsActivations::kChunk / 4;  ///< of scratch: its scales and its bytes

  void rounded_rows(const Stream& stream, const Operands& operands, int64_t rows, float* y) const {
    const int64_t chunks = NBitsActivations::chunks(shape_);
    float* const scales = reinterpret_cast<float*>(stream.scratch) + rows * chunks * NBitsActivations::kChunk / 4;
    const NBitsActivations a{reinterpret_cast<int8_t*>(stream.scratch), scales, scales + rows * chunks * 16};
    parallel_for(stream, rows, [&](int64_t r, int) { int8_->round(operands.a + r * k_, k_, shape_, r, a); });
    each_columns(stream, operands, rows, y,
                 [&](const NBitsColumns& columns, float* to) { int8_->product(shape_, columns, a, rows, to, n_); });
  }

  void few_rows(const Stream& stream, const Operands& operands, int64_t rows, float* y) const {
    float* const ordered = reinterpret_cast<float*>(stream.scratch);
    float* const sums = ordered + rows * depth();
    for (int64_t r = 0; r < rows; ++r)
      simd_.order_for_nbits(operands.a + r * k_, k_, shape_, ordered + r * depth(), sums + r * shape_.blocks);
    each_columns(stream, operands, rows, y,
                 [&](const NBitsColumns& columns, float* to) { simd_.nbits_product(shape_, columns, ordered, sums, rows, to, n_); });
  }

  /// multiply(columns, where they belong in y) for all columns, and the bias.
  template <class Multiply>
  void each_columns(const Stream& stream, const Operands& operands, int64_t rows, float* y, Multiply&& multiply) const {
    parallel_for(stream, (n_ + kColumnsOfTask - 1) / kColumnsOfTask, [&](int64_t task, int) {
      const int64_t first = task * kColumnsOfTask, count = std::min(kColumnsOfTask, n_ - first);
      const NBitsColumns columns{operands.weight + first * column_bytes(), operands.scales + first * shape_.blocks,
                                 operands.zeros ? operands.zeros + first * zero_bytes() : nullptr, count};
      multiply(columns, y + first);
      for (int64_t r = 0; operands.bias && r < rows; ++r) {
        for (int64_t c = first; c < first + count; ++c) y[r * n_ + c] += operands.bias[c];
      }
    });
  }

  /// Part by part of k, so that a part of all rows of a stays in the second cache while panels of it pass by.
  void panels(const Stream& stream, const Operands& operands, int64_t rows, float* y) const {
    const int64_t width = simd_.dense->panel_width, count = (n_ + width - 1) / width, part = blocks_of_part();
    const int64_t tasks = stream.workers ? std::min<int64_t>(count, int64_t{3} * stream.workers->count()) : 1;
    parallel_for(stream, tasks, [&](int64_t task, int worker) {
      float* panel = reinterpret_cast<float*>(stream.scratch) + worker * width * (part + 1) * shape_.block;
      for (int64_t b = 0; b < shape_.blocks; b += part) {
        const int64_t blocks = std::min(part, shape_.blocks - b), k = b * shape_.block;
        for (int64_t i = count * task / tasks; i < count * (task + 1) / tasks; ++i) {
          const int64_t first = i * width, columns = std::min(width, n_ - first);
          fill(operands, first, columns, b, blocks, panel, panel + width * part * shape_.block);
          const GemmFinish finish{.bias = operands.bias ? operands.bias + first : nullptr, .bias_column = 1};
          const bool last = b + blocks == shape_.blocks;
          simd_.dense->gemm({.m = rows,
                             .n = columns,
                             .k = std::min(k_ - k, blocks * shape_.block),
                             .a = operands.a + k,
                             .a_row = k_,
                             .a_column = 1,
                             .b = panel,
                             .b_row = width,
                             .y = y + first,
                             .y_row = n_,
                             .accumulate = b > 0,
                             .next = nullptr,
                             .finish = last && operands.bias ? &finish : nullptr});
        }
      }
    });
  }

  /// Blocks [begin, begin + blocks) of k: `columns` rows of one block each in `rows`, then turned into the panel.
  void fill(const Operands& operands, int64_t first, int64_t columns, int64_t begin, int64_t blocks, float* panel, float* rows) const {
    const int64_t width = simd_.dense->panel_width, half = shape_.block / 2;
    const int64_t block_bytes = shape_.block * shape_.bits / 8;
    if (columns < width) std::fill_n(panel, blocks * shape_.block * width, 0.f);
    for (int64_t b = begin; b < begin + blocks; ++b) {
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t column = first + c;
        float* row = rows + c * shape_.block;
        simd_.nbits_block(operands.weight + column * column_bytes() + b * block_bytes, shape_.block, shape_.bits,
                          operands.scales[column * shape_.blocks + b], zero_of(operands, column, b), row, row + half);
      }
      float* const to = panel + (b - begin) * shape_.block * width;
      if (shape_.bits == 8) {
        simd_.image->transpose(rows, shape_.block, to, width, shape_.block, columns);
      } else {
        simd_.image->transpose(rows, shape_.block, to, 2 * width, half, columns);
        simd_.image->transpose(rows + half, shape_.block, to + width, 2 * width, half, columns);
      }
    }
  }

  float zero_of(const Operands& operands, int64_t column, int64_t b) const {
    if (!operands.zeros) return static_cast<float>(1 << (shape_.bits - 1));
    const uint8_t* zeros = operands.zeros + column * zero_bytes();
    return static_cast<float>(shape_.bits == 8 ? zeros[b] : zeros[b / 2] >> (b % 2 * 4) & 15);
  }

  const Simd& simd_;
  const NBitsInt8Loops* const int8_;
  const NBitsShape shape_;
  const int64_t k_, n_, rows_;
  const int workers_;
};

/// Null where the model does not ask for activations of 8 bits, or the machine has no instruction for them.
const NBitsInt8Loops* int8_loops(const Simd& simd, const NBitsShape& shape, const Attributes& attributes) {
  const bool whole_blocks = shape.block == 32 || shape.block == 64 || shape.block == 128;
  if (attributes.integer("accuracy_level", 0) != kInt8 || shape.bits != 4 || !whole_blocks || simd.width != 16) return nullptr;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni")) return &kNBitsInt8Avx512Vnni;
#endif
  return nullptr;
}

}  // namespace

std::unique_ptr<Kernel> matmul_nbits(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "MatMulNBits") return refuse(why, "not MatMulNBits");
  const int64_t k = op.attributes.integer("K", 0), n = op.attributes.integer("N", 0);
  NBitsShape shape{.bits = op.attributes.integer("bits", 4), .block = op.attributes.integer("block_size", 0), .blocks = 0};
  if (shape.bits != 4 && shape.bits != 8) return refuse(why, "not of 4 or 8 bits");
  if (k < 1 || n < 1 || k > kLargest || n > kLargest) return refuse(why, "K or N out of range");
  if (shape.block < 2 || shape.block > kLargest || shape.block % 2 != 0) return refuse(why, "a block is not whole bytes");
  shape.blocks = (k + shape.block - 1) / shape.block;
  if (desc.inputs.size() < 3 || desc.outputs.size() != 1 || desc.inputs[0].dtype != DType::kFloat32 ||
      desc.inputs[2].dtype != DType::kFloat32 || desc.inputs[1].dtype != DType::kUInt8)
    return refuse(why, "f32 only");
  if (has_operand(desc, 4)) return refuse(why, "columns in another order (g_idx)");
  if (has_operand(desc, 3) && desc.inputs[3].dtype != DType::kUInt8) return refuse(why, "zero points that are not packed");
  const auto holds = [&](size_t i, int64_t elements) { return !has_operand(desc, i) || desc.inputs[i].shape.elements() >= elements; };
  const Shape& a = desc.inputs[0].shape;
  const int64_t scales = n * shape.blocks;
  if (a.rank() < 1 || a.back() != k || !holds(1, scales * shape.block * shape.bits / 8) || !holds(2, scales) ||
      !holds(3, n * ((shape.blocks * shape.bits + 7) / 8)) || !holds(5, n) ||
      (has_operand(desc, 5) && desc.inputs[5].dtype != DType::kFloat32))
    return refuse(why, "an operand is smaller than K, N and block_size say");
  return std::make_unique<NBitsKernel>(simd, int8_loops(simd, shape, op.attributes), shape, k, n, a.elements() / k,
                                       std::max(1, context.threads));
}

}  // namespace serin::kernels::cpu
