// conv.cu: Conv of any type, stride, dilation and group over one to three axes, directly: a thread for each result. What cuDNN does not take, and what the
// emulated device runs. BatchNorm, too: what is left of it where it could not be folded into a convolution.

#include <algorithm>

#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/windows.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kThreads = 128;

/// Steps: from one channel of x to the next, from one pixel to the next; of a weight from one channel or cell to the next.
struct Geometry {
  Windows windows;
  bool channels_last = false;
  int64_t results = 0, channels = 0, group_channels = 0, group_filters = 0;
  int64_t x_channel = 1, x_pixel = 1, w_channel = 1, w_cell = 1;
  Division filters;
};

template <class T>
__global__ void convolve(Geometry g, const T* x, const T* weight, T* y, Finish<T> finish) {
  using S = sum_t<T>;
  const Windows& windows = g.windows;
  for (int64_t i = first_element(); i < g.results; i += element_step()) {
    int64_t at[kWindowAxes];
    const int64_t plane = windows.locate(g.channels_last ? g.filters.quotient(i) : i, at);
    for (int axis = 0; axis < kWindowAxes; ++axis) at[axis] = windows.begins(axis, at[axis]);
    const int64_t filter = g.filters.remainder(g.channels_last ? i : plane), image = g.channels_last ? plane : g.filters.quotient(plane);
    const T* const first = x + image * g.channels * windows.x_pixels() + filter / g.group_filters * g.group_channels * g.x_channel;
    const T* const weights = weight + filter * g.group_channels * windows.cells();
    S sum = 0;
    for (int64_t a = 0; a < windows.kernel[0]; ++a) {
      const int64_t d = at[0] + a * windows.dilation[0];
      if (d < 0 || d >= windows.x[0]) continue;
      for (int64_t b = 0; b < windows.kernel[1]; ++b) {
        const int64_t h = at[1] + b * windows.dilation[1];
        if (h < 0 || h >= windows.x[1]) continue;
        for (int64_t c = 0; c < windows.kernel[2]; ++c) {
          const int64_t v = at[2] + c * windows.dilation[2];
          if (v < 0 || v >= windows.x[2]) continue;
          const int64_t offset = (d * windows.x[1] + h) * windows.x[2] + v, cell = (a * windows.kernel[1] + b) * windows.kernel[2] + c;
          for (int64_t channel = 0; channel < g.group_channels; ++channel)
            sum = multiply_add(static_cast<S>(load(first[channel * g.x_channel + offset * g.x_pixel])),
                               static_cast<S>(load(weights[channel * g.w_channel + cell * g.w_cell])), sum);
        }
      }
    }
    y[i] = finish(sum, i);
  }
}

/// P: the type of the statistics, T or f32.
template <class T, class P>
__global__ void normalise_channels(const T* x, const P* scale, const P* bias, const P* mean, const P* variance, float epsilon, T* y,
                                   int64_t channels, int64_t spatial, int64_t elements) {
  using C = compute_t<T>;
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t c = i / spatial % channels;
    const C normal = (load(x[i]) - load(mean[c])) / std::sqrt(load(variance[c]) + static_cast<C>(epsilon));
    y[i] = cast<T>(normal * load(scale[c]) + load(bias[c]));
  }
}

/// [n, 1, 1] for two spatial axes: a bias of n filters as it broadcasts; [n] where channels are last.
Shape along_channels(int64_t n, size_t axes, bool channels_last) {
  Shape shape{n};
  for (size_t axis = 0; axis < axes && !channels_last; ++axis) shape.push_back(1);
  return shape;
}

}  // namespace

Prepared prepare_conv(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Conv>(desc.op);
  const Shape &x = desc.inputs[0].shape, &weight = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  const size_t axes = op.strides.size(), first = op.channels_last ? 1 : 2;  // spatial axis
  if (!ref::one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  if (axes > kWindowAxes || x.rank() != axes + 2 || weight.rank() != axes + 2) return refuse(why, "only one to three spatial axes");
  Geometry g;
  const std::vector<int64_t> kernel(weight.begin() + first, weight.begin() + first + axes);
  g.windows = Windows(x, y, first, kernel, op.strides, op.dilations, op.pads);
  g.channels_last = op.channels_last;
  g.results = y.elements();
  g.channels = op.channels_last ? x.back() : x[1], g.filters = Division(weight[0], g.results);
  g.group_channels = op.channels_last ? weight.back() : weight[1], g.group_filters = weight[0] / op.group;
  g.x_channel = op.channels_last ? 1 : product(x, 2, x.rank()), g.x_pixel = op.channels_last ? g.channels : 1;
  g.w_channel = op.channels_last ? 1 : product(weight, 2, weight.rank()), g.w_cell = op.channels_last ? g.group_channels : 1;
  const FinishPlan finish(op.epilogue, op.bias, along_channels(weight[0], axes, op.channels_last),
                          op.epilogue.residual ? desc.inputs.back().shape : Shape{}, y);
  return ref::for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([g, finish](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(g.results, kThreads), kThreads}, convolve<T>, g, in[0].as<const T>(), in[1].as<const T>(),
                    out[0].as<T>(), finish.of<T>(in));
    });
  });
}

Prepared prepare_batch_norm(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  const DType statistics = desc.inputs[1].dtype;
  const auto has_type = [&](const TensorDesc& tensor) { return tensor.dtype == statistics; };
  const bool one_type = desc.inputs[0].dtype == desc.outputs[0].dtype && std::all_of(desc.inputs.begin() + 1, desc.inputs.end(), has_type);
  if (!one_type) return refuse(why, "inputs differ in dtype");
  if (x.rank() < 2) return refuse(why, "input must have rank 2 or more");
  const int64_t channels = x[1], spatial = product(x, 2, x.rank()), elements = x.elements();
  const float epsilon = std::get<BatchNorm>(desc.op).epsilon;
  const auto kernel = [=]<class T, class P>(Element<T>, Element<P>) {
    return make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(elements, kThreads), kThreads}, normalise_channels<T, P>, in[0].as<const T>(), in[1].as<const P>(),
                    in[2].as<const P>(), in[3].as<const P>(), in[4].as<const P>(), epsilon, out[0].as<T>(), channels, spatial, elements);
    });
  };
  return ref::for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T> type) -> Prepared {
    if (statistics == desc.outputs[0].dtype) return kernel(type, type);
    if constexpr (kIsHalfKind<T>) {
      if (statistics == DType::kFloat32) return kernel(type, Element<float>{});
    }
    return refuse(why, "statistics are neither of the input's type nor f32");
  });
}

}  // namespace serin::kernels::cuda
