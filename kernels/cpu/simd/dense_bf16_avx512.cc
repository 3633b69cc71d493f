// dense_bf16_avx512.cc: the tile of dense_gemm.h on AVX512-BF16: 8 rows x 3 vectors, two steps of k with each instruction. Compiled with
// -mavx512bf16 and the AVX-512 flags; a vector type of its own, so that no template instance is shared with files that are compiled without.

#include "kernels/cpu/simd/dense_bf16.h"
#include "kernels/cpu/simd/dense_gemm.h"
#include "kernels/cpu/simd/vec_avx512.h"

namespace serin::kernels::cpu {

namespace {

struct VecBf16 : VecAvx512 {};

constexpr int kRows = 8, kVectors = 3, kWidth = VecBf16::kWidth;

template <int kTile, int kColumns, bool kPrefetch>
void tile(const Bf16Block& g, const uint16_t* a, float* y, int64_t row, const char*& ahead) {
  fetch_results<VecBf16, kTile, kColumns>(y, g.y_row, g.finish, row);
  __m512 sum[kTile][kColumns];
#pragma GCC unroll 32
  for (int i = 0; i < kTile * kColumns; ++i) sum[i / kColumns][i % kColumns] = _mm512_setzero_ps();
  const uint16_t* b = g.b;
  const char* line = ahead;
  const auto step = [&]() __attribute__((always_inline)) {
    __m512bh column[kColumns];
#pragma GCC unroll 4
    for (int v = 0; v < kColumns; ++v) column[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * 2 * kWidth));
#pragma GCC unroll 16
    for (int r = 0; r < kTile; ++r) {
      int pair;
      __builtin_memcpy(&pair, a + r * g.a_row, sizeof pair);
      const __m512bh value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 4
      for (int v = 0; v < kColumns; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], value, column[v]);
    }
    a += 2;
    b += g.b_row;
  };
  int64_t p = g.pairs;
  for (; p >= 4; p -= 4) {
    step(), step(), step(), step();
    if constexpr (kPrefetch) {
      _mm_prefetch(line, _MM_HINT_T1);
      _mm_prefetch(line + 64, _MM_HINT_T1);
      line += 128;
    }
  }
  for (; p > 0; --p) step();
  ahead = line;

  store_tile<VecBf16>(sum, y, g.y_row, static_cast<int>(g.n) - (kColumns - 1) * kWidth, g.accumulate, g.finish, row);
}

template <int kTile, int kColumns, bool kPrefetch>
void tile_of(int64_t rows, const Bf16Block& g, const uint16_t* a, float* y, int64_t row, const char*& ahead) {
  if constexpr (kTile > 0) {
    if (rows == kTile)
      tile<kTile, kColumns, kPrefetch>(g, a, y, row, ahead);
    else
      tile_of<kTile - 1, kColumns, kPrefetch>(rows, g, a, y, row, ahead);
  }
}

template <int kColumns, bool kPrefetch>
void tiles(const Bf16Block& g) {
  const int64_t count = (g.m + kRows - 1) / kRows;
  const char* ahead = reinterpret_cast<const char*>(g.next);
  const FinishRows finish = g.finish && g.finish->fn != UnaryFn::kIdentity ? finish_of<VecBf16>(g.finish->fn) : nullptr;
  for (int64_t i = 0, row = 0; i < count; ++i) {
    const int64_t rows = g.m / count + (i < g.m % count ? 1 : 0);
    float* const y = g.y + row * g.y_row;
    tile_of<kRows, kColumns, kPrefetch>(rows, g, g.a + row * g.a_row, y, row, ahead);
    if (finish) finish(y, g.y_row, rows, g.n, *g.finish);
    row += rows;
  }
}

template <int kColumns>
void columns(const Bf16Block& g) {
  g.next&& g.m > 2 * kRows ? tiles<kColumns, true>(g) : tiles<kColumns, false>(g);
}

void gemm(const Bf16Block& g) {
  if (g.n > 2 * kWidth) return columns<3>(g);
  g.n > kWidth ? columns<2>(g) : columns<1>(g);
}

void round(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const int width = n - i < kWidth ? static_cast<int>(n - i) : kWidth;
    const __m256i rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(VecBf16::load_n(x + i, width, 0.f)));
    _mm256_mask_storeu_epi16(y + i, static_cast<__mmask16>((1u << width) - 1u), rounded);
  }
}

}  // namespace

const Bf16Loops kBf16Avx512 = {.panel_width = kVectors * kWidth, .gemm = &gemm, .round = &round, .attention = &kAttentionBf16Avx512};

}  // namespace serin::kernels::cpu
