// pool.cu: Pool over up to three spatial axes: a thread for each result. Neighbouring threads take neighbouring results, whose windows overlap in cache.

#include <limits>

#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/windows.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

struct Pooling {
  Windows windows;
  Division channels;  ///< where they are last
  int64_t results = 0;
  bool channels_last = false, average = false, count_include_pad = false;
};

template <class T>
__device__ compute_t<T> lowest() {
  using Limits = std::numeric_limits<compute_t<T>>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <class T>
__global__ void pool_windows(Pooling p, const T* x, T* y) {
  const Windows& windows = p.windows;
  const int64_t step = p.channels_last ? p.channels.d : 1;  // from pixel to pixel
  for (int64_t i = first_element(); i < p.results; i += element_step()) {
    int64_t at[kWindowAxes];
    const int64_t plane = windows.locate(p.channels_last ? p.channels.quotient(i) : i, at);
    for (int axis = 0; axis < kWindowAxes; ++axis) at[axis] = windows.begins(axis, at[axis]);
    const T* const image = x + plane * windows.x_pixels() * step + (p.channels_last ? p.channels.remainder(i) : 0);
    compute_t<T> best = lowest<T>();
    sum_t<T> sum = 0;
    int64_t inside = 0, counted = 0;
    for (int64_t a = 0; a < windows.kernel[0]; ++a) {
      const int64_t d = at[0] + a * windows.dilation[0];
      for (int64_t b = 0; b < windows.kernel[1]; ++b) {
        const int64_t h = at[1] + b * windows.dilation[1];
        for (int64_t c = 0; c < windows.kernel[2]; ++c) {
          const int64_t v = at[2] + c * windows.dilation[2];
          counted += d < windows.x[0] + windows.end[0] && h < windows.x[1] + windows.end[1] && v < windows.x[2] + windows.end[2];
          if (d < 0 || d >= windows.x[0] || h < 0 || h >= windows.x[1] || v < 0 || v >= windows.x[2]) continue;
          const compute_t<T> value = load(image[((d * windows.x[1] + h) * windows.x[2] + v) * step]);
          best = maximum(value, best);
          sum = binary(BinaryFn::kAdd, sum, static_cast<sum_t<T>>(value));
          ++inside;
        }
      }
    }
    const int64_t count = p.count_include_pad ? counted : inside;
    const sum_t<T> mean = count == 0 ? sum_t<T>(0) : divide(sum, static_cast<sum_t<T>>(count));
    y[i] = p.average ? cast<T>(mean) : cast<T>(best);
  }
}

}  // namespace

Prepared prepare_pool(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Pool>(desc.op);
  const Shape &x = desc.inputs[0].shape, &y = desc.outputs[0].shape;
  const size_t axes = op.kernel.size(), first = op.channels_last ? 1 : 2;  // spatial axis
  if (axes > kWindowAxes || x.rank() != axes + 2) return refuse(why, "only one to three spatial axes");
  const Pooling pooling{.windows = Windows(x, y, first, op.kernel, op.strides, op.dilations, op.pads),
                        .channels = Division(op.channels_last ? x.back() : x[1], y.elements()),
                        .results = y.elements(),
                        .channels_last = op.channels_last,
                        .average = op.average,
                        .count_include_pad = op.count_include_pad};
  return ref::for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([pooling](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(pooling.results, kBlockThreads), kBlockThreads}, pool_windows<T>, pooling, in[0].as<const T>(),
                    out[0].as<T>());
    });
  });
}

}  // namespace serin::kernels::cuda
