// cum_sum.cu: CumSum. A block takes a line along the axis: 256 elements at a time are summed by shuffles, what came before is carried on. Where lines lie side
// by side in memory and are many, each thread takes one of its own, so that a warp reads runs of memory.

#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::AxisView;
using ref::Element;

constexpr int64_t kManyLines = 4096;

/// Sums wrap where they are integers.
template <class S>
__device__ S plus(S a, S b) {
  return binary(BinaryFn::kAdd, a, b);
}

template <class T>
__global__ void sum_along_block(const T* x, T* y, AxisView axis, CumSum op) {
  using S = sum_t<T>;
  S* const warp_sums = shared_memory<S>();  // [kBlockWarps]
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t lines = axis.outer * axis.inner;
  for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    const int64_t start = axis.at(line / axis.inner, 0, line % axis.inner);
    S before = 0;
    for (int64_t first = 0; first < axis.size; first += kBlockThreads) {
      const int64_t step = first + threadIdx.x, at = start + (op.reverse ? axis.size - 1 - step : step) * axis.inner;
      const S own = step < axis.size ? static_cast<S>(load(x[at])) : S(0);
      S sum = own;  // of the lanes up to this one
      for (int lanes = 1; lanes < 32; lanes *= 2) {
        const S other = __shfl_up_sync(0xFFFFFFFFu, sum, static_cast<unsigned>(lanes));
        if (lane >= lanes) sum = plus(other, sum);
      }
      if (lane == 31) warp_sums[warp] = sum;
      __syncthreads();
      S total = before, preceding = before;
      for (int i = 0; i < kBlockWarps; ++i) {
        if (i == warp) preceding = total;
        total = plus(total, warp_sums[i]);
      }
      before = total;
      // Exclusive: the sum of the lanes before this one, not sum - own, which would be another number in floats.
      S up_to = __shfl_up_sync(0xFFFFFFFFu, sum, 1u);
      if (lane == 0) up_to = S(0);
      if (step < axis.size) y[at] = cast<T>(plus(preceding, op.exclusive ? up_to : sum));
      __syncthreads();
    }
  }
}

template <class T>
__global__ void sum_along_thread(const T* x, T* y, AxisView axis, CumSum op) {
  using S = sum_t<T>;
  for (int64_t line = first_element(); line < axis.outer * axis.inner; line += element_step()) {
    const int64_t start = axis.at(line / axis.inner, 0, line % axis.inner);
    S sum = 0;
    for (int64_t step = 0; step < axis.size; ++step) {
      const int64_t at = start + (op.reverse ? axis.size - 1 - step : step) * axis.inner;
      const S next = plus(sum, static_cast<S>(load(x[at])));
      y[at] = cast<T>(op.exclusive ? sum : next);
      sum = next;
    }
  }
}

}  // namespace

Prepared prepare_cum_sum(const OpDesc& desc, PrepareContext&, std::string& why) {
  const CumSum op = std::get<CumSum>(desc.op);
  const AxisView axis(desc.inputs[0].shape, static_cast<size_t>(op.axis));
  const int64_t lines = axis.outer * axis.inner;
  const bool by_thread = axis.inner > 1 && lines >= kManyLines;
  return ref::for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
      if (by_thread)
        return launch(stream, {blocks_for(lines, kBlockThreads), kBlockThreads}, sum_along_thread<T>, in[0].as<const T>(), out[0].as<T>(),
                      axis, op);
      return launch(stream, {blocks_for(lines, 1), kBlockThreads, kBlockWarps * sizeof(sum_t<T>)}, sum_along_block<T>, in[0].as<const T>(),
                    out[0].as<T>(), axis, op);
    });
  });
}

}  // namespace serin::kernels::cuda
