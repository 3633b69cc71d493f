// attention.cu: Attention without tensor cores, for f32, and for 16-bit floats where attention_tiles.cu refuses: some queries of one head by 32 or 64 keys at a
// time, the softmax carried from block to block, so that scores are never written out (Dao et al., "FlashAttention", 2022).
//
//   m' = max(m, max of the block's scores);  y = y exp(m - m') + sum exp(s - m') v;  l likewise;  at the end y / l
//
// A warp has 4 kEach queries, a lane every fourth of them: of their scores those of every eighth key, of their results four columns out of 32. So both products
// are outer ones, in registers: four elements that are loaded at once are multiplied kEach or kKeys / 8 times. Sixteen queries in a block load as much as they
// multiply, but there are more such blocks: they run where there is too little for all multiprocessors otherwise.
//
// Queries, keys, values and exponentials pass through shared memory as f32; values are on their way while keys are multiplied, and the next keys while values are.
// Rows there are so long that what a warp loads at once lies in different banks.

#include "kernels/cuda/attention_call.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/tensor_core.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kWarps = 4, kThreads = 32 * kWarps;

/// Heads of up to kHead elements, kEach queries for a lane, kKeys keys at a time.
template <int kHeadOf, int kEachOf, int kKeysOf>
struct Tiling {
  static constexpr int kHead = kHeadOf, kEach = kEachOf, kKeys = kKeysOf;
  static constexpr int kQueries = 4 * kWarps * kEach, kScores = kKeys / 8, kColumns = kHead / 32;  // of a block; of a lane
  static constexpr int kScorePitch = kKeys + 8;
};

/// Elements in shared memory: of a row of queries and keys, an odd multiple of four; of values.
__host__ __device__ constexpr int key_pitch(int head) { return (head + 7) / 8 * 8 + 4; }
__host__ __device__ constexpr int value_pitch(int v_head) { return (v_head + 31) / 32 * 32; }

template <class Tile>
constexpr size_t shared_bytes(int head, int v_head) {
  return static_cast<size_t>((Tile::kQueries + Tile::kKeys) * key_pitch(head) + Tile::kKeys * value_pitch(v_head) +
                             Tile::kQueries * Tile::kScorePitch + Tile::kKeys) *
         sizeof(float);
}

/// Whether operands may be copied, results stored 16 bytes at a time.
struct Access {
  bool copies, packs;
};

/// `rows` rows of `width` elements, zeros behind them up to `pitch`; row_at(i): where row i lies, null where there is none.
template <class T, class F>
__device__ void fetch_rows(float* to, int rows, int width, int pitch, const AttentionCall<T>& c, bool copies, F&& row_at) {
  constexpr int kLanes = 16;  // of a row
  for (int row = static_cast<int>(threadIdx.x) / kLanes; row < rows; row += kThreads / kLanes) {
    const T* const from = row_at(row);
    for (int column = static_cast<int>(threadIdx.x) % kLanes * 4; column < pitch; column += 4 * kLanes) {
      float* const target = to + (row * pitch + column);
      if (std::is_same_v<T, float> && copies) {
        const bool there = from && column < width;
        begin_copy(target, there ? from + column : c.q, there);
        continue;
      }
      Pack<float, 4> four;
#pragma unroll
      for (int i = 0; i < 4; ++i) four.values[i] = from && column + i < width ? load(from[column + i]) : 0.f;
      store_pack(target, four);
    }
  }
}

/// Where row `j` of past and new keys (or values) of one head lies. Rows from `in_use` on may hold anything, NaN too: they are not read.
template <class T>
__device__ const T* row_of(int64_t j, const T* past, const HeadStrides& past_at, const T* fresh, const HeadStrides& at,
                           const AttentionCall<T>& c, int64_t b, int64_t h, int64_t in_use) {
  if (j >= in_use) return nullptr;
  return j < c.past ? past + b * past_at.b + h * past_at.h + j * past_at.r : fresh + b * at.b + h * at.h + (j - c.past) * at.r;
}

/// Which query of its block a lane's r-th is.
template <class Tile>
__device__ int query_of(int r) {
  return static_cast<int>(threadIdx.x) / 32 * 4 * Tile::kEach + r * 4 + static_cast<int>(threadIdx.x) % 32 / 8;
}

template <class Tile>
using Scores = float[Tile::kEach][Tile::kScores];
template <class Tile>
using Results = float[Tile::kEach][Tile::kColumns][4];

template <class Tile>
__device__ void multiply_keys(Scores<Tile>& s, const float* queries, const float* keys, int head) {
  const int lane = static_cast<int>(threadIdx.x) % 8, pitch = key_pitch(head);
  for (int p = 0; p < head; p += 4) {
    Pack<float, 4> q[Tile::kEach];
#pragma unroll
    for (int r = 0; r < Tile::kEach; ++r) q[r] = load_pack<4>(queries + (query_of<Tile>(r) * pitch + p));
#pragma unroll
    for (int j = 0; j < Tile::kScores; ++j) {
      const auto k = load_pack<4>(keys + ((j * 8 + lane) * pitch + p));
#pragma unroll
      for (int r = 0; r < Tile::kEach; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[r][j] += q[r].values[i] * k.values[i];
      }
    }
  }
}

/// `weights`: the exponentials of the block's scores.
template <class Tile>
__device__ void multiply_values(Results<Tile>& y, const float* weights, const float* values, int v_head) {
  const int column = static_cast<int>(threadIdx.x) % 8 * 4, pitch = value_pitch(v_head);
  for (int key = 0; key < Tile::kKeys; key += 4) {
    Pack<float, 4> w[Tile::kEach];
#pragma unroll
    for (int r = 0; r < Tile::kEach; ++r) w[r] = load_pack<4>(weights + (query_of<Tile>(r) * Tile::kScorePitch + key));
#pragma unroll
    for (int n = 0; n < Tile::kColumns; ++n) {
      if (n * 32 >= v_head) break;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const auto v = load_pack<4>(values + ((key + k) * pitch + n * 32 + column));
#pragma unroll
        for (int r = 0; r < Tile::kEach; ++r) {
#pragma unroll
          for (int i = 0; i < 4; ++i) y[r][n][i] += w[r].values[k] * v.values[i];
        }
      }
    }
  }
}

/// Sums to scores: scaled and masked. `bias`: of the block's keys; `in_use`: how many of them are keys.
template <class Tile, class T>
__device__ void finish_scores(Scores<Tile>& s, const AttentionCall<T>& c, int64_t b, int64_t h, int64_t first_query, int64_t first_key,
                              const float* bias, int64_t in_use) {
  const int lane = static_cast<int>(threadIdx.x) % 8;
  const bool by_query = c.mask && c.mask_at.q != 0;
#pragma unroll
  for (int r = 0; r < Tile::kEach; ++r) {
    const int64_t query = first_query + query_of<Tile>(r);
    const int64_t row = by_query ? mask_row(c, b, h, query < c.q_len ? query : 0) + first_key : 0;
#pragma unroll
    for (int j = 0; j < Tile::kScores; ++j) {
      const int key = j * 8 + lane;
      float score = s[r][j] * c.scale;
      if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
      score += bias[key];
      if (by_query && key < in_use) score += mask_value(c, row + key);
      s[r][j] = c.causal && first_key + key > query + c.past ? -std::numeric_limits<float>::infinity() : score;
    }
  }
}

/// Of a lane's queries: the largest score of all, and the sum of its own exponentials.
template <class Tile>
struct Rows {
  float max[Tile::kEach], sum[Tile::kEach];
};

/// Leaves the exponentials in `weights`, and what was summed before as much smaller as the largest score is larger. A score that is NaN makes its exponential NaN, and
/// so the sum: the largest may pass it by.
template <class Tile>
__device__ void update(Rows<Tile>& rows, Results<Tile>& y, const Scores<Tile>& s, float* weights) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int r = 0; r < Tile::kEach; ++r) {
    float max = rows.max[r];
#pragma unroll
    for (int j = 0; j < Tile::kScores; ++j) max = fmaxf(max, s[r][j]);
    for (int lanes = 4; lanes > 0; lanes /= 2) max = fmaxf(__shfl_xor_sync(0xFFFFFFFFu, max, lanes), max);
    const float base = max == kMinusInfinity ? 0.f : max;  // nothing may be looked at so far, and -Inf - -Inf would be NaN
    const float carried = std::exp(rows.max[r] - base);
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < Tile::kScores; ++j) {
      const float e = std::exp(s[r][j] - base);
      weights[query_of<Tile>(r) * Tile::kScorePitch + j * 8 + static_cast<int>(threadIdx.x) % 8] = e;
      sum += e;
    }
    rows.max[r] = max, rows.sum[r] = rows.sum[r] * carried + sum;
#pragma unroll
    for (int n = 0; n < Tile::kColumns; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) y[r][n][i] *= carried;
    }
  }
}

template <class Tile, class T>
__device__ void store(const Rows<Tile>& rows, const Results<Tile>& y, const AttentionCall<T>& c, int64_t b, int64_t h, int64_t first_query,
                      bool packs) {
#pragma unroll
  for (int r = 0; r < Tile::kEach; ++r) {
    float sum = rows.sum[r];
    for (int lanes = 4; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, lanes);
    const int64_t query = first_query + query_of<Tile>(r);
    if (query >= c.q_len) continue;
    T* const target = c.y + b * c.y_at.b + h * c.y_at.h + query * c.y_at.r;
#pragma unroll
    for (int n = 0; n < Tile::kColumns; ++n) {
      const int column = n * 32 + static_cast<int>(threadIdx.x) % 8 * 4;
      Pack<T, 4> four;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        four.values[i] =
            cast<T>(sum == 0.f && c.masked_to_zero ? 0.f : y[r][n][i] / sum);  // a query that may look at nothing: zeros, or NaN
      if (packs && column < c.v_head) {
        store_pack(target + column, four);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (column + i < c.v_head) target[column + i] = four.values[i];
        }
      }
    }
  }
}

template <class Tile, class T>
__global__ void __launch_bounds__(kThreads) attend(AttentionCall<T> c, Access access) {
  const int head = static_cast<int>(c.head), v_head = static_cast<int>(c.v_head), thread = static_cast<int>(threadIdx.x);
  float* const queries = shared_memory<float>();                      // [kQueries, key_pitch]
  float* const keys = queries + Tile::kQueries * key_pitch(head);     // [kKeys, key_pitch]
  float* const values = keys + Tile::kKeys * key_pitch(head);         // [kKeys, value_pitch]
  float* const weights = values + Tile::kKeys * value_pitch(v_head);  // [kQueries, kScorePitch]
  float* const bias = weights + Tile::kQueries * Tile::kScorePitch;   // [kKeys]
  const int64_t h = blockIdx.y % c.q_heads, b = blockIdx.y / c.q_heads, kv = h / (c.q_heads / c.kv_heads);
  const int64_t first_query = static_cast<int64_t>(blockIdx.x) * Tile::kQueries;
  const int64_t in_use = keys_in_use(c, b), reach = first_query + Tile::kQueries + c.past,
                end = c.causal && reach < in_use ? reach : in_use;
  const auto fetch_keys = [&](int64_t first) {
    fetch_rows(keys, Tile::kKeys, head, key_pitch(head), c, access.copies,
               [&](int i) { return row_of(first + i, c.past_k, c.past_k_at, c.k, c.k_at, c, b, kv, in_use); });
    close_group();
  };
  const auto fetch_values = [&](int64_t first) {
    fetch_rows(values, Tile::kKeys, v_head, value_pitch(v_head), c, access.copies,
               [&](int i) { return row_of(first + i, c.past_v, c.past_v_at, c.v, c.v_at, c, b, kv, in_use); });
    close_group();
  };

  if (end > 0) {
    fetch_rows(queries, Tile::kQueries, head, key_pitch(head), c, access.copies, [&](int i) -> const T* {
      const int64_t query = first_query + i;
      return query < c.q_len ? c.q + b * c.q_at.b + h * c.q_at.h + query * c.q_at.r : nullptr;
    });
    if (thread < Tile::kKeys) bias[thread] = key_bias(c, b, h, thread, in_use);
    fetch_keys(0);
    fetch_values(0);
  }
  Results<Tile> y = {};
  Rows<Tile> rows;
#pragma unroll
  for (int r = 0; r < Tile::kEach; ++r) rows.max[r] = -std::numeric_limits<float>::infinity(), rows.sum[r] = 0.f;
  for (int64_t first = 0; first < end; first += Tile::kKeys) {
    wait_copies<1>();
    __syncthreads();  // keys are there
    Scores<Tile> s = {};
    multiply_keys<Tile>(s, queries, keys, head);
    finish_scores<Tile>(s, c, b, h, first_query, first, bias, in_use - first);
    update<Tile>(rows, y, s, weights);
    wait_copies<0>();
    __syncthreads();  // values are there, and keys have been read; exponentials are this warp's own
    const int64_t next = first + Tile::kKeys;
    float next_bias = 0.f;
    if (next < end) {
      fetch_keys(next);
      if (thread < Tile::kKeys) next_bias = key_bias(c, b, h, next + thread, in_use);
    }
    multiply_values<Tile>(y, weights, values, v_head);
    if (thread < Tile::kKeys) bias[thread] = next_bias;
    __syncthreads();  // values have been read
    if (next < end) fetch_values(next);
  }
  wait_copies<0>();
  store<Tile>(rows, y, c, b, h, first_query, access.packs);
}

template <class Tile, class T>
Fault run(const Stream& stream, const AttentionCall<T>& c, const Access& access) {
  const Grid grid{dim3(blocks_for(c.q_len, Tile::kQueries), static_cast<unsigned>(c.batch * c.q_heads)), dim3(kThreads),
                  shared_bytes<Tile>(static_cast<int>(c.head), static_cast<int>(c.v_head))};
  return launch(stream, grid, attend<Tile, T>, c, access);
}

/// Where the kernel is prepared.
struct Place {
  bool can_copy = false;  ///< sm_80 or newer
  int multiprocessors = 0;
};

/// In `Many` where its blocks, each of more queries, are enough for the device.
template <class Many, class Few, class T>
Fault run_either(const AttentionOp& op, const Place& place, bool allowed, const Stream& stream, Inputs in, Outputs out) {
  const auto c = attention_call<T>(op, in, out);
  Access access;
  access.copies = place.can_copy && loads_packs<4>(c);
  access.packs = stores_packs<4>(c);
  const bool many = allowed && ceil_div(c.q_len, Many::kQueries) * c.batch * c.q_heads >= 2 * place.multiprocessors;
  return many ? run<Many, T>(stream, c, access) : run<Few, T>(stream, c, access);
}

template <class Many, class Few, class T>
Prepared prepare(const AttentionOp& op, const Place& place, std::string& why) {
  const auto is_allowed = [&op]<class Tile>(Tile, std::string& reason) {
    return allow_shared(attend<Tile, T>, shared_bytes<Tile>(static_cast<int>(op.head), static_cast<int>(op.v_head)),
                        shared_bytes<Tile>(Tile::kHead, Tile::kHead), reason);
  };
  if (!is_allowed(Few{}, why)) return nullptr;
  std::string reason;
  const bool allowed = std::is_same_v<Many, Few> || is_allowed(Many{}, reason);
  return make_kernel([op, place, allowed](Stream& stream, Inputs in, Outputs out) -> Fault {
    return run_either<Many, Few, T>(op, place, allowed, stream, in, out);
  });
}

template <class T>
Prepared prepare_for(const AttentionOp& op, const Place& place, std::string& why) {
  using Narrow = Tiling<64, 1, 64>;
  using Wide = Tiling<128, 1, 32>;
  using Widest = Tiling<256, 1, 32>;
  constexpr bool kSingle = std::is_same_v<T, float>;  // others are here for want of tensor cores, or for their heads
  const int64_t width = std::max(op.head, op.v_head);
  if (width <= Narrow::kHead) return prepare<std::conditional_t<kSingle, Tiling<64, 4, 64>, Narrow>, Narrow, T>(op, place, why);
  if (width <= Wide::kHead) return prepare<std::conditional_t<kSingle, Tiling<128, 2, 64>, Wide>, Wide, T>(op, place, why);
  if (width <= Widest::kHead) return prepare<Widest, Widest, T>(op, place, why);
  return refuse(why, "heads of more than 256 elements");
}

}  // namespace

Prepared prepare_attention(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto op = plain_attention_of(desc, why);
  if (!op) return nullptr;
  int device = 0, major = 0;
  Place place;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&place.multiprocessors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    return refuse(why, "the device does not answer");
  place.can_copy = major >= 8;
  return ref::for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_same_v<T, double>)
      return refuse(why, "no kernel for f64");  // its tiles do not fit shared memory
    else
      return prepare_for<T>(*op, place, why);
  });
}

}  // namespace serin::kernels::cuda
