// nbits.cu: MatMulNBits: a [m, k] times weights of 2, 4 or 8 bits [n, blocks of k], each block with a scale and a zero point.
//
// Few rows (a step of a language model): reading the weights is all that costs, so they are read once, as they lie: a warp takes a column, its lanes words of
// four bytes side by side, up to four rows of a at once. Many rows: the weights become numbers in scratch, and a product by whichever row of MatMul takes it.

#include "kernels/cuda/aligned.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kWarps = 4;  // and so columns, of a block
constexpr int kRows = 4;   // of a that a warp takes at once
constexpr int64_t kFewRows = 16;

struct Weights {
  int64_t k, n, block, blocks, block_bytes, zero_bytes;
  int bits;
  bool whole_words;             ///< `packed` begins where words of four bytes may
  const uint8_t* packed;        ///< [n, blocks, block_bytes]
  const uint8_t* packed_zeros;  ///< [n, zero_bytes]; null: the middle, or `zeros`

  __device__ int middle() const { return 1 << (bits - 1); }
  __device__ int unpack(const uint8_t* bytes, int64_t i) const {
    const int per_byte = 8 / bits;
    return bytes[i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1);
  }
  __device__ uint32_t word(const uint8_t* at) const {
    return whole_words ? *reinterpret_cast<const uint32_t*>(at) : at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24;
  }
};

/// Scales and zero points of a column's blocks. S: the type of the scales.
template <class S>
struct Blocks {
  const S* scale;       ///< [n, blocks]
  const S* real_zeros;  ///< [n, blocks]; may be null

  __device__ float scale_of(const Weights& w, int64_t column, int64_t block) const { return load(scale[column * w.blocks + block]); }
  __device__ float zero_of(const Weights& w, int64_t column, int64_t block) const {
    if (w.packed_zeros) return static_cast<float>(w.unpack(w.packed_zeros + column * w.zero_bytes, block));
    return real_zeros ? static_cast<float>(load(real_zeros[column * w.blocks + block])) : static_cast<float>(w.middle());
  }
};

/// b [n, k] as numbers.
template <class T>
__global__ void unpack_weights(Weights w, Blocks<T> blocks, T* b) {
  const int64_t elements = w.n * w.k;
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t column = i / w.k, p = i % w.k, block = p / w.block;
    const int q = w.unpack(w.packed + (column * w.blocks + block) * w.block_bytes, p % w.block);
    b[i] = cast<T>((static_cast<float>(q) - blocks.zero_of(w, column, block)) * blocks.scale_of(w, column, block));
  }
}

template <class T>
__global__ void add_bias(T* y, const T* bias, Division n, int64_t elements) {
  for (int64_t i = first_element(); i < elements; i += element_step()) y[i] = cast<T>(load(y[i]) + load(bias[n.remainder(i)]));
}

constexpr int kRun = 4;  // elements of a that are loaded at once

/// A block of b is whole words of four bytes. `runs`: rows of a are whole runs, and aligned.
template <class T>
__global__ void multiply_few(Weights w, Blocks<T> blocks, const T* a, const T* bias, T* y, int64_t rows, bool runs) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.y, first = static_cast<int64_t>(blockIdx.y) * kRows;
  if (column >= w.n) return;
  const uint8_t* const words = w.packed + column * w.blocks * w.block_bytes;
  const int per_word = 32 / w.bits;
  const int64_t words_of_block = w.block_bytes / 4, count = w.blocks * words_of_block;
  float sums[kRows] = {};
  for (int64_t i = threadIdx.x; i < count; i += 32) {
    const uint32_t word = w.word(words + i * 4);
    const int64_t block = i / words_of_block, p = block * w.block + i % words_of_block * per_word;
    const float scale = blocks.scale_of(w, column, block), zero = blocks.zero_of(w, column, block);
    for (int e = 0; e < per_word && p + e < w.k; e += kRun) {
      float weights[kRun];
#pragma unroll
      for (int j = 0; j < kRun; ++j) weights[j] = (static_cast<float>(word >> ((e + j) * w.bits) & ((1u << w.bits) - 1)) - zero) * scale;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (first + r >= rows) continue;
        const T* const at = a + (first + r) * w.k + p + e;
        if (runs) {
          const auto run = load_pack<kRun>(at);
#pragma unroll
          for (int j = 0; j < kRun; ++j) sums[r] += weights[j] * load(run.values[j]);
        } else {
          for (int j = 0; j < kRun && p + e + j < w.k; ++j) sums[r] += weights[j] * load(at[j]);
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float sum = combine_warp(sums[r], Plus{});
    if (threadIdx.x == 0 && first + r < rows) y[(first + r) * w.n + column] = cast<T>(bias ? sum + load(bias[column]) : sum);
  }
}

}  // namespace

Prepared prepare_matmul_nbits(const Products& products, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const auto has = [&](size_t i) { return i < desc.inputs.size() && desc.inputs[i].dtype != DType::kUndefined; };
  const DType dtype = desc.inputs[0].dtype;
  Weights w{.k = attributes.integer("K", 0),
            .n = attributes.integer("N", 0),
            .block = attributes.integer("block_size", 0),
            .blocks = 0,
            .block_bytes = 0,
            .zero_bytes = 0,
            .bits = static_cast<int>(attributes.integer("bits", 4)),
            .whole_words = false,
            .packed = nullptr,
            .packed_zeros = nullptr};
  if (w.k < 1 || w.n < 1 || w.block < 1 || (w.bits != 2 && w.bits != 4 && w.bits != 8))
    return refuse(why, "K, N, bits or block_size is out of range");
  w.blocks = ceil_div(w.k, w.block), w.block_bytes = ceil_div(w.block * w.bits, 8), w.zero_bytes = ceil_div(w.blocks * w.bits, 8);
  if (w.block_bytes % 4 != 0 || w.block % kRun != 0) return refuse(why, "blocks of less than four bytes or elements");
  if (has(4)) return refuse(why, "it has a g_idx");
  if (!has(1) || !has(2) || desc.inputs[1].dtype != DType::kUInt8 || desc.inputs[2].dtype != dtype || desc.outputs[0].dtype != dtype ||
      (has(5) && desc.inputs[5].dtype != dtype))
    return refuse(why, "operands differ in dtype");
  const bool packed_zeros = has(3) && desc.inputs[3].dtype == DType::kUInt8;
  if (has(3) && !packed_zeros && desc.inputs[3].dtype != dtype)
    return refuse(why, "zero points are neither packed nor of the scales' type");
  const auto holds = [&](size_t i, int64_t wanted) { return !has(i) || desc.inputs[i].shape.elements() >= wanted; };
  if (!holds(1, w.n * w.blocks * w.block_bytes) || !holds(2, w.n * w.blocks) || !holds(3, w.n * (packed_zeros ? w.zero_bytes : w.blocks)) ||
      !holds(5, w.n) || desc.inputs[0].shape.rank() < 1 || desc.inputs[0].shape.back() != w.k)
    return refuse(why, "an operand is smaller than K, N and block_size say");
  const int64_t rows = desc.inputs[0].shape.elements() / w.k;
  std::shared_ptr<const Product> product;  // of many rows
  if (rows > kFewRows) {
    MatMul op;
    op.transpose_b = true;
    auto found = products.prepare(op, dtype, {rows, w.k}, {w.n, w.k}, {rows, w.n}, context, why);
    if (!found) return nullptr;
    product = std::make_shared<Product>(std::move(*found));
  }
  const size_t b_bytes = product ? (static_cast<size_t>(w.n * w.k) * dtype_size(dtype) + 255) / 256 * 256 : 0;
  return ref::for_floats(dtype, why, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_same_v<T, double>) {
      return ref::refuse_dtype(why, dtype);
    } else {
      return make_kernel(
          [=](Stream& stream, Inputs in, Outputs out) -> Fault {
            Weights call = w;
            call.packed = in[1].as<const uint8_t>();
            call.whole_words = is_aligned_to(sizeof(uint32_t), in.subspan(1, 1));
            call.packed_zeros = packed_zeros ? in[3].as<const uint8_t>() : nullptr;
            const Blocks<T> blocks{in[2].as<const T>(), packed_zeros ? nullptr : operand_as<T>(in, 3)};
            const T* const bias = operand_as<T>(in, 5);
            constexpr unsigned kThreads = 256;
            if (!product) {
              const Grid grid{dim3(blocks_for(w.n, kWarps), static_cast<unsigned>(ceil_div(rows, kRows))), dim3(32, kWarps)};
              const T* const a = in[0].as<const T>();
              return launch(stream, grid, multiply_few<T>, call, blocks, a, bias, out[0].as<T>(), rows,
                            w.k % kRun == 0 && is_aligned<T, kRun>(a));
            }
            auto* const b = reinterpret_cast<T*>(stream.scratch);
            if (Fault fault = launch(stream, {blocks_for(w.n * w.k, kThreads), kThreads}, unpack_weights<T>, call, blocks, b)) return fault;
            if (Fault fault = product->run(stream, {dtype, {rows, w.k}, in[0].data}, {dtype, {w.n, w.k}, b},
                                           {dtype, {rows, w.n}, out[0].data}, stream.scratch + b_bytes))
              return fault;
            if (!bias) return kOk;
            return launch(stream, {blocks_for(rows * w.n, kThreads), kThreads}, add_bias<T>, out[0].as<T>(), bias,
                          Division(w.n, rows * w.n), rows * w.n);
          },
          {.scratch_bytes = b_bytes + (product ? product->scratch_bytes() : 0)});
    }
  });
}

}  // namespace serin::kernels::cuda
