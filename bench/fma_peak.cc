// fma_peak.cc: the most single-precision FLOP/s that one core gives: independent fused multiply-adds on registers, nothing else.
//
// Twelve chains cover the latency (4 cycles) of two units with room to spare. Printed is the best of twenty short stretches, in GFLOP/s.

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

constexpr int kChains = 12, kSteps = 200'000, kStretches = 20;
volatile float sink;

__attribute__((target("avx512f"))) void multiply_add_512() {
  __m512 sums[kChains];
  const __m512 factor = _mm512_set1_ps(0.999999f), addend = _mm512_set1_ps(1e-6f);
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.f);
  for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_fmadd_ps(sums[chain], factor, addend);
  for (int chain = 1; chain < kChains; ++chain) sums[0] = _mm512_add_ps(sums[0], sums[chain]);
  sink = _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) void multiply_add_256() {
  __m256 sums[kChains];
  const __m256 factor = _mm256_set1_ps(0.999999f), addend = _mm256_set1_ps(1e-6f);
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.f);
  for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm256_fmadd_ps(sums[chain], factor, addend);
  for (int chain = 1; chain < kChains; ++chain) sums[0] = _mm256_add_ps(sums[0], sums[chain]);
  sink = _mm256_cvtss_f32(sums[0]);
}

double gigaflops(void (*work)(), int lanes) {
  double best = 0;
  for (int stretch = 0; stretch < kStretches; ++stretch) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * lanes * kChains * kSteps / seconds / 1e9);
  }
  return best;
}

}  // namespace

int main() {
  if (__builtin_cpu_supports("avx512f"))
    std::printf("%.1f\n", gigaflops(multiply_add_512, 16));
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    std::printf("%.1f\n", gigaflops(multiply_add_256, 8));
  else
    return 1;  // no peak to compare with
}
