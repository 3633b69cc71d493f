// top_k.cu: TopK: a block takes a line along the axis. Among equals the one with the lower index comes first; NaN counts as larger than everything.
//
// Elements become unsigned keys in whose order the best comes last (their bits, the sign undone; smallest wanted: all bits turned round). The k best are selected
// (radix_select.h), and only these are sorted: in shared memory, or in scratch where k is large.

#include <bit>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/radix_select.h"
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

/// Every element of a line takes part.
template <class T>
struct LineKeys {
  const T* x;
  int64_t inner;
  bool largest;
  __device__ bool operator()(int64_t i, bits_t<T>& key) const {
    key = key_of(x[i * inner], largest);
    return true;
  }
};

constexpr int64_t kSharedEntries = 2048;  // sorted in shared memory

struct Job {
  AxisView axis;
  int64_t k, padded;  ///< entries that are sorted: a power of two, k or more
  bool largest;
};

/// `scratch`: entries of each line, where they are not in shared memory; `indices` may be null.
template <class T>
__global__ void __launch_bounds__(1024) best_of_lines(Job job, const T* x, T* y, int64_t* indices, Entry<bits_t<T>>* scratch) {
  using K = bits_t<T>;
  auto& counts = *shared_memory<DigitCounts>();
  const int64_t lines = job.axis.outer * job.axis.inner;
  for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    auto* const entries = scratch ? scratch + line * job.padded : reinterpret_cast<Entry<K>*>(&counts + 1);
    const int64_t outer = line / job.axis.inner, inner = line % job.axis.inner;
    const T* const from = x + job.axis.at(outer, 0, inner);
    K last = 0;  // all are taken where k is the size: those of the least key, too
    auto equals = static_cast<uint32_t>(job.k);
    const LineKeys<T> keys{from, job.axis.inner, job.largest};
    if (job.k < job.axis.size) last = select<K>(keys, job.axis.size, counts, equals);
    collect(keys, job.axis.size, job.k, job.padded, last, equals, counts, entries);
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
          return launch(stream, {blocks_for(lines, 1), threads, sizeof(DigitCounts) + (shares ? entries : 0)}, best_of_lines<T>, job,
                        in[0].as<const T>(), out[0].as<T>(), out.size() > 1 ? out[1].as<int64_t>() : nullptr,
                        shares ? nullptr : reinterpret_cast<E*>(stream.scratch));
        },
        {.scratch_bytes = shares ? 0 : static_cast<size_t>(lines) * entries, .packed_inputs = 0b10});
  });
}

}  // namespace serin::kernels::cuda
