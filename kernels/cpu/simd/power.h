// power.h: a^b of vectors of floats within 1 ulp, as exp(b log a).
//
// One float for b log a is too coarse: up to 128 in the exponent, its last bits are those of the result. So the logarithm is a pair of
// floats whose sum has a relative error of 2^-32, and so is its product with b. That log and exponential are those of SLEEF's powf
// (github.com/shibatch/sleef); the exact errors of products need a fused multiply-add. Everything except ordinary positive numbers to
// moderate powers uses the C library (elementwise.h).
#pragma once

#include "kernels/cpu/simd/math.h"

namespace serin::kernels::cpu::math {

/// hi + lo, |lo| at most half an ulp of hi.
template <class V>
struct Pair {
  typename V::F hi, lo;
};

template <class V>
Pair<V> exact_sum(typename V::F a, typename V::F b) {
  const auto sum = a + b, b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}
template <class V>
Pair<V> exact_product(typename V::F a, typename V::F b) {
  const auto product = a * b;
  return {product, V::fma(a, b, -product)};
}
template <class V>
Pair<V> product(Pair<V> a, Pair<V> b) {
  const Pair<V> high = exact_product<V>(a.hi, b.hi);
  return {high.hi, high.lo + V::fma(a.hi, b.lo, a.lo * b.hi)};
}
template <class V>
Pair<V> sum(Pair<V> a, Pair<V> b) {
  const Pair<V> high = exact_sum<V>(a.hi, b.hi);
  return {high.hi, high.lo + (a.lo + b.lo)};
}

/// log x of a normal x > 0: e log 2 + 2 artanh s with s = (m - 1) / (m + 1).
template <class V>
Pair<V> log_pair(typename V::F x) {
  using F = typename V::F;
  static constexpr float kFit[] = {0.240320354700088500976562f, 0.285112679004669189453125f, 0.400007992982864379882812f};
  const F one = V::set(1.f);
  F e = V::exponent(x), m = V::mantissa(x);
  const auto high = V::less(V::set(1.41421356237f), m);
  m = V::blend(high, m * V::set(0.5f), m);
  e = V::blend(high, e + one, e);

  const Pair<V> below = exact_sum<V>(one, m);
  const F quotient = (m - one) / below.hi;
  const F rest = V::fma(-quotient, below.lo, V::fma(-quotient, below.hi, m - one));
  const Pair<V> s{quotient, rest / below.hi};
  const Pair<V> square = product(s, s);
  const Pair<V> third{V::set(0.66666662693023681640625f), V::set(3.69183861259614332084311e-09f)};
  const Pair<V> tail = sum(third, exact_product<V>(square.hi, polynomial<V>(square.hi, kFit)));
  const Pair<V> whole = product(Pair<V>{V::set(0.69314718246459960938f), V::set(-1.904654323148236017e-09f)}, Pair<V>{e, V::set(0.f)});
  return sum(sum(whole, Pair<V>{s.hi + s.hi, s.lo + s.lo}), product(product(square, s), tail));
}

/// e^(hi + lo).
template <class V>
typename V::F exp_pair(Pair<V> x) {
  using F = typename V::F;
  static constexpr float kFit[] = {0.00136324646882712841033936f, 0.00836596917361021041870117f, 0.0416710823774337768554688f,
                                   0.166665524244308471679688f, 0.499999850988388061523438f};
  const F bound = V::set(150.f);  // beyond infinity and 0
  const auto inside = V::less(V::abs(x.hi), bound);
  x.lo = V::blend(inside, x.lo, V::set(0.f));
  x.hi = V::max(-bound, V::min(bound, x.hi));
  const F n = V::round(x.hi * V::set(1.44269504088896341f));
  const F near = V::fma(n, V::set(-0.693145751953125f), x.hi);  // exact: the constant has few bits
  const Pair<V> r = exact_sum<V>(near, V::fma(n, V::set(-1.428606765330187045e-06f), x.lo));
  const Pair<V> start = exact_sum<V>(V::set(1.f), r.hi);
  const F rest = V::fma(r.hi * r.hi, polynomial<V>(r.hi, kFit), r.lo);
  return V::scale2(start.hi + (start.lo + rest), n);
}

template <class V>
typename V::F pow(typename V::F a, typename V::F b) {
  const Pair<V> log = log_pair<V>(a);
  const Pair<V> power = exact_product<V>(log.hi, b);
  return exp_pair<V>(Pair<V>{power.hi, V::fma(log.lo, b, power.lo)});
}

}  // namespace serin::kernels::cpu::math
