// conv_depthwise.cu: Conv of each channel by itself, channels last: as many products as memory is read, so it is memory that it is written for.
//
// A thread has 16 bytes of neighbouring channels and four neighbouring results of a row. For each row of the window it walks over the pixels that these four
// look at, loads each once, and adds it to every result that it belongs to. A block of 32 x 8 threads shares the weights of its channels, turned so that
// they, too, are 16 bytes of neighbouring channels.

#include "kernels/cuda/launch.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kLanes = 32, kLines = 8, kColumns = 4;
constexpr int64_t kPositions = 4;  // of each thread at least, so that the weights are shared by many
constexpr size_t kMaxWeights = size_t{48} << 10;

template <class T>
constexpr int kChannels = 16 / static_cast<int>(sizeof(T));

/// Sizes as 32-bit numbers: all of them are checked.
struct Image {
  int channels, height, width, y_height, y_width, kernel_h, kernel_w, stride_h, stride_w, top, left;
  int64_t positions;  ///< groups of kColumns results of a row
  UnaryFn activation;
  float alpha, beta;
};

template <int kPack, class T>
__global__ void __launch_bounds__(kLanes* kLines)
    convolve_channels(Image g, const T* x, const T* weight, const T* bias, const T* residual, T* y) {
  constexpr int kSlice = kLanes * kPack;  // channels of a block
  T* const weights = shared_memory<T>();  // [cells, kSlice]
  const int cells = g.kernel_h * g.kernel_w, first = static_cast<int>(blockIdx.x) * kSlice;
  const int thread = static_cast<int>(threadIdx.y) * kLanes + static_cast<int>(threadIdx.x);
  for (int i = thread; i < cells * kSlice; i += kLanes * kLines) {
    const int channel = i / cells;
    weights[i % cells * kSlice + channel] = first + channel < g.channels ? weight[static_cast<int64_t>(first) * cells + i] : T{};
  }
  __syncthreads();
  const int own = static_cast<int>(threadIdx.x) * kPack, channel = first + own;
  if (channel >= g.channels) return;
  float added[kPack];
#pragma unroll
  for (int c = 0; c < kPack; ++c) added[c] = bias ? load(bias[channel + c]) : 0.f;
  const int groups = (g.y_width + kColumns - 1) / kColumns;
  for (int64_t position = static_cast<int64_t>(blockIdx.y) * kLines + threadIdx.y; position < g.positions;
       position += static_cast<int64_t>(gridDim.y) * kLines) {
    const int column = static_cast<int>(position % groups) * kColumns;
    const int64_t line = position / groups;  // of all images
    const int row = static_cast<int>(line % g.y_height);
    const T* const image = x + line / g.y_height * g.height * g.width * g.channels + channel;
    const int top = row * g.stride_h - g.top, left = column * g.stride_w - g.left;
    float sums[kColumns][kPack] = {};
    for (int kh = 0; kh < g.kernel_h; ++kh) {
      const int h = top + kh;
      if (h < 0 || h >= g.height) continue;
      const int seen = (kColumns - 1) * g.stride_w + g.kernel_w;
      for (int v = left < 0 ? -left : 0; v < seen && left + v < g.width; ++v) {
        const auto pixel = load_pack<kPack>(image + (static_cast<int64_t>(h) * g.width + left + v) * g.channels);
        float values[kPack];
#pragma unroll
        for (int c = 0; c < kPack; ++c) values[c] = load(pixel.values[c]);
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          const int kw = v - j * g.stride_w;
          if (kw < 0 || kw >= g.kernel_w) continue;
          const auto factor = load_pack<kPack>(weights + (kh * g.kernel_w + kw) * kSlice + own);
#pragma unroll
          for (int c = 0; c < kPack; ++c) sums[j][c] += values[c] * load(factor.values[c]);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      if (column + j >= g.y_width) continue;
      const int64_t at = (line * g.y_width + column + j) * g.channels + channel;
      Pack<T, kPack> beside{}, result;
      if (residual) beside = load_pack<kPack>(residual + at);
#pragma unroll
      for (int c = 0; c < kPack; ++c) {
        float sum = sums[j][c] + added[c];
        if (residual) sum += load(beside.values[c]);
        result.values[c] = cast<T>(unary(g.activation, sum, g.alpha, g.beta));
      }
      store_pack(y + at, result);
    }
  }
}

/// Views may begin at any element.
template <class T>
bool takes_packs(bool has_residual, Inputs in, Outputs out) {
  const auto aligned = [](const TensorView& view) { return is_aligned<T, kChannels<T>>(view.as<const T>()); };
  return aligned(in[0]) && aligned(out[0]) && (!has_residual || aligned(in.back()));
}

template <int kPack, class T>
Fault run(const Image& g, bool has_bias, bool has_residual, const Stream& stream, Inputs in, Outputs out) {
  const int64_t lines = std::clamp<int64_t>(ceil_div(g.positions, kLines * kPositions), 1, 65535);
  const Grid grid{dim3(blocks_for(g.channels, int64_t{kLanes} * kPack), static_cast<unsigned>(lines)), dim3(kLanes, kLines),
                  static_cast<size_t>(g.kernel_h * g.kernel_w * kLanes * kPack) * sizeof(T)};
  return launch(stream, grid, convolve_channels<kPack, T>, g, in[0].as<const T>(), in[1].as<const T>(),
                has_bias ? in[2].as<const T>() : nullptr, has_residual ? in.back().as<const T>() : nullptr, out[0].as<T>());
}

}  // namespace

Prepared prepare_conv_depthwise(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Conv>(desc.op);
  const Shape &x = desc.inputs[0].shape, &weight = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  if (!op.channels_last || op.strides.size() != 2 || x.rank() != 4) return refuse(why, "channels are not last, or not two spatial axes");
  if (op.group != x.back() || op.group != y.back() || weight.back() != 1) return refuse(why, "not a filter for each channel");
  if (op.dilations != std::vector<int64_t>{1, 1}) return refuse(why, "dilated");
  if (!ref::one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  if (op.epilogue.residual && desc.inputs.back().shape != y) return refuse(why, "the residual broadcasts");
  for (const int64_t size : {x[1], x[2], x[3], y[1], y[2], op.strides[0], op.strides[1], op.pads[0], op.pads[1]}) {
    if (size > (int64_t{1} << 24)) return refuse(why, "larger than its 32-bit steps");
  }
  if (y.elements() == 0 || x.elements() == 0) return refuse(why, "there are no elements");
  const auto narrow = [](int64_t size) { return static_cast<int>(size); };
  const Image g{narrow(x[3]),           narrow(x[1]),       narrow(x[2]),       narrow(y[1]),
                narrow(y[2]),           narrow(weight[1]),  narrow(weight[2]),  narrow(op.strides[0]),
                narrow(op.strides[1]),  narrow(op.pads[0]), narrow(op.pads[1]), y[0] * y[1] * ceil_div(y[2], kColumns),
                op.epilogue.activation, op.epilogue.alpha,  op.epilogue.beta};
  return ref::for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_same_v<T, double>) {
      return refuse(why, "no kernel for f64");
    } else {
      const bool packs = g.channels % kChannels<T> == 0;
      const int64_t slice = kLanes * (packs ? kChannels<T> : 1);
      if (static_cast<size_t>(weight[1] * weight[2] * slice) * sizeof(T) > kMaxWeights) return refuse(why, "the window is too large");
      return make_kernel([g, packs, bias = op.bias, residual = op.epilogue.residual](Stream& stream, Inputs in, Outputs out) -> Fault {
        if (packs && takes_packs<T>(residual, in, out)) return run<kChannels<T>, T>(g, bias, residual, stream, in, out);
        return run<1, T>(g, bias, residual, stream, in, out);
      });
    }
  });
}

}  // namespace serin::kernels::cuda
