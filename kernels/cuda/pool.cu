// pool.cu: Pool over up to three spatial axes: a thread for each result. Neighbouring threads take neighbouring results, whose windows overlap in cache.

#include <limits>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors.h"
#include "kernels/indexing.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kThreads = 256;
constexpr int kAxes = 3;

/// Fewer axes have leading ones of size 1.
struct Windows {
  bool channels_last = false;
  int64_t channels = 1, results = 0;
  int64_t x[kAxes] = {1, 1, 1}, y[kAxes] = {1, 1, 1}, kernel[kAxes] = {1, 1, 1}, stride[kAxes] = {1, 1, 1}, dilation[kAxes] = {1, 1, 1},
          begin[kAxes] = {0, 0, 0}, end[kAxes] = {0, 0, 0};
  bool average = false, count_include_pad = false;
};

template <class T>
using sum_t = std::conditional_t<kIsFloatKind<T>, compute_t<T>, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
__device__ compute_t<T> lowest() {
  using Limits = std::numeric_limits<compute_t<T>>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <class T>
__global__ void pool_windows(Windows w, const T* x, T* y) {
  const int64_t x_pixels = w.x[0] * w.x[1] * w.x[2], pixel = w.channels_last ? w.channels : 1;
  for (int64_t i = first_element(); i < w.results; i += element_step()) {
    int64_t rest = w.channels_last ? i / w.channels : i, at[kAxes];
    for (int axis = kAxes - 1; axis >= 0; --axis) {
      at[axis] = rest % w.y[axis] * w.stride[axis] - w.begin[axis];
      rest /= w.y[axis];
    }
    const T* const image = x + rest * x_pixels * pixel + (w.channels_last ? i % w.channels : 0);
    compute_t<T> best = lowest<T>();
    sum_t<T> sum = 0;
    int64_t inside = 0, counted = 0;
    for (int64_t a = 0; a < w.kernel[0]; ++a) {
      const int64_t d = at[0] + a * w.dilation[0];
      for (int64_t b = 0; b < w.kernel[1]; ++b) {
        const int64_t h = at[1] + b * w.dilation[1];
        for (int64_t c = 0; c < w.kernel[2]; ++c) {
          const int64_t v = at[2] + c * w.dilation[2];
          counted += d < w.x[0] + w.end[0] && h < w.x[1] + w.end[1] && v < w.x[2] + w.end[2];
          if (d < 0 || d >= w.x[0] || h < 0 || h >= w.x[1] || v < 0 || v >= w.x[2]) continue;
          const compute_t<T> value = load(image[((d * w.x[1] + h) * w.x[2] + v) * pixel]);
          best = maximum(value, best);
          sum = binary(BinaryFn::kAdd, sum, static_cast<sum_t<T>>(value));
          ++inside;
        }
      }
    }
    const int64_t count = w.count_include_pad ? counted : inside;
    const sum_t<T> mean = count == 0 ? sum_t<T>(0) : divide(sum, static_cast<sum_t<T>>(count));
    y[i] = w.average ? cast<T>(mean) : cast<T>(best);
  }
}

}  // namespace

Prepared prepare_pool(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Pool>(desc.op);
  const Shape &x = desc.inputs[0].shape, &y = desc.outputs[0].shape;
  const size_t axes = op.kernel.size(), first = op.channels_last ? 1 : 2;  // spatial axis
  if (axes > kAxes || x.rank() != axes + 2) return refuse(why, "only one to three spatial axes");
  Windows windows;
  windows.channels_last = op.channels_last;
  windows.channels = op.channels_last ? x.back() : x[1];
  windows.average = op.average;
  windows.count_include_pad = op.count_include_pad;
  windows.results = y.elements();
  for (size_t axis = 0; axis < axes; ++axis) {
    const size_t at = kAxes - axes + axis;
    windows.x[at] = x[axis + first], windows.y[at] = y[axis + first];
    windows.kernel[at] = op.kernel[axis], windows.stride[at] = op.strides[axis], windows.dilation[at] = op.dilations[axis];
    windows.begin[at] = op.pads[axis], windows.end[at] = op.pads[axis + axes];
  }
  return ref::for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([windows](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(windows.results, kThreads), kThreads}, pool_windows<T>, windows, in[0].as<const T>(),
                    out[0].as<T>());
    });
  });
}

}  // namespace serin::kernels::cuda
