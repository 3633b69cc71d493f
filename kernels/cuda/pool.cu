// pool.cu: Pool over up to three spatial axes: a thread for each result, or for 16 bytes of neighbouring channels where these are last. Neighbouring threads
// take neighbouring results, whose windows overlap in cache.

#include <limits>

#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/windows.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

struct Pooling {
  Windows windows;
  Division channels;    ///< where they are last: packs of a pixel
  int64_t results = 0;  ///< packs of them
  bool channels_last = false, average = false, count_include_pad = false;
};

template <class T>
__device__ compute_t<T> lowest() {
  using Limits = std::numeric_limits<compute_t<T>>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <int kPack, class T>
__global__ void pool_windows(Pooling p, const T* x, T* y) {
  const Windows& windows = p.windows;
  const int64_t step = p.channels_last ? p.channels.d * kPack : 1;  // from pixel to pixel
  for (int64_t i = first_element(); i < p.results; i += element_step()) {
    int64_t at[kWindowAxes];
    const int64_t plane = windows.locate(p.channels_last ? p.channels.quotient(i) : i, at);
    for (int axis = 0; axis < kWindowAxes; ++axis) at[axis] = windows.begins(axis, at[axis]);
    const T* const image = x + plane * windows.x_pixels() * step + (p.channels_last ? p.channels.remainder(i) * kPack : 0);
    compute_t<T> best[kPack];
    sum_t<T> sum[kPack] = {};
#pragma unroll
    for (int k = 0; k < kPack; ++k) best[k] = lowest<T>();
    int64_t inside = 0, counted = 0;
    for (int64_t a = 0; a < windows.kernel[0]; ++a) {
      const int64_t d = at[0] + a * windows.dilation[0];
      for (int64_t b = 0; b < windows.kernel[1]; ++b) {
        const int64_t h = at[1] + b * windows.dilation[1];
        for (int64_t c = 0; c < windows.kernel[2]; ++c) {
          const int64_t v = at[2] + c * windows.dilation[2];
          counted += d < windows.x[0] + windows.end[0] && h < windows.x[1] + windows.end[1] && v < windows.x[2] + windows.end[2];
          if (d < 0 || d >= windows.x[0] || h < 0 || h >= windows.x[1] || v < 0 || v >= windows.x[2]) continue;
          const auto pack = load_pack<kPack>(image + ((d * windows.x[1] + h) * windows.x[2] + v) * step);
#pragma unroll
          for (int k = 0; k < kPack; ++k) {
            const compute_t<T> value = load(pack.values[k]);
            best[k] = maximum(value, best[k]);
            sum[k] = binary(BinaryFn::kAdd, sum[k], static_cast<sum_t<T>>(value));
          }
          ++inside;
        }
      }
    }
    const int64_t count = p.count_include_pad ? counted : inside;
    Pack<T, kPack> result;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const sum_t<T> mean = count == 0 ? sum_t<T>(0) : divide(sum[k], static_cast<sum_t<T>>(count));
      result.values[k] = p.average ? cast<T>(mean) : cast<T>(best[k]);
    }
    store_pack(y + i * kPack, result);
  }
}

}  // namespace

Prepared prepare_pool(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Pool>(desc.op);
  const Shape &x = desc.inputs[0].shape, &y = desc.outputs[0].shape;
  const size_t axes = op.kernel.size(), first = op.channels_last ? 1 : 2;  // spatial axis
  if (axes > kWindowAxes || x.rank() != axes + 2) return refuse(why, "only one to three spatial axes");
  const int64_t channels = op.channels_last ? x.back() : x[1];
  const Pooling pooling{.windows = Windows(x, y, first, op.kernel, op.strides, op.dilations, op.pads),
                        .channels = Division(channels, y.elements()),
                        .results = y.elements(),
                        .channels_last = op.channels_last,
                        .average = op.average,
                        .count_include_pad = op.count_include_pad};
  return ref::for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    constexpr int kPack = std::max(1, 16 / static_cast<int>(sizeof(T)));
    Pooling of_packs = pooling;
    of_packs.channels = Division(channels / kPack, y.elements()), of_packs.results = y.elements() / kPack;
    const bool packs = op.channels_last && channels % kPack == 0;
    return make_kernel([pooling, of_packs, packs](Stream& stream, Inputs in, Outputs out) -> Fault {
      const T* const from = in[0].as<const T>();
      T* const to = out[0].as<T>();
      if (packs && is_aligned<T, kPack>(from) && is_aligned<T, kPack>(to))
        return launch(stream, {blocks_for(of_packs.results, kBlockThreads), kBlockThreads}, pool_windows<kPack, T>, of_packs, from, to);
      return launch(stream, {blocks_for(pooling.results, kBlockThreads), kBlockThreads}, pool_windows<1, T>, pooling, from, to);
    });
  });
}

}  // namespace serin::kernels::cuda
