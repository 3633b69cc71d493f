// matmul_bf16.cc: MatMul by a constant b, both operands rounded to bf16 and the products summed in f32 (`--precision bf16`).
//
// b is packed once, in pairs along k: [panel][pairs][panel_width][2], half the bytes of f32. a is rounded into scratch in each run.
// Blocking as in gemm.cc. Other products (a computed b, a transposed a) are left to the rows that compute in f32.

#include <algorithm>
#include <string>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/dense_bf16.h"
#include "kernels/float16.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPairs = 768;  // of a part of k: a panel of 48 columns is 144 KiB then
constexpr int64_t kRows = 136;   // of a block of a

int64_t parts_of(int64_t size, int64_t largest) { return std::max<int64_t>(1, (size + largest - 1) / largest); }

/// What is added to y, seen as rows of one matrix: one row, one number, or as many as y.
struct Added {
  const float* data = nullptr;
  int64_t row = 0, column = 0;

  Added() = default;
  Added(const TensorView& view, int64_t n) : data(view.as<const float>()) {
    column = view.elements() == 1 ? 0 : 1;
    row = view.elements() > n ? n : 0;
  }
  const float* at(int64_t i, int64_t j) const { return data ? data + i * row + j * column : nullptr; }
};

bool fits_rows(const Shape& added, const Shape& y) {
  return added == y || added.elements() == 1 || (added.elements() == y.back() && added.rank() > 0 && added.back() == y.back());
}

class Bf16Kernel final : public Kernel {
 public:
  Bf16Kernel(const Bf16Loops& loops, const OpDesc& desc, PrepareContext& context) : loops_(loops), op_(std::get<MatMul>(desc.op)) {
    const TensorDesc& b = desc.inputs[1];
    const size_t rank = b.shape.rank();
    k_ = b.shape[rank - 2], n_ = b.shape[rank - 1];
    if (op_.transpose_b) std::swap(k_, n_);
    pairs_ = (k_ + 1) / 2;
    panels_ = (n_ + loops.panel_width - 1) / loops.panel_width;
    rows_ = desc.inputs[0].shape.elements() / std::max<int64_t>(k_, 1);
    const auto bytes = static_cast<size_t>(panels_ * pairs_ * loops.panel_width) * 2 * sizeof(uint16_t);
    const std::string layout = "gemm_bf16_pairs" + std::to_string(loops.panel_width) + (op_.transpose_b ? "_transposed" : "");
    weights_ = context.weights->get(b.constant_id, layout, bytes,
                                    [&](std::byte* data) { pack(b.constant.as<float>(), reinterpret_cast<uint16_t*>(data)); });
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(rows_ * 2 * pairs_) * sizeof(uint16_t); }
  uint32_t packed_inputs() const override { return 0b10; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const int64_t m = in[0].elements() / k_;
    auto* const a = reinterpret_cast<uint16_t*>(stream.scratch);  // [m, pairs, 2]
    const int64_t a_row = 2 * pairs_, chunks = parts_of(m, 64);
    parallel_for(stream, chunks, [&](int64_t chunk, int) {
      for (int64_t i = chunk * 64; i < std::min(m, chunk * 64 + 64); ++i) {
        loops_.round(in[0].as<const float>() + i * k_, a + i * a_row, k_);
        if (k_ % 2 != 0) a[i * a_row + k_] = 0;
      }
    });
    const Added bias = op_.bias ? Added(in[2], n_) : Added(), residual = op_.epilogue.residual ? Added(in.back(), n_) : Added();
    const int64_t blocks = parts_of(m, kRows), workers = stream.workers ? stream.workers->count() : 1;
    const int64_t strips = workers == 1 ? 1 : std::min(panels_, (3 * workers + blocks - 1) / blocks);
    parallel_for(stream, blocks * strips, [&](int64_t task, int) {
      const int64_t rows = (m + blocks - 1) / blocks, first = task / strips * rows;
      const int64_t each = (panels_ + strips - 1) / strips, panel = task % strips * each;
      if (first < m) block(a, out[0].as<float>(), first, std::min(rows, m - first), panel, std::min(panel + each, panels_), bias, residual);
    });
    return kOk;
  }

 private:
  void pack(const float* b, uint16_t* packed) const {
    const int64_t width = loops_.panel_width;
    for (int64_t j = 0; j < panels_ * width; j += width) {
      for (int64_t p = 0; p < 2 * pairs_; p += 2) {
        for (int64_t c = j; c < j + width; ++c) {
          for (int64_t i = p; i < p + 2; ++i) {
            const bool inside = c < n_ && i < k_;
            *packed++ = inside ? to_bfloat16(op_.transpose_b ? b[c * k_ + i] : b[i * n_ + c]).bits : uint16_t{0};
          }
        }
      }
    }
  }

  /// Rows [first, first + rows) of panels [begin, end).
  void block(const uint16_t* a, float* y, int64_t first, int64_t rows, int64_t begin, int64_t end, const Added& bias,
             const Added& residual) const {
    const int64_t width = loops_.panel_width, depths = parts_of(pairs_, kPairs), depth = (pairs_ + depths - 1) / depths;
    const auto* const packed = reinterpret_cast<const uint16_t*>(weights_->data);
    for (int64_t p = 0; p < pairs_; p += depth) {
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t j = panel * width;
        const GemmFinish finish{
            op_.alpha,       bias.at(first, j),       bias.row,           bias.column,      residual.at(first, j), residual.row,
            residual.column, op_.epilogue.activation, op_.epilogue.alpha, op_.epilogue.beta};
        const uint16_t* const b = packed + (panel * pairs_ + p) * width * 2;
        loops_.gemm({.m = rows,
                     .n = std::min(width, n_ - j),
                     .pairs = std::min(depth, pairs_ - p),
                     .a = a + first * 2 * pairs_ + 2 * p,
                     .a_row = 2 * pairs_,
                     .b = b,
                     .b_row = 2 * width,
                     .y = y + first * n_ + j,
                     .y_row = n_,
                     .accumulate = p > 0,
                     .next = panel + 1 < end ? b + pairs_ * width * 2 : nullptr,
                     .finish = p + depth >= pairs_ ? &finish : nullptr});
      }
    }
  }

  const Bf16Loops& loops_;
  const MatMul op_;
  int64_t k_ = 0, n_ = 0, pairs_ = 0, panels_ = 0, rows_ = 0;
  std::shared_ptr<const PackedWeights::Buffer> weights_;
};

}  // namespace

const Bf16Loops* bf16_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return &kBf16Avx512;
#endif
  return nullptr;
}

Prepared matmul_bf16(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Bf16Loops* const loops = bf16_loops();
  const MatMul& op = std::get<MatMul>(desc.op);
  if (!loops || simd.width != 16) return refuse(why, "this machine does not multiply bf16");
  if (desc.inputs.size() != 2u + op.bias + op.epilogue.residual) return refuse(why, "unexpected number of inputs");
  const Shape &a = desc.inputs[0].shape, &b = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  if (a.rank() < 2 || b.rank() < 2) return refuse(why, "operands must have rank 2 or more");
  const bool one_product = desc.inputs[1].constant && !op.transpose_a && product(b, 0, b.rank() - 2) == 1 && a.rank() == y.rank();
  if (!one_product || y.elements() == 0 || a.elements() == 0) return refuse(why, "only a plain a by a constant matrix");
  if (is_bounded(desc)) return refuse(why, "only shapes that are known");
  if (op.bias && !fits_rows(desc.inputs[2].shape, y)) return refuse(why, "a bias of another form than a row");
  if (op.epilogue.residual && !fits_rows(desc.inputs.back().shape, y)) return refuse(why, "a residual of another form than y");
  if (!simd.dense->finishes(op.epilogue.activation)) return refuse(why, "no vector code for the activation");
  return std::make_unique<Bf16Kernel>(*loops, desc, context);
}

}  // namespace serin::kernels::cpu
