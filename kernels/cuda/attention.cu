// attention.cu: Attention without tensor cores, for f32, and for 16-bit floats where attention_tiles.cu refuses: 16 queries of one head by 64 keys at a time, the
// softmax carried from block to block, so that scores are never written out (Dao et al., "FlashAttention", 2022).
//
//   m' = max(m, max of the block's scores);  y = y exp(m - m') + sum exp(s - m') v;  l likewise;  at the end y / l
//
// A block of 256 threads: for the scores thread t has query t / 16 and keys t % 16, + 16, + 32, + 48; for y the same query and every sixteenth element of
// its head. Keys and values pass through shared memory in the type that is computed in.

#include "kernels/cuda/attention_call.h"
#include "kernels/cuda/rows.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kQueries = 16, kKeys = 64, kThreads = 256;
constexpr int kMaxHead = 256;
constexpr int kColumns = kMaxHead / 16;  // of y, for each thread

/// Rows [first, first + kKeys) of past and new keys (or values) of one head, as the type that is computed in; zeros beyond the end.
template <class T>
__device__ void load_rows(compute_t<T>* to, const T* past, const HeadStrides& past_at, const T* fresh, const HeadStrides& at,
                          const AttentionCall<T>& c, int64_t b, int64_t h, int64_t first, int64_t width) {
  for (int64_t e = threadIdx.x; e < kKeys * width; e += kThreads) {
    const int64_t j = first + e / width, i = e % width;
    compute_t<T> value = 0;
    if (j < c.past)
      value = load(past[b * past_at.b + h * past_at.h + j * past_at.r + i]);
    else if (j < c.total)
      value = load(fresh[b * at.b + h * at.h + (j - c.past) * at.r + i]);
    to[e / width * (width + 1) + i] = value;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) attend(AttentionCall<T> c) {
  using C = compute_t<T>;
  constexpr C kMinusInfinity = -std::numeric_limits<C>::infinity();
  const int64_t width = c.head > c.v_head ? c.head : c.v_head;
  C* const queries = shared_memory<C>();              // [kQueries, head + 1]
  C* const rows = queries + kQueries * (c.head + 1);  // [kKeys, width + 1]: keys, then values
  C* const scores = rows + kKeys * (width + 1);       // [kQueries, kKeys]
  const int thread = static_cast<int>(threadIdx.x), query = thread / 16, lane = thread % 16;
  const int64_t h = blockIdx.y % c.q_heads, b = blockIdx.y / c.q_heads, kv = h / (c.q_heads / c.kv_heads);
  const int64_t first_query = static_cast<int64_t>(blockIdx.x) * kQueries, i = first_query + query;

  for (int64_t e = thread; e < kQueries * c.head; e += kThreads) {
    const int64_t row = first_query + e / c.head;
    queries[e / c.head * (c.head + 1) + e % c.head] =
        row < c.q_len ? static_cast<C>(load(c.q[b * c.q_at.b + h * c.q_at.h + row * c.q_at.r + e % c.head])) : C(0);
  }
  C max = kMinusInfinity, sum = 0, y[kColumns] = {};
  for (int64_t first = 0; first < c.total; first += kKeys) {
    __syncthreads();  // the last block's values have been read, and the queries written
    load_rows(rows, c.past_k, c.past_k_at, c.k, c.k_at, c, b, kv, first, c.head);
    __syncthreads();
    C block_max = kMinusInfinity, s[kKeys / 16];
    for (int part = 0; part < kKeys / 16; ++part) {
      const int key = part * 16 + lane;
      C score = 0;
      for (int64_t p = 0; p < c.head; ++p) score += queries[query * (c.head + 1) + p] * rows[key * (c.head + 1) + p];
      s[part] = first + key < c.total ? masked(c, b, h, i < c.q_len ? i : 0, first + key, score * static_cast<C>(c.scale)) : kMinusInfinity;
      block_max = maximum(s[part], block_max);
    }
    for (int lanes = 8; lanes > 0; lanes /= 2) block_max = maximum(__shfl_xor_sync(0xFFFFFFFFu, block_max, lanes), block_max);
    const C next_max = maximum(block_max, max);
    // Nothing may be looked at so far: there is nothing to carry over, and -Inf - -Inf would be NaN.
    const C carried = max == kMinusInfinity ? C(0) : std::exp(max - next_max);
    C block_sum = 0;
    for (int part = 0; part < kKeys / 16; ++part) {
      const C e = s[part] == kMinusInfinity ? C(0) : std::exp(s[part] - next_max);
      scores[query * kKeys + part * 16 + lane] = e;
      block_sum += e;
    }
    for (int lanes = 8; lanes > 0; lanes /= 2) block_sum += __shfl_xor_sync(0xFFFFFFFFu, block_sum, lanes);
    sum = sum * carried + block_sum;
    max = next_max;
    __syncthreads();  // all keys have been read, all scores written
    load_rows(rows, c.past_v, c.past_v_at, c.v, c.v_at, c, b, kv, first, c.v_head);
    __syncthreads();
    for (int column = 0; column * 16 + lane < c.v_head; ++column) {
      C value = y[column] * carried;
      for (int key = 0; key < kKeys; ++key) value += scores[query * kKeys + key] * rows[key * (c.v_head + 1) + column * 16 + lane];
      y[column] = value;
    }
  }
  if (i >= c.q_len) return;
  T* const target = c.y + b * c.y_at.b + h * c.y_at.h + i * c.y_at.r;
  // A query that may look at nothing: zeros, or NaN.
  for (int column = 0; column * 16 + lane < c.v_head; ++column)
    target[column * 16 + lane] = cast<T>(sum == C(0) && c.masked_to_zero ? C(0) : y[column] / sum);
}

template <class T>
size_t shared_bytes(int64_t head, int64_t v_head) {
  const int64_t width = std::max(head, v_head);
  return static_cast<size_t>(kQueries * (head + 1) + kKeys * (width + 1) + kQueries * kKeys) * sizeof(compute_t<T>);
}

template <class T>
Fault run(const AttentionOp& op, const Stream& stream, Inputs in, Outputs out) {
  const auto c = attention_call<T>(op, in, out);
  const Grid grid{dim3(blocks_for(c.q_len, kQueries), static_cast<unsigned>(c.batch * c.q_heads)), dim3(kThreads),
                  shared_bytes<T>(op.head, op.v_head)};
  return launch(stream, grid, attend<T>, c);
}

}  // namespace

Prepared prepare_attention(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto op = plain_attention_of(desc, why);
  if (!op) return nullptr;
  if (op->head > kMaxHead || op->v_head > kMaxHead) return refuse(why, "heads of more than 256 elements");
  return ref::for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_same_v<T, double>) {
      return refuse(why, "no kernel for f64");  // its tiles do not fit shared memory
    } else {
      if (!allow_shared(attend<T>, shared_bytes<T>(op->head, op->v_head), shared_bytes<T>(kMaxHead, kMaxHead), why)) return nullptr;
      return make_kernel([op = *op](Stream& stream, Inputs in, Outputs out) -> Fault { return run<T>(op, stream, in, out); });
    }
  });
}

}  // namespace serin::kernels::cuda
