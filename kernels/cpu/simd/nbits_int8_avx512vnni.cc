// nbits_int8_avx512vnni.cc: the loops of nbits_int8.h, compiled with -mavx512vnni and the AVX-512 flags. They use a vector type of their
// own, so that no template instance is shared with files that are compiled without these flags.

#include "kernels/cpu/simd/nbits_int8.h"

#include "kernels/cpu/simd/nbits.h"
#include "kernels/cpu/simd/vec_avx512.h"

namespace serin::kernels::cpu {

namespace {

struct VecVnni : VecAvx512 {};

constexpr int64_t kChunk = NBitsActivations::kChunk, kChunkBytes = kChunk / 2;
constexpr int64_t kLanes = 16, kOfLane = kChunk / kLanes;  // sums of a chunk, elements of a sum

__mmask16 first(int64_t n) { return n >= kLanes ? __mmask16{0xffff} : static_cast<__mmask16>((1u << n) - 1u); }

/// What divides the elements of a block: they reach from -127 to 127 then. NaN where one of them is.
float scale_of(const float* x, int64_t n) {
  __m512 most = _mm512_setzero_ps();
  __mmask16 nan = 0;
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m512 v = _mm512_maskz_loadu_ps(first(n - i), x + i);
    nan |= VecVnni::is_nan(v);
    most = _mm512_max_ps(_mm512_abs_ps(v), most);
  }
  return nan ? __builtin_nanf("") : _mm512_reduce_max_ps(most) / 127.f;
}

/// x / scale to bytes, with zeros up to `block`; answers their sum.
int32_t round_block(const float* x, int64_t n, int64_t block, float scale, int8_t* bytes) {
  const __m512 factor = _mm512_set1_ps(scale > 0 ? 1 / scale : 0.f);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t i = 0; i < block; i += kLanes) {
    const __mmask16 inside = i < n ? first(n - i) : __mmask16{0};
    const __m512i whole = _mm512_maskz_cvtps_epi32(inside, _mm512_mul_ps(_mm512_maskz_loadu_ps(inside, x + i), factor));
    sum = _mm512_add_epi32(sum, whole);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + i), _mm512_cvtsepi32_epi8(whole));
  }
  return _mm512_reduce_add_epi32(sum);
}

void round(const float* x, int64_t n, const NBitsShape& shape, int64_t row, const NBitsActivations& to) {
  const int64_t chunks = NBitsActivations::chunks(shape), each = kChunk / shape.block;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    alignas(64) int8_t bytes[kChunk] = {};
    float* const scales = to.scales + (row * chunks + chunk) * kLanes;
    for (int64_t i = 0; i < each; ++i) {
      const int64_t block = chunk * each + i, begin = block * shape.block, count = n - begin < shape.block ? n - begin : shape.block;
      float scale = 0;
      if (block < shape.blocks) {
        scale = scale_of(x + begin, count);
        to.sums[row * shape.blocks + block] =
            scale * static_cast<float>(round_block(x + begin, count, shape.block, scale, bytes + i * shape.block));
      }
      for (int64_t lane = 0; lane < shape.block / kOfLane; ++lane) scales[i * shape.block / kOfLane + lane] = scale;
    }
    int8_t* const ordered = to.bytes + (row * chunks + chunk) * kChunk;
    for (int64_t i = 0; i < kChunkBytes; ++i) ordered[i] = bytes[2 * i], ordered[kChunkBytes + i] = bytes[2 * i + 1];
  }
}

/// kRows rows by kColumns columns: sums[row * kColumns + column] = the product without zero points.
template <int kRows, int kColumns>
void tile(const NBitsShape& shape, const uint8_t* weight, const float* scales, const NBitsActivations& a, int64_t row, float* sums) {
  const int64_t chunks = NBitsActivations::chunks(shape), each = kChunk / shape.block, column_bytes = shape.blocks * shape.block / 2;
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), low = _mm512_set1_epi8(15);
  const __m512i block_of_lane = _mm512_srl_epi32(lanes, _mm_cvtsi32_si128(shape.block == 32 ? 2 : shape.block == 64 ? 3 : 4));
  __m512 total[kRows][kColumns];
  for (auto& of_row : total) {
    for (__m512& sum : of_row) sum = _mm512_setzero_ps();
  }
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t bytes = column_bytes - chunk * kChunkBytes;
    const __mmask64 inside = bytes >= kChunkBytes ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
    const __mmask16 blocks = first(shape.blocks - chunk * each < each ? shape.blocks - chunk * each : each);
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      const uint8_t* const at_weight = weight + c * column_bytes + chunk * kChunkBytes;
      _mm_prefetch(at_weight + kColumns * column_bytes, _MM_HINT_T0);  // the same chunk of the columns after these
      const __m512i both = _mm512_maskz_loadu_epi8(inside, at_weight);
      const __m512i even = _mm512_and_si512(both, low), odd = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
      const __m512 scale = _mm512_permutexvar_ps(block_of_lane, _mm512_maskz_loadu_ps(blocks, scales + c * shape.blocks + chunk * each));
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const int64_t at = (row + r) * chunks + chunk;
        const int8_t* const x = a.bytes + at * kChunk;
        __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), even, _mm512_loadu_si512(x));
        sum = _mm512_dpbusd_epi32(sum, odd, _mm512_loadu_si512(x + kChunkBytes));
        total[r][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(scale, _mm512_loadu_ps(a.scales + at * kLanes)), total[r][c]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) sums[r * kColumns + c] = _mm512_reduce_add_ps(total[r][c]);
  }
}

template <int kRows>
void rows_of(const NBitsShape& shape, const NBitsColumns& w, const NBitsActivations& a, int64_t row, float* y, int64_t y_row) {
  constexpr int kColumns = kRows == 1 ? 4 : 2;
  const int64_t column_bytes = shape.blocks * shape.block / 2, zero_bytes = (shape.blocks + 1) / 2;
  float sums[kRows * kColumns];
  const auto columns = [&]<int kCount>(int64_t first_column) {
    const uint8_t* const weight = w.weight + first_column * column_bytes;
    tile<kRows, kCount>(shape, weight, w.scales + first_column * shape.blocks, a, row, sums);
    for (int c = 0; c < kCount; ++c) {
      const float* scales = w.scales + (first_column + c) * shape.blocks;
      const uint8_t* zeros = w.zeros ? w.zeros + (first_column + c) * zero_bytes : nullptr;
      for (int r = 0; r < kRows; ++r)
        y[r * y_row + first_column + c] =
            sums[r * kCount + c] - nbits_shift<VecVnni, 4>(shape, scales, zeros, a.sums + (row + r) * shape.blocks);
    }
  };
  int64_t c = 0;
  for (; c + kColumns <= w.count; c += kColumns) columns.template operator()<kColumns>(c);
  for (; c < w.count; ++c) columns.template operator()<1>(c);
}

void product(const NBitsShape& shape, const NBitsColumns& w, const NBitsActivations& a, int64_t rows, float* y, int64_t y_row) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) rows_of<4>(shape, w, a, r, y + r * y_row, y_row);
  for (; r < rows; ++r) rows_of<1>(shape, w, a, r, y + r * y_row, y_row);
}

}  // namespace

const NBitsInt8Loops kNBitsInt8Avx512Vnni = {.round = &round, .product = &product};

}  // namespace serin::kernels::cpu
