// trigonometry.h: Circular and hyperbolic functions of a vector of floats and their inverses, within 4 ulp of the true value.
//
// sin, cos, asin, acos and atan are within 2.5 ulp. Without fused multiply-add the error around the zeros of sin and cos is 1e-11 larger.
// Special values are those of functors.h.
//
// sin and cos reduce x by the nearest multiple of pi / 2, which is subtracted in parts (Cody and Waite). Fused, a part may have all bits of
// a float; unfused it has 9, so that its product with n is exact. That works up to kLargestAngle; beyond it the loops call the C library
// (elementwise.h). The polynomials are those of Cephes (netlib.org/cephes).
#pragma once

#include "kernels/cpu/simd/math.h"

namespace serin::kernels::cpu::math {

inline constexpr float kLargestAngle = 51000.f;  // n < 2^15
inline constexpr float kHalfPi = 1.57079632679489662f, kLn2 = 0.693147180559945309f;

/// x - n pi / 2.
template <class V>
typename V::F minus_half_pis(typename V::F x, typename V::F n) {
  static constexpr float kWhole[] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};
  static constexpr float kExact[] = {0x1.92p+0f, 0x1.fbp-12f, 0x1.51p-22f, 0x1.0bp-34f, 0x1.184698p-44f};
  if constexpr (V::kFused) {
    for (const float part : kWhole) x = V::fma(-n, V::set(part), x);
  } else {
    for (const float part : kExact) x = V::fma(-n, V::set(part), x);
  }
  return x;
}

/// The sines and cosines of an angle, which give all three functions: |r| <= pi / 4, `quadrant` in {0, 1, 2, 3}.
template <class V>
struct Angle {
  typename V::F sin, cos, quadrant;

  explicit Angle(typename V::F x) {
    using F = typename V::F;
    static constexpr float kSin[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
    static constexpr float kCos[] = {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};
    const F n = V::round(x * V::set(0.636619772367581343f));
    const F r = minus_half_pis<V>(x, n), z = r * r;
    sin = V::fma(r * z, polynomial<V>(z, kSin), r);
    cos = V::fma(z * z, polynomial<V>(z, kCos), V::fma(V::set(-0.5f), z, V::set(1.f)));
    quadrant = n - V::set(4.f) * V::floor(n * V::set(0.25f));
  }

  /// The sine of the angle plus `quarters` quarter turns.
  typename V::F sine_after(float quarters) const {
    auto q = quadrant + V::set(quarters);
    q = V::blend(V::less(q, V::set(4.f)), q, q - V::set(4.f));
    const auto upper = V::less(q, V::set(2.f));
    const auto odd = V::equal(V::blend(upper, q, q - V::set(2.f)), V::set(1.f));
    const auto value = V::blend(odd, cos, sin);
    return V::blend(upper, value, -value);
  }
};

template <class V>
typename V::F sin(typename V::F x) {
  // A sine that underflows equals its angle; -0 stays.
  return V::blend(V::less(V::abs(x), V::set(1e-18f)), x, Angle<V>(x).sine_after(0));
}
template <class V>
typename V::F cos(typename V::F x) {
  return Angle<V>(x).sine_after(1);
}
template <class V>
typename V::F tan(typename V::F x) {
  const Angle<V> angle(x);
  return V::blend(V::less(V::abs(x), V::set(1e-18f)), x, angle.sine_after(0) / angle.sine_after(1));
}

/// asin x for |x| <= 1/2.
template <class V>
typename V::F asin_near(typename V::F x) {
  static constexpr float kFit[] = {4.2163199048e-2f, 2.4181311049e-2f, 4.5470025998e-2f, 7.4953002686e-2f, 1.6666752422e-1f};
  const auto z = x * x;
  return V::fma(polynomial<V>(z, kFit) * z, x, x);
}
/// asin sqrt((1 - size) / 2), used near the ends of the range: NaN beyond them.
template <class V>
typename V::F asin_from_end(typename V::F size) {
  return asin_near<V>(V::sqrt(V::set(0.5f) * (V::set(1.f) - size)));
}

template <class V>
typename V::F asin(typename V::F x) {
  const auto size = V::abs(x);
  const auto far = V::fma(V::set(-2.f), asin_from_end<V>(size), V::set(kHalfPi));
  return V::blend(V::less_equal(size, V::set(0.5f)), asin_near<V>(x), V::copysign(far, x));
}
template <class V>
typename V::F acos(typename V::F x) {
  const auto size = V::abs(x);
  const auto end = V::set(2.f) * asin_from_end<V>(size);
  const auto far = V::blend(V::less(x, V::set(0.f)), V::set(2 * kHalfPi) - end, end);
  return V::blend(V::less_equal(size, V::set(0.5f)), V::set(kHalfPi) - asin_near<V>(x), far);
}

/// Around 0, around 1 as pi / 4 + atan((x - 1) / (x + 1)), and from infinity as pi / 2 - atan(1 / x).
template <class V>
typename V::F atan(typename V::F x) {
  static constexpr float kFit[] = {8.05374449538e-2f, -1.38776856032e-1f, 1.99777106478e-1f, -3.33329491539e-1f};
  const auto size = V::abs(x), one = V::set(1.f);
  const auto far = V::less(V::set(2.414213562373095f), size), near = V::less_equal(size, V::set(0.4142135623730950f));
  const auto above = V::blend(far, -one, V::blend(near, size, size - one));
  const auto below = V::blend(far, size, V::blend(near, one, size + one));
  const auto start = V::blend(far, V::set(kHalfPi), V::blend(near, V::set(0.f), V::set(kHalfPi / 2)));
  const auto t = above / below, z = t * t;
  return V::copysign(start + V::fma(polynomial<V>(z, kFit) * z, t, t), x);
}

/// With e = exp(|x| / 2), e e / 2 overflows exactly when the result does.
template <class V>
typename V::F sinh(typename V::F x) {
  static constexpr float kNear[] = {2.03721912945e-4f, 8.33028376239e-3f, 1.66667160211e-1f};
  const auto size = V::abs(x), half = V::set(0.5f), z = x * x;
  const auto e = exp<V>(half * size);
  const auto far = half * e * e - half / e / e;
  return V::blend(V::less(size, V::set(1.f)), V::fma(polynomial<V>(z, kNear) * z, x, x), V::copysign(far, x));
}
template <class V>
typename V::F cosh(typename V::F x) {
  const auto half = V::set(0.5f);
  const auto e = exp<V>(half * V::abs(x));
  return half * e * e + half / e / e;
}

template <class V>
typename V::F asinh(typename V::F x) {
  static constexpr float kNear[] = {2.0122003309e-2f, -4.2699340972e-2f, 7.4847586088e-2f, -1.6666288134e-1f};
  const auto size = V::abs(x), z = x * x, one = V::set(1.f);
  const auto huge = V::less(V::set(1e4f), size);  // the root is x, and its square overflows soon
  const auto far = log<V>(V::blend(huge, size, size + V::sqrt(z + one))) + V::blend(huge, V::set(kLn2), V::set(0.f));
  return V::copysign(V::blend(V::less(size, V::set(0.5f)), V::fma(polynomial<V>(z, kNear) * z, size, size), far), x);
}
template <class V>
typename V::F acosh(typename V::F x) {
  static constexpr float kNear[] = {1.7596881071e-3f, -7.5272886713e-3f, 2.6454905019e-2f, -1.1784741703e-1f, 1.4142135263e0f};
  const auto one = V::set(1.f), z = x - one;
  const auto huge = V::less(V::set(1e4f), x);
  const auto far = log<V>(V::blend(huge, x, x + V::sqrt(z * (x + one)))) + V::blend(huge, V::set(kLn2), V::set(0.f));
  return V::blend(V::less(z, V::set(0.5f)), polynomial<V>(z, kNear) * V::sqrt(z), far);
}
template <class V>
typename V::F atanh(typename V::F x) {
  static constexpr float kNear[] = {1.81740078349e-1f, 8.24370301058e-2f, 1.46691431730e-1f, 1.99782164500e-1f, 3.33337300303e-1f};
  const auto one = V::set(1.f), z = x * x;
  const auto far = V::set(0.5f) * log<V>((one + x) / (one - x));
  return V::blend(V::less(V::abs(x), V::set(0.5f)), V::fma(polynomial<V>(z, kNear) * z, x, x), far);
}

}  // namespace serin::kernels::cpu::math
