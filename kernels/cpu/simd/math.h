// math.h: Elementary functions of a vector of floats, within 2 ulp (gelu and softplus: 8) of the true value; special values as functors.h.
//
// exp, log and tanh are the classic Cephes reductions and polynomials (netlib.org/cephes). The polynomials of erf, gelu and 2^x are our own
// fits for the least relative error. Compare-and-blend replaces branches: both sides are always computed. An unused side may be NaN only if
// blend discards it.
#pragma once

namespace serin::kernels::cpu::math {

/// c[0] x^(n-1) + ... + c[n-1].
template <class V, int kTerms>
typename V::F polynomial(typename V::F x, const float (&c)[kTerms]) {
  typename V::F y = V::set(c[0]);
#pragma GCC unroll 16
  for (int i = 1; i < kTerms; ++i) y = V::fma(y, x, V::set(c[i]));
  return y;
}

/// Numerator of e^r = 1 + r + r^2 p(r), |r| <= ln(2) / 2.
template <class V>
typename V::F exp_tail(typename V::F r) {
  static constexpr float kTail[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                    4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  return polynomial<V>(r, kTail);
}

/// e^x = 2^n e^r with x = n ln 2 + r, for any n that scale2 takes.
template <class V>
typename V::F exp_in_range(typename V::F x) {
  using F = typename V::F;
  const F n = V::round(x * V::set(1.44269504088896341f));
  F r = V::fma(n, V::set(-0.693359375f), x);  // ln 2 in two parts, so that n ln 2 is exact
  r = V::fma(n, V::set(2.12194440e-4f), r);
  const F y = V::fma(r * r, exp_tail<V>(r), r) + V::set(1.f);
  return V::scale2(y, n);
}

/// Beyond -104 and 89 the results are 0 and infinity. -104 itself is no limit, because of Intel's processors. They take 75 ns for a vector in
/// which an element underflows from 2^-127 to 2^-152, or to 2^-512 with AVX-512's instruction, and 1 ns beyond.
template <class V>
typename V::F exp(typename V::F x) {
  constexpr float kLeast = requires { V::fraction(x); } ? -360.f : -112.f;
  return exp_in_range<V>(V::max(V::set(kLeast), V::min(V::set(89.f), x)));  // keeps NaN
}

/// e^x for differences to a maximum, which are 0 or below it: 0 where e^x would be subnormal. Masks that exporters write as -100 would
/// otherwise cost Intel's processors 75 ns for each vector, here and where the result is multiplied.
template <class V>
typename V::F exp_of_difference(typename V::F x) {
  const typename V::F least = V::set(-87.f);
  return V::blend(V::less(x, least), V::set(0.f), exp_in_range<V>(V::max(least, x)));  // keeps NaN
}

/// e^x - 1, without the cancellation near 0.
template <class V>
typename V::F expm1(typename V::F x) {
  const typename V::F near = V::fma(x * x, exp_tail<V>(x), x);
  return V::blend(V::less(V::abs(x), V::set(0.3f)), near, exp<V>(x) - V::set(1.f));
}

/// log x = e log 2 + log m with sqrt(1/2) <= m < sqrt(2).
template <class V>
typename V::F log(typename V::F x) {
  using F = typename V::F;
  static constexpr float kLog[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f, 1.4249322787e-1f,
                                   -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const auto subnormal = V::less(x, V::set(0x1p-126f));
  const F normal = V::blend(subnormal, x * V::set(0x1p25f), x);
  F e = V::exponent(normal) - V::blend(subnormal, V::set(25.f), V::set(0.f));
  F m = V::mantissa(normal);
  const auto high = V::less(V::set(1.41421356237f), m);
  m = V::blend(high, m * V::set(0.5f), m) - V::set(1.f);
  e = V::blend(high, e + V::set(1.f), e);
  const F z = m * m;
  F y = m * z * polynomial<V>(m, kLog);
  y = V::fma(e, V::set(-2.12194440e-4f), y);
  y = V::fma(z, V::set(-0.5f), y);
  y = V::fma(e, V::set(0.693359375f), m + y);

  const F infinity = V::set(__builtin_inff());
  y = V::blend(V::less(x, infinity), y, x);  // +Inf and NaN
  y = V::blend(V::equal(x, V::set(0.f)), -infinity, y);
  return V::blend(V::less(x, V::set(0.f)), V::set(__builtin_nanf("")), y);
}

template <class V>
typename V::F tanh(typename V::F x) {
  using F = typename V::F;
  static constexpr float kNear[] = {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f};
  const F size = V::abs(x);
  const F z = x * x;
  const F near = V::fma(polynomial<V>(z, kNear) * z, x, x);
  const F far = V::set(1.f) - V::set(2.f) / (exp<V>(size + size) + V::set(1.f));
  return V::blend(V::less(size, V::set(0.625f)), near, V::copysign(far, x));
}

/// e^-|x| for functions that add 1 to it. If there are instructions for it: 2^t = 2^floor(t) 2^fraction(t). Here t = -|x| / ln 2; rounding
/// t costs a relative error of 6e-8 |x|, which the sum hides except for large negative x.
template <class V>
typename V::F exp_minus_abs(typename V::F x) {
  if constexpr (requires { V::fraction(x); }) {
    static constexpr float kPower[] = {1.8775762645e-03f, 8.9893410844e-03f, 5.5826317219e-02f,
                                       2.4015361733e-01f, 6.9315307317e-01f, 9.9999992506e-01f};
    const typename V::F t = V::abs(x) * V::set(-1.44269504088896341f);
    return V::scale2(polynomial<V>(V::fraction(t), kPower), t);
  } else {
    return exp<V>(-V::abs(x));
  }
}

template <class V>
typename V::F sigmoid(typename V::F x) {
  const typename V::F z = exp_minus_abs<V>(x);
  return V::blend(V::less(x, V::set(0.f)), z, V::set(1.f)) / (V::set(1.f) + z);
}

/// x sigmoid(x).
template <class V>
typename V::F silu(typename V::F x) {
  const typename V::F z = exp_minus_abs<V>(x);
  return V::blend(V::less(x, V::set(0.f)), x * z, x) / (V::set(1.f) + z);
}

/// Near 0 as x + x p(x^2), farther out as 1 - e^-q(|x|). p and q are fitted to relative errors of 2e-8 and 2e-9 of erf. From 3.95 on it is
/// 1.
template <class V>
typename V::F erf(typename V::F x) {
  using F = typename V::F;
  static constexpr float kNear[] = {-0.000599087274f, 0.00499318494f, -0.0267666206f, 0.112818167f, -0.376124948f, 0.128379151f};
  static constexpr float kFar[] = {-0.000195720713f, 0.00304109324f, -0.0222184528f, 0.10391403f,
                                   0.637202263f,     1.12766373f,    0.000198554684f};
  const F size = V::abs(x);
  const F near = V::fma(polynomial<V>(x * x, kNear), x, x);
  const F far = V::set(1.f) - exp_minus_abs<V>(polynomial<V>(V::min(V::set(3.95f), size), kFar));
  return V::blend(V::less(size, V::set(0.921875f)), near, V::copysign(far, x));
}

/// x Phi(x): for x < 0 as x erfc(-x / sqrt 2) / 2, whose relative error stays small, while 1 + erf would cancel. erfc(z) / 2 = e^(-z^2) t
/// p(t) with t = 1 / (1 + 0.3 sqrt 2 z). p is fitted to a relative error of 1.5e-7 up to z = 10, where the product is 0.
template <class V>
typename V::F gelu(typename V::F x) {
  using F = typename V::F;
  static constexpr float kFit[] = {0.035674803f, -0.157203197f, 0.206353694f, -0.0536838099f,
                                   0.128561705f, 0.0999134704f, 0.120753959f, 0.119629301f};
  const F z = V::abs(x) * V::set(0.70710678118654752f);
  const F t = V::set(1.f) / V::fma(V::set(0.42426406871192851f), z, V::set(1.f));
  const F tail = t * polynomial<V>(t, kFit) * exp_minus_abs<V>(z * z);
  return x * V::blend(V::less(x, V::set(0.f)), tail, V::set(1.f) - tail);
}

/// x / (1 + e^-u): the cubic u magnifies errors, so it uses the exact exponential.
template <class V>
typename V::F gelu_tanh(typename V::F x) {
  using F = typename V::F;
  const F cubic = V::fma(V::set(0.044715f) * x * x, x, x);
  const F u = V::set(1.5957691216057308f) * cubic;
  const F z = exp<V>(-V::abs(u));
  return x * V::blend(V::less(u, V::set(0.f)), z, V::set(1.f)) / (V::set(1.f) + z);
}

/// max(x, 0) + log(1 + e^-|x|), where log(1 + z) is corrected for the digits lost in 1 + z.
template <class V>
typename V::F softplus(typename V::F x) {
  using F = typename V::F;
  const F z = exp<V>(-V::abs(x));
  const F u = V::set(1.f) + z;
  const F log1p = log<V>(u) - ((u - V::set(1.f)) - z) / u;
  return V::max(V::set(0.f), x) + log1p;
}

/// x tanh(log(1 + e)) as x n / (n + 2), n = e (e + 2): the quotient is 1 long before e is too large.
template <class V>
typename V::F mish(typename V::F x) {
  using F = typename V::F;
  const F e = exp<V>(V::min(V::set(30.f), x));
  const F n = e * (e + V::set(2.f));
  return x * (n / (n + V::set(2.f)));
}

}  // namespace serin::kernels::cpu::math
