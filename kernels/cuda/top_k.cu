// top_k.cu: TopK: a block takes a line along the axis. Among equals the one with the lower index comes first; NaN counts as larger than everything.
//
// Elements become unsigned keys in whose order the best comes last (their bits, the sign undone; smallest wanted: all bits turned round). The key of the k-th
// best is found digit by digit, eight bits at a time: a histogram of the next digit among the keys that begin like the ones found, and the digit where the
// count from above reaches k (radix select). One more pass collects what is better, and of those that equal it the first; only these k are sorted, by a
// bitonic network in shared memory, or in scratch where k is large.

#include <bit>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::AxisView;
using ref::Element;

template <class T>
using bits_t = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

/// Keys compare as elements do: NaN above all, zeros of both signs equal.
template <class T>
__device__ bits_t<T> key_of(T x, bool largest) {
  using Bits = bits_t<T>;
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  auto bits = std::bit_cast<Bits>(x);
  if constexpr (kIsFloatKind<T>) {
    if (load(x) != load(x))
      bits = static_cast<Bits>(~Bits{0});
    else if (load(x) == 0)
      bits = kSign;
    else
      bits = bits & kSign ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign);
  } else if constexpr (std::is_signed_v<T>) {
    bits = static_cast<Bits>(bits ^ kSign);
  }
  return largest ? bits : static_cast<Bits>(~bits);
}

template <class K>
struct Entry {
  K key;
  uint32_t index;
  __device__ bool comes_before(const Entry& other) const { return key > other.key || (key == other.key && index < other.index); }
};

constexpr int kRadix = 256;
constexpr int64_t kSharedEntries = 2048;  // sorted in shared memory

struct Job {
  AxisView axis;
  int64_t k, padded;  ///< entries that are sorted: a power of two, k or more
  bool largest;
};

/// What a block shares beside the entries.
struct Counts {
  uint32_t of_digit[kRadix];
  uint32_t digit, wanted;  ///< found by the first warp
  uint32_t of_warp[32];
};

/// The digit at which the count of keys from above reaches `wanted`, and how many of the keys with that digit are wanted. By the first warp.
__device__ inline void find_digit(Counts& counts, uint32_t wanted) {
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

/// The key of the k-th best; `wanted` becomes how many of those with exactly that key are among the k.
template <class T>
__device__ bits_t<T> select(const T* x, const Job& job, Counts& counts, uint32_t& wanted) {
  using K = bits_t<T>;
  K found = 0, decided = 0;  // the digits of the key so far, and ones in their place
  for (int shift = 8 * static_cast<int>(sizeof(T)) - 8; shift >= 0; shift -= 8) {
    for (int i = static_cast<int>(threadIdx.x); i < kRadix; i += static_cast<int>(blockDim.x)) counts.of_digit[i] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < job.axis.size; i += blockDim.x) {
      const K key = key_of(x[i * job.axis.inner], job.largest);
      if ((key & decided) == found) atomicAdd(&counts.of_digit[static_cast<uint32_t>(key >> shift) & (kRadix - 1)], 1u);
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

/// How many threads of the block before this one bring `true`; `total`: how many in all.
__device__ inline uint32_t rank_in_block(bool mine, Counts& counts, uint32_t& total) {
  const unsigned votes = __ballot_sync(0xFFFFFFFFu, mine);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) counts.of_warp[warp] = static_cast<uint32_t>(__popc(votes));
  __syncthreads();
  uint32_t before = 0;
  total = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) {
    if (i == warp) before = total;
    total += counts.of_warp[i];
  }
  __syncthreads();
  return before + static_cast<uint32_t>(__popc(votes & ((1u << lane) - 1)));
}

/// The k best in the order of their indices; of those with key `last`, the first `equals`.
template <class T>
__device__ void collect(const T* x, const Job& job, bits_t<T> last, uint32_t equals, Counts& counts, Entry<bits_t<T>>* entries) {
  uint32_t taken = 0, equal = 0;
  for (int64_t first = 0; first < job.axis.size && taken < job.k; first += blockDim.x) {
    const int64_t i = first + threadIdx.x;
    const bits_t<T> key = i < job.axis.size ? key_of(x[i * job.axis.inner], job.largest) : bits_t<T>{0};
    uint32_t total;
    const bool is_equal = i < job.axis.size && key == last;
    const uint32_t rank = equal + rank_in_block(is_equal, counts, total);
    equal += total;
    const bool wanted = i < job.axis.size && (key > last || (is_equal && rank < equals));
    const uint32_t place = taken + rank_in_block(wanted, counts, total);
    taken += total;
    if (wanted) entries[place] = {key, static_cast<uint32_t>(i)};
  }
  for (int64_t i = job.k + threadIdx.x; i < job.padded; i += blockDim.x) entries[i] = {0, UINT32_MAX};
  __syncthreads();
}

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

/// `scratch`: entries of each line, where they are not in shared memory; `indices` may be null.
template <class T>
__global__ void best_of_lines(Job job, const T* x, T* y, int64_t* indices, Entry<bits_t<T>>* scratch) {
  using K = bits_t<T>;
  auto& counts = *shared_memory<Counts>();
  const int64_t lines = job.axis.outer * job.axis.inner;
  for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    auto* const entries = scratch ? scratch + line * job.padded : reinterpret_cast<Entry<K>*>(&counts + 1);
    const int64_t outer = line / job.axis.inner, inner = line % job.axis.inner;
    const T* const from = x + job.axis.at(outer, 0, inner);
    K last = 0;  // all are taken where k is the size: those of the least key, too
    auto equals = static_cast<uint32_t>(job.k);
    if (job.k < job.axis.size) last = select(from, job, counts, equals);
    collect(from, job, last, equals, counts, entries);
    sort(entries, job.padded);
    for (int64_t i = threadIdx.x; i < job.k; i += blockDim.x) {
      const int64_t at = (outer * job.k + i) * job.axis.inner + inner;
      y[at] = from[entries[i].index * job.axis.inner];
      if (indices) indices[at] = entries[i].index;
    }
    __syncthreads();
  }
}

}  // namespace

Prepared prepare_top_k(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const int64_t axis = ref::resolve_axis(attributes.integer("axis", -1), x.rank());
  if (axis < 0) return refuse(why, "axis out of range");
  const AxisView view(x, static_cast<size_t>(axis));
  const int64_t k = desc.outputs[0].shape[static_cast<size_t>(axis)];
  if (view.size >= UINT32_MAX) return refuse(why, "indices of more than 32 bits");
  if (k > view.size) return refuse(why, "k is larger than the axis");
  const Job job{view, k, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(k))), attributes.integer("largest", 1) != 0};
  const int64_t lines = view.outer * view.inner;
  const unsigned threads = view.size > 4096 ? 1024 : view.size > 256 ? 256 : 64;
  return ref::for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    using E = Entry<bits_t<T>>;
    const bool shares = job.padded <= kSharedEntries;
    const size_t entries = static_cast<size_t>(job.padded) * sizeof(E);
    return make_kernel(
        [=](Stream& stream, Inputs in, Outputs out) -> Fault {
          if (job.k == 0) return kOk;
          return launch(stream, {blocks_for(lines, 1), threads, sizeof(Counts) + (shares ? entries : 0)}, best_of_lines<T>, job,
                        in[0].as<const T>(), out[0].as<T>(), out.size() > 1 ? out[1].as<int64_t>() : nullptr,
                        shares ? nullptr : reinterpret_cast<E*>(stream.scratch));
        },
        {.scratch_bytes = shares ? 0 : static_cast<size_t>(lines) * entries, .packed_inputs = 0b10});
  });
}

}  // namespace serin::kernels::cuda
