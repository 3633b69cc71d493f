// byte_tiles.h: Products of bytes with exact sums in 32 bits, on tensor cores.
//
//   y[row, column] = finish(sum over k of (a[row, k] - za) * (b[column, k] - zb))
//
// Tensor cores multiply signed bytes. Unsigned ones have their highest bit flipped, which subtracts 128 from each and from their zero
// point. The zero points are removed from the sum afterwards, by the sums of a's rows and b's columns, which are computed during the
// product.
//
// A block computes a tile of 64 x 64 results with four warps. 64 of k at a time are in shared memory, the next 64 are being loaded into
// registers. a comes from a loader: rows of a matrix (quant_matmul.cu) or windows of an image (quant_conv.cu). b is always [columns, k
// rounded up to 16] with zeros after k.
#pragma once

#include "kernels/cuda/quant.h"
#include "kernels/cuda/space.h"
#include "kernels/cuda/tensor_core_bytes.h"

namespace serin::kernels::cuda {

constexpr int64_t kByteGroup = 16;  ///< k of b is rounded up to a multiple of this

/// Sixteen bytes of a row.
struct alignas(16) ByteChunk {
  uint32_t words[4] = {};
};

constexpr uint32_t kFlipBytes = 0x80808080u;

struct ByteProduct {
  int64_t rows = 0, columns = 0, k = 0, k_padded = 0;
  int64_t products = 1;        ///< matrices or groups, along blockIdx.y
  int64_t first_columns = 0;   ///< product p begins at p times this among the scales, zero points and biases of all
  int64_t b_step = 0;          ///< from one product's b to the next; 0: the same for all
  const uint8_t* b = nullptr;  ///< signed bytes
  ZeroPoints a_zero, b_zero;   ///< b_zero: of the bytes before flipping
  bool a_signed = false, b_signed = false;
  bool wants_row_sums = true;  ///< a zero point of b may differ from the middle of its type
  // The address of result (row, column) of product p: rows are grouped in images of `plane`.
  Division plane;
  int64_t product_step = 0, image_step = 0, row_step = 0, column_step = 1;
};

namespace byte_tiles {

constexpr int kTile = 64, kDepth = 64, kThreads = 128;
constexpr int kPitch = kDepth + 16;  // rows begin in different banks
constexpr int kWarpTile = 32;        // of each of 2 x 2 warps
constexpr size_t kShared = 4 * kTile * kPitch + 2 * kTile * sizeof(int);

__device__ inline int sum_of(const ByteChunk& chunk, int sum) {
  for (const uint32_t word : chunk.words) sum = __dp4a(static_cast<int>(word), 0x01010101, sum);
  return sum;
}

/// Adds a's rows times b's columns, both in shared memory, to the sums of this warp's [32, 32] results.
__device__ inline void multiply(const uint8_t* a, const uint8_t* b, int (&sums)[2][4][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const auto word = [](const uint8_t* tile, int row, int byte) { return *reinterpret_cast<const uint32_t*>(tile + row * kPitch + byte); };
#pragma unroll
  for (int k = 0; k < kDepth; k += 32) {
    uint32_t rows[2][4], columns[4][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int r = 0; r < 4; ++r) rows[i][r] = word(a, i * 16 + g + r % 2 * 8, k + 4 * t + r / 2 * 16);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) columns[j][r] = word(b, j * 8 + g, k + 4 * t + r * 16);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) multiply_bytes(sums[i][j], rows[i], columns[j]);
    }
  }
}

/// A loader has `place(product, row)`, its data about a row for all of k, and `chunk(place, k)`: bytes k to k + 15 of that row, flipped, 0
/// after the row's end.
template <class A>
__global__ void __launch_bounds__(kThreads) run(ByteProduct p, A a, ByteFinish finish, void* y) {
  uint8_t* const tiles = shared_memory<uint8_t>();  // a and b, twice each: [kTile, kPitch]
  int* const row_sums = reinterpret_cast<int*>(tiles + 4 * kTile * kPitch);
  int* const column_sums = row_sums + kTile;
  const int thread = static_cast<int>(threadIdx.x), line = thread / 4,
            at = thread % 4 * 16;  // of the chunks it loads: lines `line` and `line` + 32
  const int warp = thread / 32, warp_row = warp / 2 * kWarpTile, warp_column = warp % 2 * kWarpTile;
  const int64_t tiles_of_row = ceil_div(p.columns, kTile);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) / tiles_of_row * kTile,
                first_column = static_cast<int64_t>(blockIdx.x) % tiles_of_row * kTile;
  for (int64_t product = blockIdx.y; product < p.products; product += gridDim.y) {
    if (thread < kTile) row_sums[thread] = column_sums[thread] = 0;
    typename A::Place places[2];
    bool has_row[2], has_column[2];
    const uint8_t* columns[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t row = first_row + line + i * 32, column = first_column + line + i * 32;
      has_row[i] = row < p.rows, has_column[i] = column < p.columns;
      if (has_row[i]) places[i] = a.place(product, row);
      columns[i] = p.b + product * p.b_step + column * p.k_padded;
    }
    ByteChunk next_a[2], next_b[2];
    const auto fetch = [&](int64_t k) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        next_a[i] = has_row[i] && k < p.k ? a.chunk(places[i], k) : ByteChunk{};
        next_b[i] = has_column[i] && k < p.k_padded ? *reinterpret_cast<const ByteChunk*>(columns[i] + k) : ByteChunk{};
      }
    };
    int sums[2][4][4] = {}, own_rows[2] = {}, own_columns[2] = {};
    fetch(at);
    uint8_t *tile_a = tiles, *tile_b = tiles + kTile * kPitch;
    uint8_t *other_a = tiles + 2 * kTile * kPitch, *other_b = tiles + 3 * kTile * kPitch;
    for (int64_t depth = 0; depth < p.k; depth += kDepth) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        *reinterpret_cast<ByteChunk*>(tile_a + (line + i * 32) * kPitch + at) = next_a[i];
        *reinterpret_cast<ByteChunk*>(tile_b + (line + i * 32) * kPitch + at) = next_b[i];
        if (p.wants_row_sums) own_rows[i] = sum_of(next_a[i], own_rows[i]);
        own_columns[i] = sum_of(next_b[i], own_columns[i]);
      }
      __syncthreads();
      if (depth + kDepth < p.k) fetch(depth + kDepth + at);
      multiply(tile_a + warp_row * kPitch, tile_b + warp_column * kPitch, sums);
      // The other two are written next: no thread has used them since the barrier above.
      uint8_t *const used_a = tile_a, *const used_b = tile_b;
      tile_a = other_a, tile_b = other_b, other_a = used_a, other_b = used_b;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (p.wants_row_sums) atomicAdd(&row_sums[line + i * 32], own_rows[i]);
      atomicAdd(&column_sums[line + i * 32], own_columns[i]);
    }
    __syncthreads();
    const int lane = thread % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int tile_row = warp_row + i * 16 + g + e / 2 * 8, tile_column = warp_column + j * 8 + 2 * t + e % 2;
          const int64_t row = first_row + tile_row, column = first_column + tile_column;
          if (row >= p.rows || column >= p.columns) continue;
          const auto za = static_cast<uint32_t>(p.a_zero(row) - (p.a_signed ? 0 : 128));
          const int64_t of_all = product * p.first_columns + column;
          const auto zb = static_cast<uint32_t>(p.b_zero(of_all) - (p.b_signed ? 0 : 128));
          uint32_t sum = static_cast<uint32_t>(sums[i][j][e]) - za * static_cast<uint32_t>(column_sums[tile_column]);
          if (p.wants_row_sums) sum += zb * (static_cast<uint32_t>(p.k) * za - static_cast<uint32_t>(row_sums[tile_row]));
          const int64_t image = p.plane.quotient(row);
          const int64_t result =
              product * p.product_step + image * p.image_step + (row - image * p.plane.d) * p.row_step + column * p.column_step;
          finish.store(y, result, static_cast<int>(sum), row, of_all);
        }
      }
    }
    __syncthreads();
  }
}

}  // namespace byte_tiles

template <class A>
Fault multiply_byte_tiles(const Stream& stream, const ByteProduct& p, const A& a, const ByteFinish& finish, void* y) {
  using namespace byte_tiles;
  if (p.products == 0) return kOk;
  const Grid grid{dim3(blocks_for(ceil_div(p.rows, kTile) * ceil_div(p.columns, kTile), 1),
                       static_cast<unsigned>(std::min<int64_t>(p.products, 65535))),
                  kThreads, kShared};
  return launch(stream, grid, run<A>, p, a, finish, y);
}

// ---- weights ----

/// The address of byte (column, cell, channel) of a weight; k is cell * channels + channel.
struct ByteLayout {
  int64_t columns, cells, channels;
  int64_t column_step, cell_step, channel_step;

  int64_t k() const { return cells * channels; }
  int64_t k_padded() const { return ceil_div(k(), kByteGroup) * kByteGroup; }
  size_t bytes() const { return static_cast<size_t>(columns * k_padded()); }
  /// Of [columns, k_padded]: a signed byte.
  SERIN_HD uint8_t packed(const uint8_t* source, bool is_signed, int64_t column, int64_t at) const {
    if (at >= cells * channels) return 0;
    const uint8_t byte = source[column * column_step + at / channels * cell_step + at % channels * channel_step];
    return is_signed ? byte : static_cast<uint8_t>(byte ^ 0x80u);
  }
};

/// Packed at load if the weight is known.
inline std::shared_ptr<const PackedWeights::Buffer> pack_bytes(const TensorDesc& weight, const ByteLayout& layout,
                                                               PrepareContext& context) {
  const bool is_signed = weight.dtype == DType::kInt8;
  const std::string key = "cuda_bytes:" + std::to_string(layout.column_step) + "," + std::to_string(layout.cell_step) + "," +
                          std::to_string(layout.channel_step) + "," + std::to_string(layout.cells);
  return context.weights->get(weight.constant_id, key, layout.bytes(), [&](std::byte* to) {
    const auto* source = weight.constant.as<uint8_t>();
    for (int64_t column = 0; column < layout.columns; ++column) {
      for (int64_t at = 0; at < layout.k_padded(); ++at)
        to[column * layout.k_padded() + at] = std::byte{layout.packed(source, is_signed, column, at)};
    }
  });
}

namespace byte_tiles {

static __global__ void pack(ByteLayout layout, int64_t matrices, int64_t matrix_step, const uint8_t* source, bool is_signed,
                            uint8_t* packed) {
  const int64_t padded = ceil_div(layout.cells * layout.channels, kByteGroup) * kByteGroup, of_matrix = layout.columns * padded;
  for (int64_t i = first_element(); i < matrices * of_matrix; i += element_step()) {
    const int64_t matrix = i / of_matrix, rest = i % of_matrix;
    packed[i] = layout.packed(source + matrix * matrix_step, is_signed, rest / padded, rest % padded);
  }
}

}  // namespace byte_tiles

/// Packed in each run: `matrices` of them, `matrix_step` apart.
inline Fault pack_bytes(const Stream& stream, const ByteLayout& layout, int64_t matrices, int64_t matrix_step, const TensorView& weight,
                        uint8_t* packed) {
  const int64_t elements = matrices * static_cast<int64_t>(layout.bytes());
  return launch(stream, {blocks_for(elements, 256), 256}, byte_tiles::pack, layout, matrices, matrix_step, weight.as<const uint8_t>(),
                weight.dtype == DType::kInt8, packed);
}

}  // namespace serin::kernels::cuda
