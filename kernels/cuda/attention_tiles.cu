// attention_tiles.cu: Attention of 16-bit floats on tensor cores, scores never written out (Dao, "FlashAttention-2", 2023).
//
// A block has 64 queries of one head, each of its four warps 16 of them, which stay in registers. Keys and values come 64 at a time through shared memory,
// the next ones on their way while these are multiplied. The scores of a warp, rounded to 16 bits, are the left operand of the second product where they
// lie (tensor_core.h); largest score and sum of a query lie with the four lanes that have its scores. Exponentials are powers of two, their factor in the
// scale.
//
// Heads are padded to 64 or 128 elements with zeros, of which products are left out 16 at a time.

#include "kernels/cuda/attention_call.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/tensor_core.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kQueries = 16 * kWarps, kKeys = 64;
constexpr int kScoreTiles = kKeys / 8;
constexpr float kLog2E = 1.4426950408889634f;

/// Rows in shared memory end with 16 bytes of nothing, so that the eight rows of a matrix lie in different banks.
template <int kHead>
constexpr int kPitch = kHead + 8;
template <int kHead>
constexpr int kTile = kKeys * kPitch<kHead>;  // elements of 64 queries, keys or values

/// How operands may be read: 16 bytes at a time, or element by element; results by pairs.
struct Access {
  bool vectors, pairs;
};

/// Eight elements of a row, or of nothing. `somewhere`: in the device's memory, where a copy of nothing has to come from, too.
template <class T>
__device__ void fetch(T* to, const T* row, int64_t first, int64_t width, bool vectors, const T* somewhere) {
  const bool there = row && first < width;
  if (vectors) return begin_copy(to, there ? row + first : somewhere, there);
  for (int i = 0; i < 8; ++i) to[i] = there && first + i < width ? row[first + i] : T{};
}

/// Rows [first, first + 64) of past and new keys (or values) of one head. Rows from `in_use` on may hold anything, NaN too: they are zeros here.
template <int kHead, class T>
__device__ void fetch_rows(T* to, const T* past, const HeadStrides& past_at, const T* fresh, const HeadStrides& at,
                           const AttentionCall<T>& c, int64_t b, int64_t h, int64_t first, int64_t in_use, int64_t width, bool vectors) {
  for (int e = static_cast<int>(threadIdx.x); e < kKeys * kHead / 8; e += kThreads) {
    const int row = e / (kHead / 8), column = e % (kHead / 8) * 8;
    const int64_t j = first + row;
    const T* from = nullptr;
    if (j < c.past && j < in_use)
      from = past + b * past_at.b + h * past_at.h + j * past_at.r;
    else if (j < in_use)
      from = fresh + b * at.b + h * at.h + (j - c.past) * at.r;
    fetch(to + row * kPitch<kHead> + column, from, column, width, vectors, c.q);
  }
}

/// Of two queries of a lane.
struct Rows {
  float max[2], sum[2];
};

template <int kHead, class T>
__device__ void multiply_keys(float (&s)[kScoreTiles][4], const uint32_t (&q)[kHead / 16][4], const T* keys, int head) {
  const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
#pragma unroll
  for (int p = 0; p < kHead / 16; ++p) {
    if (p * 16 >= head) break;
#pragma unroll
    for (int j = 0; j < kScoreTiles; j += 2) {
      uint32_t r[4];
      load_matrices<false>(r, keys + ((j + matrix / 2) * 8 + lane % 8) * kPitch<kHead> + p * 16 + matrix % 2 * 8);
      multiply_tile<T>(s[j], q[p], {r[0], r[1]});
      multiply_tile<T>(s[j + 1], q[p], {r[2], r[3]});
    }
  }
}

template <int kHead, class T>
__device__ void multiply_values(float (&y)[kHead / 8][4], const float (&s)[kScoreTiles][4], const T* values, int head) {
  const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
#pragma unroll
  for (int p = 0; p < kKeys / 16; ++p) {
    const int pair = 2 * p;
    const float(&low)[4] = s[pair], (&high)[4] = s[pair + 1];
    const uint32_t weights[4] = {pack_pair<T>(low[0], low[1]), pack_pair<T>(low[2], low[3]), pack_pair<T>(high[0], high[1]),
                                 pack_pair<T>(high[2], high[3])};
#pragma unroll
    for (int n = 0; n < kHead / 8; n += 2) {
      if (n * 8 >= head) break;
      uint32_t r[4];
      load_matrices<true>(r, values + (p * 16 + matrix % 2 * 8 + lane % 8) * kPitch<kHead> + (n + matrix / 2) * 8);
      multiply_tile<T>(y[n], weights, {r[0], r[1]});
      multiply_tile<T>(y[n + 1], weights, {r[2], r[3]});
    }
  }
}

/// A score as a power of two. Masks add the lowest numbers where they mean minus infinity; those stay finite: where all keys of a query have such a score, it gets
/// the mean of the values, not NaN.
__device__ inline float in_powers_of_two(float score) {
  const float power = score * kLog2E;
  return std::isinf(power) && !std::isinf(score) ? copysignf(std::numeric_limits<float>::max(), score) : power;
}

/// Adds a mask that differs from query to query, of those of this lane; elements 0 .. columns - 1 are there.
template <class T>
__device__ void add_mask(float (&s)[kScoreTiles][4], const AttentionCall<T>& c, int64_t b, int64_t h, int64_t first_query,
                         int64_t first_key, int columns) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t query = first_query + (lane / 4 + r * 8), row = mask_row(c, b, h, query < c.q_len ? query : 0) + first_key;
#pragma unroll
    for (int j = 0; j < kScoreTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int key = j * 8 + lane % 4 * 2 + e;
        if (key < columns) s[j][2 * r + e] += in_powers_of_two(mask_value(c, row + key));
      }
    }
  }
}

/// Sums to scores: scaled, masked, in powers of two. `bias`: of the tile's keys, in shared memory. `in_use`: how many of them are keys.
template <class T>
__device__ void finish_scores(float (&s)[kScoreTiles][4], const AttentionCall<T>& c, int64_t b, int64_t h, int64_t first_query,
                              int64_t first_key, const float* bias, int64_t in_use) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float scale = (c.softcap > 0 ? 1.f : c.scale) * kLog2E;
  if (c.softcap > 0) {
#pragma unroll
    for (int j = 0; j < kScoreTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s[j][e] = c.softcap * std::tanh(s[j][e] * c.scale / c.softcap);
    }
  }
#pragma unroll
  for (int j = 0; j < kScoreTiles; ++j) {
    const auto pair = load_pack<2>(bias + (j * 8 + lane % 4 * 2));
#pragma unroll
    for (int e = 0; e < 4; ++e) s[j][e] = s[j][e] * scale + pair.values[e % 2];
  }
  if (c.mask && c.mask_at.q != 0) add_mask(s, c, b, h, first_query, first_key, in_use < kKeys ? static_cast<int>(in_use) : kKeys);
  if (c.causal && first_key + kKeys - 1 > first_query + c.past) {
    const int reach = static_cast<int>(first_query + c.past - first_key) + lane / 4;  // the last key that this lane's first query looks at
#pragma unroll
    for (int j = 0; j < kScoreTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (j * 8 + lane % 4 * 2 + e % 2 > reach + e / 2 * 8) s[j][e] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

/// 2^x; nearer to 0 than 2^-126 it is 0, as it is after rounding to 16 bits.
__device__ inline float power_of_two(float x) {
#if defined(__CUDACC__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

/// Scores to their exponentials; answers by how much what was summed before shrinks. A score that is NaN makes its exponential NaN, and so the sum: the largest may pass it by.
__device__ inline void update(Rows& rows, float (&s)[kScoreTiles][4], float (&carried)[2]) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float max = rows.max[r];
#pragma unroll
    for (int j = 0; j < kScoreTiles; ++j) max = fmaxf(max, fmaxf(s[j][r + r], s[j][r + r + 1]));
    for (int lanes = 2; lanes > 0; lanes /= 2) max = fmaxf(__shfl_xor_sync(0xFFFFFFFFu, max, lanes), max);
    const float base = max == kMinusInfinity ? 0.f : max;  // nothing may be looked at so far, and -Inf - -Inf would be NaN
    carried[r] = power_of_two(rows.max[r] - base);
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < kScoreTiles; ++j) {
#pragma unroll
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        s[j][e] = power_of_two(s[j][e] - base);
        sum += s[j][e];
      }
    }
    rows.sum[r] = rows.sum[r] * carried[r] + sum;
    rows.max[r] = max;
  }
}

template <int kHead, class T>
__global__ void __launch_bounds__(kThreads, kHead == 64 ? 4 : 2) attend_tiles(AttentionCall<T> c, Access access) {
  T* const queries = shared_memory<T>();                                      // [kQueries, kPitch]
  T* const stages = queries + kTile<kHead>;                                   // [2][keys, values][kKeys, kPitch]
  float* const biases = reinterpret_cast<float*>(stages + 4 * kTile<kHead>);  // [2][kKeys]
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int64_t h = blockIdx.y % c.q_heads, b = blockIdx.y / c.q_heads, kv = h / (c.q_heads / c.kv_heads);
  const int64_t block_query = static_cast<int64_t>(blockIdx.x) * kQueries, first_query = block_query + static_cast<int64_t>(warp) * 16;
  const int64_t in_use = keys_in_use(c, b), reach = block_query + kQueries + c.past, keys = c.causal && reach < in_use ? reach : in_use;
  const auto fetch_stage = [&](int64_t first) {
    T* const stage = stages + first / kKeys % 2 * 2 * kTile<kHead>;
    fetch_rows<kHead>(stage, c.past_k, c.past_k_at, c.k, c.k_at, c, b, kv, first, in_use, c.head, access.vectors);
    fetch_rows<kHead>(stage + kTile<kHead>, c.past_v, c.past_v_at, c.v, c.v_at, c, b, kv, first, in_use, c.v_head, access.vectors);
  };

  for (int e = thread; e < kQueries * kHead / 8; e += kThreads) {
    const int row = e / (kHead / 8), column = e % (kHead / 8) * 8;
    const int64_t i = block_query + row;
    const T* const from = i < c.q_len ? c.q + b * c.q_at.b + h * c.q_at.h + i * c.q_at.r : nullptr;
    fetch(queries + row * kPitch<kHead> + column, from, column, c.head, access.vectors, c.q);
  }
  if (keys > 0) {
    fetch_stage(0);
    if (thread < kKeys) biases[thread] = in_powers_of_two(key_bias(c, b, h, thread, in_use));
  }
  close_group();

  uint32_t q[kHead / 16][4];
  float y[kHead / 8][4] = {};
  Rows rows{{-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}, {0.f, 0.f}};
  for (int64_t first = 0; first < keys; first += kKeys) {
    float next_bias = 0.f;
    if (first + kKeys < keys) {
      fetch_stage(first + kKeys);
      if (thread < kKeys) next_bias = key_bias(c, b, h, first + kKeys + thread, in_use);
      close_group();
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    const int turn = static_cast<int>(first / kKeys % 2);
    const T* const stage = stages + turn * 2 * kTile<kHead>;
    if (first == 0) {
      const T* const row = queries + (warp * 16 + lane % 8 + lane / 8 % 2 * 8) * kPitch<kHead> + lane / 16 * 8;
#pragma unroll
      for (int p = 0; p < kHead / 16; ++p) load_matrices<false>(q[p], row + p * 16);
    }
    float s[kScoreTiles][4] = {}, carried[2];
    multiply_keys<kHead>(s, q, stage, static_cast<int>(c.head));
    finish_scores(s, c, b, h, first_query, first, &biases[turn == 0 ? 0 : kKeys], in_use - first);
    update(rows, s, carried);
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) y[n][e] *= carried[e / 2];
    }
    multiply_values<kHead>(y, s, stage + kTile<kHead>, static_cast<int>(c.v_head));
    if (thread < kKeys)
      biases[(1 - turn) * kKeys + thread] = in_powers_of_two(next_bias);  // who read the last ones has passed the barrier above
    __syncthreads();                                                      // the stage is free
  }
  wait_copies<0>();

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    for (int lanes = 2; lanes > 0; lanes /= 2) rows.sum[r] += __shfl_xor_sync(0xFFFFFFFFu, rows.sum[r], lanes);
    const int64_t i = first_query + (lane / 4 + r * 8);
    if (i >= c.q_len) continue;
    // A query that may look at nothing: zeros, or NaN.
    const float scale = rows.sum[r] == 0.f && c.masked_to_zero ? 0.f : 1.f / rows.sum[r];
    T* const target = c.y + b * c.y_at.b + h * c.y_at.h + i * c.y_at.r;
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n) {
      const int column = n * 8 + lane % 4 * 2;
      const Pack<T, 2> pair{cast<T>(y[n][2 * r] * scale), cast<T>(y[n][2 * r + 1] * scale)};
      if (access.pairs && column < c.v_head) {
        store_pack(target + column, pair);
      } else {
        if (column < c.v_head) target[column] = pair.values[0];
        if (column + 1 < c.v_head) target[column + 1] = pair.values[1];
      }
    }
  }
}

template <int kHead, class T>
constexpr size_t kSharedBytes = 5 * kTile<kHead> * sizeof(T) + 2 * kKeys * sizeof(float);

template <int kHead, class T>
Fault run(const AttentionOp& op, const Stream& stream, Inputs in, Outputs out) {
  const auto c = attention_call<T>(op, in, out);
  Access access;
  access.vectors = loads_packs<8>(c);
  access.pairs = stores_packs<2>(c);
  const Grid grid{dim3(blocks_for(c.q_len, kQueries), static_cast<unsigned>(c.batch * c.q_heads)), dim3(kThreads), kSharedBytes<kHead, T>};
  return launch(stream, grid, attend_tiles<kHead, T>, c, access);
}

template <int kHead, class T>
Prepared prepare(const AttentionOp& op, std::string& why) {
  if (!allow_shared(attend_tiles<kHead, T>, kSharedBytes<kHead, T>, kSharedBytes<kHead, T>, why)) return nullptr;
  return make_kernel([op](Stream& stream, Inputs in, Outputs out) -> Fault { return run<kHead, T>(op, stream, in, out); });
}

}  // namespace

Prepared prepare_attention_tiles(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto op = plain_attention_of(desc, why);
  if (!op) return nullptr;
  const int64_t width = std::max(op->head, op->v_head);
  if (width > 128) return refuse(why, "heads of more than 128 elements");
  int device = 0, major = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      major < 8)
    return refuse(why, "the device is older than sm_80");
  return ref::for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (!kIsHalfKind<T>) {
      return refuse(why, "only 16-bit floats");
    } else {
      return width <= 64 ? prepare<64, T>(*op, why) : prepare<128, T>(*op, why);
    }
  });
}

}  // namespace serin::kernels::cuda
