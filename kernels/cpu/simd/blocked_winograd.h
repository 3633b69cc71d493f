// blocked_winograd.h: The two transforms around the products of Winograd's convolution (Lavin & Gray, arXiv:1509.09308), 3 x 3 cells,
// stride 1.
//
//   y = A' [ (G g G') . (B' d B) ] A      d: a tile of (m + 2)^2 inputs, y: m^2 outputs, tiles of d overlap by 2
//
// The direct sum needs 144 multiplications for m = 4, this 36. For m = 2 it needs 36, this 16. A vector contains the same pixel of b
// channels, so the transforms are additions of whole vectors. The weights' transform G g G' is computed at preparation, in double
// (kernels/cpu/conv_blocked_winograd.cc).
//
// The matrices come from points at which polynomials are evaluated (Toom-Cook): 0, +-1, infinity for m = 2. For m = 4 the usual points 0,
// +-1, +-2, infinity mix 1/24 with 8 and lose digits. With 0, +-2/3, +-3/2, infinity the largest error over 128 channels falls from 5.3e-6
// to 1.5e-6 of the largest result. The mean error falls to twice that of the direct sum. Because the product of the points is 1, the
// matrices are as sparse as the usual ones.
#pragma once

#include "kernels/cpu/simd/blocked.h"
#include "kernels/cpu/simd/blocked_words.h"

namespace serin::kernels::cpu {

template <class V, int kM>
struct WinogradLines;

/// One line of B' d and of A' s: the matrices written out.
template <class V>
struct WinogradLines<V, 4> {
  using F = typename V::F;
  static constexpr float kP = 2.f / 3, kQ = 3.f / 2;  // the points, kP * kQ = 1
  static void input(const F (&d)[6], F (&v)[6]) {
    const F p = V::set(kP), q = V::set(kQ), minus_pp = V::set(-kP * kP), minus_qq = V::set(-kQ * kQ),
            minus_sum = V::set(-kP * kP - kQ * kQ);
    const F even_p = V::fma(minus_qq, d[2], d[4]), odd_p = V::fma(p, d[3], -(q * d[1]));
    const F even_q = V::fma(minus_pp, d[2], d[4]), odd_q = V::fma(q, d[3], -(p * d[1]));
    v[0] = V::fma(minus_sum, d[2], d[0] + d[4]);
    v[1] = even_p + odd_p;
    v[2] = even_p - odd_p;
    v[3] = even_q + odd_q;
    v[4] = even_q - odd_q;
    v[5] = V::fma(minus_sum, d[3], d[1] + d[5]);
  }
  static void output(const F (&s)[6], F (&y)[4]) {
    const F sum_p = s[1] + s[2], difference_p = s[1] - s[2], sum_q = s[3] + s[4], difference_q = s[3] - s[4];
    y[0] = s[0] + (sum_p + sum_q);
    y[1] = V::fma(V::set(kP), difference_p, V::set(kQ) * difference_q);
    y[2] = V::fma(V::set(kP * kP), sum_p, V::set(kQ * kQ) * sum_q);
    y[3] = V::fma(V::set(kP * kP * kP), difference_p, V::fma(V::set(kQ * kQ * kQ), difference_q, s[5]));
  }
};

template <class V>
struct WinogradLines<V, 2> {
  using F = typename V::F;
  static void input(const F (&d)[4], F (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
  }
  static void output(const F (&s)[4], F (&y)[2]) {
    y[0] = s[0] + s[1] + s[2];
    y[1] = s[1] - s[2] - s[3];
  }
};

/// v[position, tile] = B' d B, in words, for the tiles of the plane x [h, w, b].
template <class V, int kM>
void winograd_input(const WinogradPlane& g, const float* x, float* v) {
  using F = typename V::F;
  constexpr int kN = kM + 2;
  constexpr int64_t kWidth = V::kWidth;
  const int64_t columns = (g.ow + kM - 1) / kM;
  for (int64_t tile = g.first; tile < g.first + g.count; ++tile, v += Words<V>::kOfBlock) {
    const int64_t row = tile / columns * kM - g.pad_h, column = tile % columns * kM - g.pad_w;
    F half[kN][kN];  // [column of d, row of B' d]
    for (int c = 0; c < kN; ++c) {
      F d[kN];
      const bool outside = column + c < 0 || column + c >= g.w;
#pragma GCC unroll 6
      for (int r = 0; r < kN; ++r) {
        const int64_t at = row + r;
        d[r] = outside || at < 0 || at >= g.h ? V::set(0.f) : V::load(x + (at * g.w + column + c) * kWidth);
      }
      WinogradLines<V, kM>::input(d, half[c]);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kN; ++r) {
      F line[kN], out[kN];
#pragma GCC unroll 6
      for (int c = 0; c < kN; ++c) line[c] = half[c][r];
      WinogradLines<V, kM>::input(line, out);
#pragma GCC unroll 6
      for (int c = 0; c < kN; ++c) Words<V>::store(v + (r * kN + c) * g.step, out[c]);
    }
  }
}

/// The pixels of y [oh, ow, b] that the tiles cover = A' products A, finished.
template <class V, int kM>
void winograd_output(const WinogradPlane& g, const float* products, const BlockedFinish& finish, float* y) {
  using F = typename V::F;
  constexpr int kN = kM + 2;
  constexpr int64_t kWidth = V::kWidth;
  const int64_t columns = (g.ow + kM - 1) / kM;
  const F bias = finish.bias ? V::load(finish.bias) : V::set(0.f);
  const F low = V::set(finish.low), high = V::set(finish.high);
  for (int64_t tile = g.first; tile < g.first + g.count; ++tile, products += kWidth) {
    const int64_t row = tile / columns * kM, column = tile % columns * kM;
    const int rows = g.oh - row < kM ? static_cast<int>(g.oh - row) : kM, width = g.ow - column < kM ? static_cast<int>(g.ow - column) : kM;
    F half[kN][kM];  // [column of the products, row of y]
#pragma GCC unroll 6
    for (int c = 0; c < kN; ++c) {
      F s[kN];
#pragma GCC unroll 6
      for (int r = 0; r < kN; ++r) s[r] = V::load(products + (r * kN + c) * g.step);
      WinogradLines<V, kM>::output(s, half[c]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kM; ++r) {
      if (r >= rows) break;
      F line[kN], out[kM];
#pragma GCC unroll 6
      for (int c = 0; c < kN; ++c) line[c] = half[c][r];
      WinogradLines<V, kM>::output(line, out);
      const int64_t at = ((row + r) * g.ow + column) * kWidth;
#pragma GCC unroll 4
      for (int c = 0; c < kM; ++c) {
        if (c >= width) break;
        F value = out[c] + bias;
        if (finish.residual) value = value + V::load(finish.residual + at + c * kWidth);
        V::store(y + at + c * kWidth, V::min(high, V::max(low, value)));
      }
    }
  }
}

}  // namespace serin::kernels::cpu
