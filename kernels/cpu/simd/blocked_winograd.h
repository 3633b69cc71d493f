// blocked_winograd.h: the two transforms around the products of Winograd's convolution (Lavin & Gray, arXiv:1509.09308), 3 x 3 cells, stride 1.
//
//   y = A' [ (G g G') . (B' d B) ] A      d: a tile of (m + 2)^2 inputs, y: m^2 outputs, tiles of d overlap by 2
//
// m = 4 needs 36 multiplications where the direct sum needs 144, m = 2 needs 16 for 36. A vector holds the same pixel of b channels, so the transforms
// are additions of whole vectors. The weights' transform G g G' is computed at preparation, in double (kernels/cpu/conv_winograd.cc). B and A are
// those of the points 0, +-1, +-2, infinity for m = 4, and 0, +-1, infinity for m = 2.
#pragma once

#include "kernels/cpu/simd/blocked.h"

namespace serin::kernels::cpu {

template <class V, int kM>
struct WinogradLines;

/// One line of B' d and of A' s: the matrices written out.
template <class V>
struct WinogradLines<V, 4> {
  using F = typename V::F;
  static void input(const F (&d)[6], F (&v)[6]) {
    const F four = V::set(4.f), minus4 = V::set(-4.f), minus5 = V::set(-5.f), two = V::set(2.f);
    const F even = V::fma(minus4, d[2], d[4]), odd = V::fma(minus4, d[1], d[3]);
    const F near = d[4] - d[2], far = two * (d[3] - d[1]);
    v[0] = V::fma(four, d[0], V::fma(minus5, d[2], d[4]));
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = near + far;
    v[4] = near - far;
    v[5] = V::fma(four, d[1], V::fma(minus5, d[3], d[5]));
  }
  static void output(const F (&s)[6], F (&y)[4]) {
    const F sum1 = s[1] + s[2], difference1 = s[1] - s[2], sum2 = s[3] + s[4], difference2 = s[3] - s[4];
    y[0] = s[0] + sum1 + sum2;
    y[1] = V::fma(V::set(2.f), difference2, difference1);
    y[2] = V::fma(V::set(4.f), sum2, sum1);
    y[3] = V::fma(V::set(8.f), difference2, difference1) + s[5];
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

/// v[position, tile] = B' d B for the tiles of the plane x [h, w, b].
template <class V, int kM>
void winograd_input(const WinogradPlane& g, const float* x, float* v) {
  using F = typename V::F;
  constexpr int kN = kM + 2;
  constexpr int64_t kWidth = V::kWidth;
  const int64_t columns = (g.ow + kM - 1) / kM;
  for (int64_t tile = g.first; tile < g.first + g.count; ++tile, v += kWidth) {
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
      for (int c = 0; c < kN; ++c) V::store(v + (r * kN + c) * g.step, out[c]);
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
