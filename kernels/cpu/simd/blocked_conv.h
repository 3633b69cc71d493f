// blocked_conv.h: The convolution on channel blocks, as tiles of kPixels x kBlocks vectors of y.
//
// A tile stays in registers over the whole of k. Each step loads one vector of weights for each block and broadcasts one word of x for each
// pixel. Both are read in memory order.
//
//   registers  32: 6 pixels x 4 blocks, 9 x 3, 14 x 2, 16 x 1        16: 4 x 3, 6 x 2, 12 x 1
//
// If windows overlap the border, a pixel's address is that of zeros: the inner loop has no conditions.
#pragma once

#include "kernels/cpu/simd/blocked.h"
#include "kernels/cpu/simd/blocked_words.h"

namespace serin::kernels::cpu {

template <class V>
constexpr bool kManyRegisters = V::kGemmRows > 8;
template <class V>
constexpr int kMaxBlocks = kManyRegisters<V> ? 4 : 3;
template <class V>
constexpr int kUsualBlocks = kManyRegisters<V> ? 4 : 2;
template <class V>
constexpr int kWindowTile = 6;

/// Pixels of a tile of the pointwise loop.
template <class V>
constexpr int point_tile_pixels(int blocks) {
  if (kManyRegisters<V>) return blocks == 4 ? 6 : blocks == 3 ? 9 : blocks == 2 ? 14 : 16;
  return blocks == 3 ? 4 : blocks == 2 ? 6 : 12;
}

/// Prefetches the weights of the next piece into the L2 cache while those of this one are used. Each step that all tiles take together
/// fetches some lines. If weights come from memory (7 x 7 images of many channels) this hides the wait for them.
template <class V>
struct FetchAhead {
  const float* at;
  int64_t lines;  // of 64 bytes, for each step

  FetchAhead(const BlockedPiece& to, int64_t k, int64_t tiles, int64_t steps_of_tile) {
    constexpr int64_t kLine = 16;
    const int64_t size = k * to.blocks * V::kWidth, steps = tiles * steps_of_tile;
    at = to.weight + size;
    lines = to.fetch_next ? (size / kLine + steps - 1) / steps : 0;
  }
  void step() {
    for (int64_t i = 0; i < lines; ++i, at += 16) __builtin_prefetch(at, 0, 2);
  }
};

template <class V, int kPixels, int kBlocks>
struct ConvTile {
  using F = typename V::F;
  static constexpr int64_t kWidth = V::kWidth;
  F sum[kPixels][kBlocks];

  void start(const BlockedPiece& to, const float* y, const float* residual) {
    if (!to.first) {
#pragma GCC unroll 32
      for (int i = 0; i < kPixels * kBlocks; ++i) {
        sum[i / kBlocks][i % kBlocks] = V::load(y + i % kBlocks * to.y_step + i / kBlocks * kWidth);
      }
      return;
    }
#pragma GCC unroll 4
    for (int q = 0; q < kBlocks; ++q) {
      const F bias = to.finish.bias ? V::load(to.finish.bias + q * kWidth) : V::set(0.f);
#pragma GCC unroll 32
      for (int p = 0; p < kPixels; ++p) sum[p][q] = bias;
    }
    if (!residual) return;
#pragma GCC unroll 32
    for (int i = 0; i < kPixels * kBlocks; ++i) {
      F& s = sum[i / kBlocks][i % kBlocks];
      s = s + V::load(residual + i % kBlocks * to.y_step + i / kBlocks * kWidth);
    }
  }

  void start_at_zero() {
#pragma GCC unroll 32
    for (int i = 0; i < kPixels * kBlocks; ++i) sum[i / kBlocks][i % kBlocks] = V::set(0.f);
  }
  void add(const ConvTile& other) {
#pragma GCC unroll 32
    for (int i = 0; i < kPixels * kBlocks; ++i) {
      F& s = sum[i / kBlocks][i % kBlocks];
      s = s + other.sum[i / kBlocks][i % kBlocks];
    }
  }

  void finish(const BlockedPiece& to, float* y) const {
    const F low = V::set(to.finish.low), high = V::set(to.finish.high);
#pragma GCC unroll 32
    for (int i = 0; i < kPixels * kBlocks; ++i) {
      F s = sum[i / kBlocks][i % kBlocks];
      if (to.last) s = V::min(high, V::max(low, s));  // NaN stays: both return their second operand for it
      V::store(y + i % kBlocks * to.y_step + i / kBlocks * kWidth, s);
    }
  }

  /// One element of k; x(p) is the address for pixel p.
  template <class Address>
  void step(const float* weight, Address&& x) {
    F w[kBlocks];
#pragma GCC unroll 4
    for (int q = 0; q < kBlocks; ++q) w[q] = V::load(weight + q * kWidth);
#pragma GCC unroll 32
    for (int p = 0; p < kPixels; ++p) {
      const F value = V::set(*x(p));
#pragma GCC unroll 4
      for (int q = 0; q < kBlocks; ++q) sum[p][q] = Words<V>::multiply_add(value, w[q], sum[p][q]);
    }
  }
};

template <class V, int kPixels, int kBlocks>
void point_tile(const PointPiece& g, int64_t pixel, FetchAhead<V>& ahead) {
  constexpr int64_t kWidth = V::kWidth, kWords = Words<V>::kOfBlock;
  float* const y = g.to.y + pixel * kWidth;
  ConvTile<V, kPixels, kBlocks> tile;
  tile.start(g.to, y, g.to.finish.residual ? g.to.finish.residual + pixel * kWidth : nullptr);
  const float* x = g.x + pixel * kWords;
  const float* w = g.to.weight;
  int64_t k = g.k;
  for (; k >= kWords; k -= kWords, x += g.x_step) {
    ahead.step();
    for (int64_t i = 0; i < kWords; ++i, w += kBlocks * kWidth) {
      tile.step(w, [&](int p) { return x + p * kWords + i; });
    }
  }
  for (int64_t i = 0; i < k; ++i, w += kBlocks * kWidth) {
    tile.step(w, [&](int p) { return x + p * kWords + i; });
  }
  tile.finish(g.to, y);
}

/// One pixel, in f32: each element of a group of four of k has its own sums, because a single chain of additions would wait for itself.
template <class V, int kBlocks>
void point_pixel(const PointPiece& g, int64_t pixel) {
  using F = typename V::F;
  constexpr int64_t kWidth = V::kWidth;
  float* const y = g.to.y + pixel * kWidth;
  ConvTile<V, 1, kBlocks> tile;
  tile.start(g.to, y, g.to.finish.residual ? g.to.finish.residual + pixel * kWidth : nullptr);
  F extra[3][kBlocks];
#pragma GCC unroll 12
  for (int i = 0; i < 3 * kBlocks; ++i) extra[i / kBlocks][i % kBlocks] = V::set(0.f);
  const float* x = g.x + pixel * kWidth;
  const float* w = g.to.weight;
  const auto four = [&](const float* from) {
    tile.step(w, [from](int) { return from; });
    w += kBlocks * kWidth;
#pragma GCC unroll 3
    for (int r = 0; r < 3; ++r, w += kBlocks * kWidth) {
      const F value = V::set(from[r + 1]);
#pragma GCC unroll 4
      for (int q = 0; q < kBlocks; ++q) extra[r][q] = V::accumulate(value, V::load(w + q * kWidth), extra[r][q]);
    }
  };
  int64_t k = g.k;
  for (; k >= kWidth; k -= kWidth, x += g.x_step) {
    for (int64_t i = 0; i < kWidth; i += 4) four(x + i);
  }
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) four(x + i);
  for (; i < k; ++i, w += kBlocks * kWidth) {
    tile.step(w, [&](int) { return x + i; });
  }
#pragma GCC unroll 4
  for (int q = 0; q < kBlocks; ++q) tile.sum[0][q] = (tile.sum[0][q] + extra[0][q]) + (extra[1][q] + extra[2][q]);
  tile.finish(g.to, y);
}

template <class V, int kPixels, int kBlocks>
void point_rest(const PointPiece& g, int64_t pixel, int64_t pixels, FetchAhead<V>& ahead) {
  if constexpr (kPixels == 1 && Words<V>::kOfBlock == V::kWidth) {
    if (pixels == 1) point_pixel<V, kBlocks>(g, pixel);
  } else if constexpr (kPixels > 0) {
    if (pixels == kPixels)
      point_tile<V, kPixels, kBlocks>(g, pixel, ahead);
    else
      point_rest<V, kPixels - 1, kBlocks>(g, pixel, pixels, ahead);
  }
}

template <class V, int kBlocks>
void point_tiles(const PointPiece& g) {
  constexpr int kPixels = point_tile_pixels<V>(kBlocks);
  constexpr int64_t kWords = Words<V>::kOfBlock;
  FetchAhead<V> ahead(g.to, g.k, (g.to.pixels + kPixels - 1) / kPixels, (g.k + kWords - 1) / kWords);
  int64_t pixel = 0;
  for (; pixel + kPixels <= g.to.pixels; pixel += kPixels) point_tile<V, kPixels, kBlocks>(g, pixel, ahead);
  point_rest<V, kPixels - 1, kBlocks>(g, pixel, g.to.pixels - pixel, ahead);
}

template <class V>
void conv_point(const PointPiece& g) {
  if constexpr (kManyRegisters<V>) {
    if (g.to.blocks == 4) return point_tiles<V, 4>(g);
  }
  if (g.to.blocks == 3) return point_tiles<V, 3>(g);
  g.to.blocks == 2 ? point_tiles<V, 2>(g) : point_tiles<V, 1>(g);
}

/// Without a branch, which nothing predicts where windows cross the border: images of 7 x 7 are 5 % faster.
template <class V>
const float* inside_or_zeros(const float* x, int64_t offset, const float* zeros) {
  const auto base = reinterpret_cast<uintptr_t>(zeros),
             address = reinterpret_cast<uintptr_t>(x) + sizeof(float) * static_cast<uintptr_t>(offset);
  return reinterpret_cast<const float*>(base + ((address - base) & -static_cast<uintptr_t>(offset != kOutside)));
}

/// One block has six sums, and each addition waits for the last one of its sum. Processors that begin two multiply-adds a cycle, of four
/// cycles each, need eight. So every second element of k has sums of its own.
template <class V, bool kBorder, int kPixels, int kBlocks>
void window_tile(const WindowPiece& g, int64_t pixel, FetchAhead<V>& ahead) {
  constexpr int64_t kWidth = V::kWidth;
  float* const y = g.to.y + pixel * kWidth;
  ConvTile<V, kPixels, kBlocks> tile;
  tile.start(g.to, y, g.to.finish.residual ? g.to.finish.residual + pixel * kWidth : nullptr);
  [[maybe_unused]] ConvTile<V, kPixels, kBlocks> second;
  if constexpr (kBlocks == 1) second.start_at_zero();
  const int64_t* offsets = nullptr;  // half a tile may begin in the middle of one
  if constexpr (kBorder) offsets = g.offsets + pixel / kWindowTile<V> * g.cells * kWindowTile<V> + pixel % kWindowTile<V>;
  const float* w = g.to.weight;
  const float* x = g.x;
  for (int64_t block = 0; block < g.blocks; ++block, x += g.x_step) {
    const int64_t run = block + 1 < g.blocks ? g.run : g.last_run;
    for (int64_t cell = 0; cell < g.cells; ++cell) {
      ahead.step();
      const float* at[kPixels];
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
        if constexpr (kBorder) {
          at[p] = inside_or_zeros<V>(x, offsets[cell * kWindowTile<V> + p], g.zeros);
        } else {
          at[p] = x + g.pixel_at[pixel + p] + g.cell_at[cell];
        }
      }
      int64_t i = 0;
      if constexpr (kBlocks == 1) {
        for (; i + 2 <= run; i += 2, w += 2 * kWidth) {
          tile.step(w, [&](int p) { return at[p] + i; });
          second.step(w + kWidth, [&](int p) { return at[p] + i + 1; });
        }
      }
      for (; i < run; ++i, w += kBlocks * kWidth) {
        tile.step(w, [&](int p) { return at[p] + i; });
      }
    }
  }
  if constexpr (kBlocks == 1) tile.add(second);
  tile.finish(g.to, y);
}

template <class V, bool kBorder, int kPixels, int kBlocks>
void window_rest(const WindowPiece& g, int64_t pixel, int64_t pixels, FetchAhead<V>& ahead) {
  if constexpr (kPixels > 0) {
    if (pixels == kPixels)
      window_tile<V, kBorder, kPixels, kBlocks>(g, pixel, ahead);
    else
      window_rest<V, kBorder, kPixels - 1, kBlocks>(g, pixel, pixels, ahead);
  }
}

template <class V, bool kBorder, int kBlocks>
void window_tiles(const WindowPiece& g) {
  constexpr int kPixels = !kManyRegisters<V> && kBlocks == 3 ? kWindowTile<V> / 2 : kWindowTile<V>;
  const int64_t k = ((g.blocks - 1) * g.run + g.last_run) * g.cells;
  FetchAhead<V> ahead(g.to, k, (g.to.pixels + kPixels - 1) / kPixels, g.blocks * g.cells);
  int64_t pixel = 0;
  for (; pixel + kPixels <= g.to.pixels; pixel += kPixels) window_tile<V, kBorder, kPixels, kBlocks>(g, pixel, ahead);
  window_rest<V, kBorder, kPixels - 1, kBlocks>(g, pixel, g.to.pixels - pixel, ahead);
}

template <class V, bool kBorder>
void window_blocks(const WindowPiece& g) {
  if constexpr (kManyRegisters<V>) {
    if (g.to.blocks == 4) return window_tiles<V, kBorder, 4>(g);
  }
  if (g.to.blocks == 3) return window_tiles<V, kBorder, 3>(g);
  g.to.blocks == 2 ? window_tiles<V, kBorder, 2>(g) : window_tiles<V, kBorder, 1>(g);
}

template <class V>
void conv_window(const WindowPiece& g) {
  g.offsets ? window_blocks<V, true>(g) : window_blocks<V, false>(g);
}

}  // namespace serin::kernels::cpu
