// nbits.h: Products with weights of 4 or 8 bits, with a scale and a zero point for each block of a column (kernels/cpu/matmul_nbits.cc).
//
// A column is read in chunks of two vectors of elements. Of 4 bits, a chunk is one vector of bytes: their low halves are the even elements,
// their high halves the odd ones. Of 8 bits, it is the elements in order. Activations are reordered the same way once for each product, so
// that weights go from their bytes through a register into the sums.
#pragma once

#include "kernels/cpu/simd/rows.h"
#include "kernels/cpu/simd/simd.h"

namespace serin::kernels::cpu {

/// One chunk as integers.
template <class V, int kBits>
struct Chunk {
  typename V::F first, second;
  explicit Chunk(const uint8_t* p) {
    if constexpr (kBits == 4) {
      V::load_halves(p, first, second);
    } else {
      first = V::load_u8(p);
      second = V::load_u8(p + V::kWidth);
    }
  }
};

inline constexpr uint32_t kEvens = 0x55555555u;  // of the elements that V::load_even reads

/// to = x, in chunks of evens and odds for weights of 4 bits; zeros up to `padded`. sums[b] = the sum of block b.
template <class V>
void order_for_nbits(const float* x, int64_t n, const NBitsShape& shape, float* to, float* sums) {
  constexpr int64_t kChunk = 2 * V::kWidth;
  constexpr uint32_t kAll = (1u << V::kWidth) - 1u;
  for (int64_t b = 0; b < shape.blocks; ++b) {
    auto sum = V::set(0.f);
    for (int64_t i = b * shape.block; i < (b + 1) * shape.block; i += kChunk) {
      float tail[kChunk] = {};
      for (int64_t j = i; i + kChunk > n && j < n; ++j) tail[j - i] = x[j];
      const float* from = i + kChunk > n ? tail : x + i;
      const auto first = shape.bits == 4 ? V::load_even(from, kAll, kEvens, 0.f) : V::load(from);
      const auto second = shape.bits == 4 ? V::load_even(from + 1, kAll, kEvens, 0.f) : V::load(from + V::kWidth);
      V::store(to + i, first);
      V::store(to + i + V::kWidth, second);
      sum = sum + first + second;
    }
    sums[b] = join_elements<V, Reduction<V, ReduceFn::kSum>>(sum)[0];
  }
}

/// kRows rows of a by kColumns columns: sums[row * kColumns + column] += the product without zero points, over all blocks.
template <class V, int kBits, int kRows, int kColumns>
void nbits_tile(const NBitsShape& shape, const uint8_t* weight, const float* scales, const float* a, int64_t a_row, float* sums) {
  using F = typename V::F;
  constexpr int64_t kChunk = 2 * V::kWidth, kChunkBytes = kChunk * kBits / 8;
  F total[kRows][kColumns];
  for (auto& row : total) {
    for (F& sum : row) sum = V::set(0.f);
  }
  const int64_t chunks = shape.block / kChunk, column_bytes = shape.blocks * shape.block * kBits / 8;
  for (int64_t b = 0; b < shape.blocks; ++b) {
    F scale[kColumns];
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) scale[c] = V::set(scales[c * shape.blocks + b]);
    for (int64_t chunk = b * chunks; chunk < (b + 1) * chunks; ++chunk) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        Chunk<V, kBits> w(weight + c * column_bytes + chunk * kChunkBytes);
        if constexpr (kRows == 1) {  // the scale once, on the sum
          const float* x = a + chunk * kChunk;
          total[0][c] = V::fma(V::fma(V::load(x), w.first, V::load(x + V::kWidth) * w.second), scale[c], total[0][c]);
          continue;
        }
        w.first = w.first * scale[c];
        w.second = w.second * scale[c];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const float* x = a + r * a_row + chunk * kChunk;
          total[r][c] = V::fma(V::load(x), w.first, V::fma(V::load(x + V::kWidth), w.second, total[r][c]));
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) sums[r * kColumns + c] = join_elements<V, Reduction<V, ReduceFn::kSum>>(total[r][c])[0];
  }
}

/// The share of the zero points of one column: the sum over the blocks of scale * zero * sums.
template <class V, int kBits>
float nbits_shift(const NBitsShape& shape, const float* scales, const uint8_t* zeros, const float* sums) {
  constexpr int64_t kChunk = 2 * V::kWidth;
  auto total = V::set(0.f);
  int64_t b = 0;
  const auto middle = V::set(static_cast<float>(1 << (kBits - 1)));
  if (!zeros) {
    for (; b + V::kWidth <= shape.blocks; b += V::kWidth) total = V::fma(V::load(scales + b) * middle, V::load(sums + b), total);
  } else if constexpr (kBits == 4) {
    const uint32_t all = (1u << V::kWidth) - 1u;
    for (; b + kChunk <= shape.blocks; b += kChunk) {
      const Chunk<V, 4> zero(zeros + b / 2);
      total = V::fma(zero.first * V::load_even(scales + b, all, kEvens, 0.f), V::load_even(sums + b, all, kEvens, 0.f), total);
      total = V::fma(zero.second * V::load_even(scales + b + 1, all, kEvens, 0.f), V::load_even(sums + b + 1, all, kEvens, 0.f), total);
    }
  } else {
    for (; b + V::kWidth <= shape.blocks; b += V::kWidth)
      total = V::fma(V::load_u8(zeros + b) * V::load(scales + b), V::load(sums + b), total);
  }
  float rest = join_elements<V, Reduction<V, ReduceFn::kSum>>(total)[0];
  for (; b < shape.blocks; ++b) {
    const int zero = !zeros ? 1 << (kBits - 1) : kBits == 8 ? zeros[b] : zeros[b / 2] >> (b % 2 * 4) & 15;
    rest += scales[b] * static_cast<float>(zero) * sums[b];
  }
  return rest;
}

template <class V, int kBits, int kRows>
void nbits_rows(const NBitsShape& shape, const NBitsColumns& w, const float* a, const float* sums, float* y, int64_t y_row) {
  constexpr int kColumns = kRows == 1 ? 4 : 2;
  const int64_t a_row = shape.blocks * shape.block, column_bytes = a_row * kBits / 8, zero_bytes = (shape.blocks * kBits + 7) / 8;
  const auto store = [&](int64_t column, int columns, const float* tile) {
    for (int c = 0; c < columns; ++c) {
      const float* scales = w.scales + (column + c) * shape.blocks;
      const uint8_t* zeros = w.zeros ? w.zeros + (column + c) * zero_bytes : nullptr;
      for (int r = 0; r < kRows; ++r)
        y[r * y_row + column + c] = tile[r * columns + c] - nbits_shift<V, kBits>(shape, scales, zeros, sums + r * shape.blocks);
    }
  };
  float tile[kRows * kColumns];
  int64_t c = 0;
  for (; c + kColumns <= w.count; c += kColumns) {
    nbits_tile<V, kBits, kRows, kColumns>(shape, w.weight + c * column_bytes, w.scales + c * shape.blocks, a, a_row, tile);
    store(c, kColumns, tile);
  }
  for (; c < w.count; ++c) {
    nbits_tile<V, kBits, kRows, 1>(shape, w.weight + c * column_bytes, w.scales + c * shape.blocks, a, a_row, tile);
    store(c, 1, tile);
  }
}

template <class V, int kBits>
void nbits_product_of(const NBitsShape& shape, const NBitsColumns& w, const float* a, const float* sums, int64_t rows, float* y,
                      int64_t y_row) {
  const int64_t a_row = shape.blocks * shape.block;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) nbits_rows<V, kBits, 4>(shape, w, a + r * a_row, sums + r * shape.blocks, y + r * y_row, y_row);
  for (; r < rows; ++r) nbits_rows<V, kBits, 1>(shape, w, a + r * a_row, sums + r * shape.blocks, y + r * y_row, y_row);
}

template <class V>
void nbits_product(const NBitsShape& shape, const NBitsColumns& w, const float* a, const float* sums, int64_t rows, float* y,
                   int64_t y_row) {
  shape.bits == 4 ? nbits_product_of<V, 4>(shape, w, a, sums, rows, y, y_row) : nbits_product_of<V, 8>(shape, w, a, sums, rows, y, y_row);
}

/// One block as floats (q - zero) * scale: of 4 bits the even elements to even[0..), the odd ones to odd[0..); of 8 bits all to even[0..).
template <class V>
void nbits_block(const uint8_t* p, int64_t block, int64_t bits, float scale, float zero, float* even, float* odd) {
  const auto s = V::set(scale), z = V::set(zero);
  int64_t i = 0;
  for (; i + 2 * V::kWidth <= block; i += 2 * V::kWidth) {
    if (bits == 4) {
      const Chunk<V, 4> w(p + i / 2);
      V::store(even + i / 2, (w.first - z) * s);
      V::store(odd + i / 2, (w.second - z) * s);
    } else {
      const Chunk<V, 8> w(p + i);
      V::store(even + i, (w.first - z) * s);
      V::store(even + i + V::kWidth, (w.second - z) * s);
    }
  }
  for (; i < block; ++i) {
    const int q = bits == 8 ? p[i] : p[i / 2] >> (i % 2 * 4) & 15;
    float* to = bits == 8 ? even + i : i % 2 == 0 ? even + i / 2 : odd + i / 2;
    *to = (static_cast<float>(q) - zero) * scale;
  }
}

}  // namespace serin::kernels::cpu
