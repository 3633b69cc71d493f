// matmul_nbits.cc: y = a times a weight of 4 or 8 bits with a scale for each block of a column (MatMulNBits of com.microsoft), in f32.
//
// The weight stays packed in memory, which is what it is packed for: the columns of one panel at a time become floats in scratch, in the order the
// micro-kernel reads them, block by block so that what is written lies in the first cache. All rows of a are multiplied with the panel then.

#include <algorithm>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/quant.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

struct NBits {
  int64_t k, n, bits, block;

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t block_bytes() const { return block * bits / 8; }
  int64_t zero_bytes() const { return (blocks() * bits + 7) / 8; }
};

/// Element `i` of packed ones.
int32_t unpack(const uint8_t* bytes, int64_t i, int64_t bits) { return bits == 8 ? bytes[i] : bytes[i / 2] >> (i % 2 * 4) & 15; }

/// A block of `count` elements of one column, `step` floats apart.
void dequantise_block(const uint8_t* bytes, int64_t bits, int64_t count, float scale, float zero, float* to, int64_t step) {
  if (bits == 8) {
    for (int64_t i = 0; i < count; ++i) to[i * step] = (static_cast<float>(bytes[i]) - zero) * scale;
    return;
  }
  float values[16];
  for (int q = 0; q < 16; ++q) values[q] = (static_cast<float>(q) - zero) * scale;
  for (int64_t i = 0; i + 1 < count; i += 2, ++bytes) {
    to[i * step] = values[*bytes & 15];
    to[(i + 1) * step] = values[*bytes >> 4];
  }
  if (count % 2 != 0) to[(count - 1) * step] = values[*bytes & 15];
}

class NBitsKernel final : public Kernel {
 public:
  NBitsKernel(const Simd& simd, const NBits& shape, int workers) : simd_(simd), shape_(shape), workers_(workers) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(shape_.k * simd_.panel_width * workers_) * sizeof(float); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const int64_t width = simd_.panel_width, rows = in[0].elements() / shape_.k;
    const float* bias = in.size() > 5 && in[5].data ? in[5].as<const float>() : nullptr;
    parallel_for(stream, (shape_.n + width - 1) / width, [&](int64_t task, int worker) {
      const int64_t first = task * width, columns = std::min(width, shape_.n - first);
      float* panel = reinterpret_cast<float*>(stream.scratch) + worker * shape_.k * width;
      fill(in, first, columns, panel);
      float* y = out[0].as<float>() + first;
      simd_.gemm_panel(rows, columns, shape_.k, in[0].as<const float>(), shape_.k, 1, panel, y, shape_.n, false, nullptr);
      for (int64_t r = 0; bias && r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) y[r * shape_.n + c] += bias[first + c];
      }
    });
    return kOk;
  }

 private:
  void fill(Inputs in, int64_t first, int64_t columns, float* panel) const {
    const int64_t width = simd_.panel_width;
    const auto* weight = in[1].as<const uint8_t>();
    const auto* scales = in[2].as<const float>();
    const auto* zeros = in.size() > 3 ? in[3].as<const uint8_t>() : nullptr;
    if (columns < width) std::fill_n(panel, shape_.k * width, 0.f);
    for (int64_t b = 0; b < shape_.blocks(); ++b) {
      const int64_t begin = b * shape_.block, count = std::min(shape_.block, shape_.k - begin);
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = (first + c) * shape_.blocks() + b;
        const auto zero = zeros ? static_cast<float>(unpack(zeros + (first + c) * shape_.zero_bytes(), b, shape_.bits))
                                : static_cast<float>(1 << (shape_.bits - 1));
        dequantise_block(weight + at * shape_.block_bytes(), shape_.bits, count, scales[at], zero, panel + begin * width + c, width);
      }
    }
  }

  const Simd& simd_;
  const NBits shape_;
  const int workers_;
};

}  // namespace

std::unique_ptr<Kernel> matmul_nbits(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "MatMulNBits") return refuse(why, "not MatMulNBits");
  const NBits shape{op.attributes.integer("K", 0), op.attributes.integer("N", 0), op.attributes.integer("bits", 4),
                    op.attributes.integer("block_size", 0)};
  if (shape.k < 1 || shape.n < 1 || shape.block < 2 || shape.block % 2 != 0 || (shape.bits != 4 && shape.bits != 8))
    return refuse(why, "not 4 or 8 bits in whole bytes to a block");
  if (desc.inputs.size() < 3 || desc.outputs.size() != 1 || desc.inputs[0].dtype != DType::kFloat32 ||
      desc.inputs[2].dtype != DType::kFloat32 || desc.inputs[1].dtype != DType::kUInt8)
    return refuse(why, "f32 only");
  if (has_operand(desc, 4)) return refuse(why, "columns in another order (g_idx)");
  if (has_operand(desc, 3) && desc.inputs[3].dtype != DType::kUInt8) return refuse(why, "zero points that are not packed");
  const auto holds = [&](size_t i, int64_t elements) { return !has_operand(desc, i) || desc.inputs[i].shape.elements() >= elements; };
  const Shape& a = desc.inputs[0].shape;
  if (a.rank() < 1 || a.back() != shape.k || !holds(1, shape.n * shape.blocks() * shape.block_bytes()) ||
      !holds(2, shape.n * shape.blocks()) || !holds(3, shape.n * shape.zero_bytes()) || !holds(5, shape.n) ||
      (has_operand(desc, 5) && desc.inputs[5].dtype != DType::kFloat32))
    return refuse(why, "an operand is smaller than K, N and block_size say");
  return std::make_unique<NBitsKernel>(simd, shape, std::max(1, context.threads));
}

}  // namespace serin::kernels::cpu
