// dense_bf16_attention_avx512.cc: the two products of attention on pairs of bf16; scores and softmax stay in f32 (dense_attention.h). Queries are rounded
// when their block begins, keys and values when they are packed, the exponentials where they lie, in the first half of their row. Compiled with
// -mavx512bf16 and the AVX-512 flags.

#include "kernels/cpu/simd/dense_attention.h"
#include "kernels/cpu/simd/dense_bf16.h"
#include "kernels/cpu/simd/vec_avx512.h"

namespace serin::kernels::cpu {

namespace {

/// A type of its own, so that no template instance is shared with files that are compiled without the instructions.
struct VecPairs : VecAvx512 {};

constexpr int64_t kPanel = kKeyPanel<VecPairs>;

uint16_t* elements(float* words) { return reinterpret_cast<uint16_t*>(words); }
const uint16_t* elements(const float* words) { return reinterpret_cast<const uint16_t*>(words); }
int64_t pairs_of(int64_t n) { return (n + 1) / 2; }

/// An element without partner is paired with zero.
void round_row(const float* x, float* words, int64_t n) {
  kBf16Avx512.round(x, elements(words), n);
  if (n % 2 != 0) elements(words)[n] = 0;
}

}  // namespace

template <>
struct AttentionProducts<VecPairs> {
  static void scores(const AttentionRows& a, int64_t row, int64_t rows, int64_t first, int64_t n, float* scores) {
    const int64_t words = pairs_of(a.head);
    float* const q = a.scratch + kAttentionScratch;  // [rows, words]
    for (int64_t r = 0; first == 0 && r < rows; ++r) round_row(a.q + (row + r) * a.q_row, q + r * words, a.head);
    for (int64_t j = 0; j < n; j += kPanel) {
      kBf16Avx512.gemm({.m = rows,
                        .n = n - j < kPanel ? n - j : kPanel,
                        .pairs = words,
                        .a = elements(q),
                        .a_row = 2 * words,
                        .b = elements(a.k + (first + j) * words),
                        .b_row = 2 * kPanel,
                        .y = scores + j,
                        .y_row = kKeyBlock,
                        .accumulate = false,
                        .next = nullptr,
                        .finish = nullptr});
    }
  }
  static void values(const AttentionRows& a, int64_t row, int64_t rows, int64_t first, int64_t n, float* scores) {
    for (int64_t r = 0; r < rows; ++r) round_row(scores + r * kKeyBlock, scores + r * kKeyBlock, n);
    const int64_t width = value_panel<VecPairs>(a.v_head);
    const float* v = a.v + first / 2 * width;
    for (int64_t j = 0; j < a.v_head; j += width, v += pairs_of(a.keys) * width) {
      kBf16Avx512.gemm({.m = rows,
                        .n = a.v_head - j < width ? a.v_head - j : width,
                        .pairs = pairs_of(n),
                        .a = elements(scores),
                        .a_row = 2 * kKeyBlock,
                        .b = elements(v),
                        .b_row = 2 * width,
                        .y = a.y + row * a.y_row + j,
                        .y_row = a.y_row,
                        .accumulate = first > 0,
                        .next = nullptr,
                        .finish = nullptr});
    }
  }
};

namespace {

/// Word i of row r becomes word r of row i: squares of 8, 4, 2 and 1 words are exchanged.
template <int kStep>
void exchange(__m512 (&rows)[16], uint32_t odd) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if (i & kStep) continue;
    const __m512 low = rows[i], high = rows[i | kStep];
    rows[i] = VecPairs::blend(static_cast<__mmask16>(odd), VecPairs::swap<kStep>(high), low);
    rows[i | kStep] = VecPairs::blend(static_cast<__mmask16>(odd), high, VecPairs::swap<kStep>(low));
  }
}

/// Up to 32 elements from x on, the others zero, as 16 words.
__m512 words_of(const float* x, int64_t n) {
  const auto lanes = [](int64_t count) { return static_cast<__mmask16>(count >= 16 ? 0xffffu : count <= 0 ? 0u : (1u << count) - 1u); };
  const __m512 low = _mm512_maskz_loadu_ps(lanes(n), x), high = _mm512_maskz_loadu_ps(lanes(n - 16), x + 16);
  return reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(high, low));
}

void pack_keys(const float* k, int64_t k_row, int64_t keys, int64_t head, float* words) {
  const int64_t depth = pairs_of(head);
  for (int64_t j = 0; j < (keys + kPanel - 1) / kPanel * kPanel; j += 16) {
    float* const panel = words + j / kPanel * kPanel * depth + j % kPanel;
    for (int64_t d = 0; d < depth; d += 16) {
      __m512 square[16];
      for (int i = 0; i < 16; ++i) square[i] = j + i < keys ? words_of(k + (j + i) * k_row + 2 * d, head - 2 * d) : _mm512_setzero_ps();
      exchange<8>(square, 0xff00u);
      exchange<4>(square, 0xf0f0u);
      exchange<2>(square, 0xccccu);
      exchange<1>(square, 0xaaaau);
      for (int i = 0; i < 16 && d + i < depth; ++i) _mm512_storeu_ps(panel + (d + i) * kPanel, square[i]);
    }
  }
}

void pack_values(const float* v, int64_t v_row, int64_t keys, int64_t v_head, float* words) {
  const int64_t width = value_panel<VecPairs>(v_head);
  const auto rounded = [](const float* x, int count) {
    return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(VecPairs::load_n(x, count, 0.f))));
  };
  for (int64_t j = 0; j < v_head; j += width) {
    for (int64_t key = 0; key < keys; key += 2, words += width) {
      for (int64_t c = 0; c < width; c += 16) {
        const int64_t there = v_head - j - c;
        const int count = there >= 16 ? 16 : there < 0 ? 0 : static_cast<int>(there);
        const float* const x = v + key * v_row + j + c;
        const __m512i low = rounded(x, count), high = key + 1 < keys ? rounded(x + v_row, count) : _mm512_setzero_si512();
        _mm512_storeu_si512(words + c, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
      }
    }
  }
}

}  // namespace

const AttentionLoops kAttentionBf16Avx512 = {
    .elements = 2, .pack_keys = &pack_keys, .pack_values = &pack_values, .attend = &attend<VecPairs>};

}  // namespace serin::kernels::cpu
