// quant_avx512vnni.cc: the loops over quantised tensors, compiled with -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx512vnni (and the AVX2 ones).

#include "kernels/cpu/simd/quant_avx512vnni.h"

#include "kernels/cpu/simd/quant_loops.h"

namespace serin::kernels::cpu {

namespace {

/// A table of 256 bytes in four registers. The instruction that picks among the bytes of two came after VNNI.
__attribute__((target("avx512vbmi"))) void lookup_vbmi(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t n) {
  const __m512i first = _mm512_loadu_si512(table), second = _mm512_loadu_si512(table + 64), third = _mm512_loadu_si512(table + 128),
                fourth = _mm512_loadu_si512(table + 192);
  for (int64_t i = 0; i < n; i += 64) {
    const __mmask64 some = n - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (n - i)) - 1;
    const __m512i at = _mm512_maskz_loadu_epi8(some, x + i);
    const __m512i low = _mm512_permutex2var_epi8(first, at, second), high = _mm512_permutex2var_epi8(third, at, fourth);
    _mm512_mask_storeu_epi8(y + i, some, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
}

void lookup_best(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t n) {
  return __builtin_cpu_supports("avx512vbmi") ? lookup_vbmi(x, table, y, n) : lookup(x, table, y, n);
}

/// Made by the compiler: machines without these instructions initialise this file, too.
constexpr Quant with_lookup(Quant table) {
  table.lookup = &lookup_best;
  return table;
}

}  // namespace

constinit const Quant kQuantAvx512Vnni = with_lookup(quant_table<QuantVecAvx512Vnni>());

}  // namespace serin::kernels::cpu
