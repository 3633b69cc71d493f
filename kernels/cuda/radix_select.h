// radix_select.h: A block finds the best k of many elements by their unsigned keys, the largest first; of equal keys the one with
// the lower index first.
//
//   uint32_t equals = k;
//   const K last = select<K>(keys, size, counts, equals);            // the k-th best key; `equals`: how many of it are needed
//   collect(keys, size, k, padded, last, equals, counts, entries);   // the k elements in the order of their indices
//   sort(entries, padded);                                           // best first
//
// `keys(i, key)` returns whether element i takes part, and gives its key. The k-th best key is found digit by digit, eight bits at a time.
// A histogram counts the next digit among the keys that begin with the digits found. The next digit is the one where the count from above
// reaches k. This is radix select: Alabi, Blanchard, Gordon and Steinbach, "Fast k-selection algorithms for graphics processing units",
// 2012. One more pass collects the better elements, and the first ones of those equal to it. Only these are sorted, by a bitonic network.
#pragma once

#include "kernels/cuda/rank.h"

namespace serin::kernels::cuda {

template <class K>
struct Entry {
  K key;
  uint32_t index;
  __device__ bool comes_before(const Entry& other) const { return key > other.key || (key == other.key && index < other.index); }
};

inline constexpr int kRadix = 256;

/// Shared memory of a block in addition to the entries.
struct DigitCounts {
  uint32_t of_digit[kRadix];
  uint32_t digit, wanted;  ///< found by the first warp
  uint32_t of_warp[32];
};

/// The digit at which the count of keys from above reaches `wanted`, and how many of the keys with that digit are needed. By the first
/// warp.
__device__ inline void find_digit(DigitCounts& counts, uint32_t wanted) {
  constexpr int kOwn = kRadix / 32;
  const int lane = static_cast<int>(threadIdx.x), top = kRadix - 1 - lane * kOwn;  // lane 0 has the highest digits
  uint32_t own = 0;
  for (int i = 0; i < kOwn; ++i) own += counts.of_digit[top - i];
  uint32_t above = own;  // of this lane's digits and those above them
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const uint32_t other = __shfl_up_sync(0xFFFFFFFFu, above, static_cast<unsigned>(lanes));
    if (lane >= lanes) above += other;
  }
  above -= own;
  if (above >= wanted || above + own < wanted) return;  // another lane's
  for (int i = 0; i < kOwn; ++i) {
    const uint32_t here = counts.of_digit[top - i];
    if (above + here >= wanted) {
      counts.digit = static_cast<uint32_t>(top - i), counts.wanted = wanted - above;
      return;
    }
    above += here;
  }
}

/// Requires that at least `wanted` elements take part.
template <class K, class Keys>
__device__ K select(const Keys& keys, int64_t size, DigitCounts& counts, uint32_t& wanted) {
  K found = 0, decided = 0;  // the digits of the key so far, and ones in their positions
  for (int shift = 8 * static_cast<int>(sizeof(K)) - 8; shift >= 0; shift -= 8) {
    for (int i = static_cast<int>(threadIdx.x); i < kRadix; i += static_cast<int>(blockDim.x)) counts.of_digit[i] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
      K key;
      if (keys(i, key) && (key & decided) == found) atomicAdd(&counts.of_digit[static_cast<uint32_t>(key >> shift) & (kRadix - 1)], 1u);
    }
    __syncthreads();
    if (threadIdx.x < 32) find_digit(counts, wanted);
    __syncthreads();
    found = static_cast<K>(found | static_cast<K>(counts.digit) << shift);
    decided = static_cast<K>(decided | static_cast<K>(kRadix - 1) << shift);
    wanted = counts.wanted;
    __syncthreads();
  }
  return found;
}

/// Elements with a key above `last`, and the first `equals` of those equal to it: k in all. Entries from k to `padded` sort after all
/// others.
template <class K, class Keys>
__device__ void collect(const Keys& keys, int64_t size, int64_t k, int64_t padded, K last, uint32_t equals, DigitCounts& counts,
                        Entry<K>* entries) {
  uint32_t taken = 0, equal = 0;
  for (int64_t first = 0; first < size && taken < k; first += blockDim.x) {
    const int64_t i = first + threadIdx.x;
    K key = 0;
    const bool takes_part = i < size && keys(i, key), is_equal = takes_part && key == last;
    uint32_t total;
    const uint32_t rank = equal + rank_in_block(is_equal, counts.of_warp, total);
    equal += total;
    const bool wanted = takes_part && (key > last || (is_equal && rank < equals));
    const uint32_t place = taken + rank_in_block(wanted, counts.of_warp, total);
    taken += total;
    if (wanted) entries[place] = {key, static_cast<uint32_t>(i)};
  }
  for (int64_t i = k + threadIdx.x; i < padded; i += blockDim.x) entries[i] = {0, UINT32_MAX};
  __syncthreads();
}

/// `count`: a power of two.
template <class K>
__device__ void sort(Entry<K>* entries, int64_t count) {
  for (int64_t size = 2; size <= count; size *= 2) {
    for (int64_t distance = size / 2; distance > 0; distance /= 2) {
      for (int64_t i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const int64_t low = i / distance * 2 * distance + i % distance, high = low + distance;
        const bool rising = (low & size) == 0;
        const Entry<K> a = entries[low], b = entries[high];
        if (b.comes_before(a) == rising) entries[low] = b, entries[high] = a;
      }
      __syncthreads();
    }
  }
}

}  // namespace serin::kernels::cuda
