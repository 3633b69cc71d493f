// conv_depthwise.cu: Conv of each channel by itself, channels last: as many products as memory is read, so it is memory that it is written for.
//
// A thread has 16 bytes of neighbouring channels and four neighbouring results of a row. Lanes take neighbouring channels, as many as there are, so that few
// channels leave none idle; lines take groups of results. A block shares the weights of its channels, turned so that they, too, are 16 bytes of neighbouring
// channels. For the windows of well-known networks (3x3 and 5x5, strides 1 and 2) loops are unrolled: the pixels of a row are requested together, and a thread
// waits for memory once a row instead of once a pixel.

#include <algorithm>
#include <limits>

#include "kernels/cuda/known_function.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kThreads = 256, kMostLanes = 32, kColumns = 4;
constexpr int64_t kMostBlocks = 2048;  // enough for any device; more would only share the weights again
constexpr size_t kMaxWeights = size_t{48} << 10;

template <class T>
constexpr int kChannels = 16 / static_cast<int>(sizeof(T));

/// Sizes as 32-bit numbers: all of them are checked.
struct Image {
  int channels, height, width, y_height, y_width, kernel_h, kernel_w, stride_h, stride_w, top, left;
  int64_t positions;  ///< groups of kColumns results of a row
};

/// What follows the sums. A switch for each pack, not for each element, and a call for what is rare: a kernel for each function would be five times as many.
struct Activation {
  enum class Kind { kClamp, kHardSwish, kSilu, kAny } kind;
  float least, most;  ///< of kClamp; a NaN stays one
  AnyFunction any;

  explicit Activation(const Epilogue& e) : kind(Kind::kAny), least(0.f), most(0.f), any{e.activation, e.alpha, e.beta} {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    if (e.activation == UnaryFn::kIdentity) kind = Kind::kClamp, least = -kInfinity, most = kInfinity;
    if (e.activation == UnaryFn::kRelu) kind = Kind::kClamp, least = 0.f, most = kInfinity;
    if (e.activation == UnaryFn::kClip) kind = Kind::kClamp, least = e.alpha, most = e.beta;
    if (e.activation == UnaryFn::kHardSwish) kind = Kind::kHardSwish;
    if (e.activation == UnaryFn::kSilu) kind = Kind::kSilu;
  }
  template <int kCount>
  __device__ void apply(float (&values)[kCount]) const {
    const auto each = [&](auto f) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = f(values[i]);
    };
    switch (kind) {
      case Kind::kClamp: each(KnownFunction<UnaryFn::kClip>{least, most}); break;
      case Kind::kHardSwish: each(KnownFunction<UnaryFn::kHardSwish>{}); break;
      case Kind::kSilu: each(KnownFunction<UnaryFn::kSilu>{}); break;
      case Kind::kAny: each(any); break;
    }
  }
};

/// The channels [first, first + slice) of all cells, [cells, slice].
template <class T>
__device__ void share_weights(const Image& g, const T* weight, T* weights, int first, int slice) {
  const int cells = g.kernel_h * g.kernel_w;
  for (int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < cells * slice;
       i += static_cast<int>(blockDim.x * blockDim.y)) {
    const int channel = i / cells;
    weights[i % cells * slice + channel] = first + channel < g.channels ? weight[static_cast<int64_t>(first) * cells + i] : T{};
  }
  __syncthreads();
}

template <int kPack, class T>
__device__ void add_products(float (&sums)[kPack], const float (&values)[kPack], const T* weights) {
  const auto factor = load_pack<kPack>(weights);
#pragma unroll
  for (int c = 0; c < kPack; ++c) sums[c] += values[c] * load(factor.values[c]);
}

/// The sums of kColumns results whose windows begin at `top`, `left` of an image. kWindow = 0: of any window and stride.
template <int kPack, int kWindow, int kStride, class T>
__device__ void sum_windows(const Image& g, const T* image, const T* weights, int slice, int top, int left,
                            float (&sums)[kColumns][kPack]) {
  const auto read = [&](int h, int v, float(&values)[kPack]) {
    const auto pixel = load_pack<kPack>(image + (static_cast<int64_t>(h) * g.width + v) * g.channels);
#pragma unroll
    for (int c = 0; c < kPack; ++c) values[c] = load(pixel.values[c]);
  };
  if constexpr (kWindow > 0) {
    constexpr int kSeen = (kColumns - 1) * kStride + kWindow;
#pragma unroll 1
    for (int kh = 0; kh < kWindow; ++kh) {
      const int h = top + kh;
      if (h < 0 || h >= g.height) continue;
      float values[kSeen][kPack] = {};
#pragma unroll
      for (int v = 0; v < kSeen; ++v) {
        if (left + v >= 0 && left + v < g.width) read(h, left + v, values[v]);
      }
#pragma unroll
      for (int kw = 0; kw < kWindow; ++kw) {
        const auto factor = load_pack<kPack>(weights + (kh * kWindow + kw) * slice);
#pragma unroll
        for (int c = 0; c < kPack; ++c) {
          const float by = load(factor.values[c]);
#pragma unroll
          for (int j = 0; j < kColumns; ++j) sums[j][c] += values[j * kStride + kw][c] * by;
        }
      }
    }
  } else {
    const int seen = (kColumns - 1) * g.stride_w + g.kernel_w;
    for (int kh = 0; kh < g.kernel_h; ++kh) {
      const int h = top + kh;
      if (h < 0 || h >= g.height) continue;
      for (int v = left < 0 ? -left : 0; v < seen && left + v < g.width; ++v) {
        float values[kPack];
        read(h, left + v, values);
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          const int kw = v - j * g.stride_w;
          if (kw >= 0 && kw < g.kernel_w) add_products(sums[j], values, weights + (kh * g.kernel_w + kw) * slice);
        }
      }
    }
  }
}

template <int kPack, int kWindow, int kStride, class T>
__global__ void __launch_bounds__(kThreads)
    convolve_channels(Image g, Activation activation, const T* x, const T* weight, const T* bias, const T* residual, T* y) {
  const int slice = static_cast<int>(blockDim.x) * kPack, first = static_cast<int>(blockIdx.x) * slice;
  T* const weights = shared_memory<T>();
  share_weights(g, weight, weights, first, slice);
  const int own = static_cast<int>(threadIdx.x) * kPack, channel = first + own;
  if (channel >= g.channels) return;
  float added[kPack];
#pragma unroll
  for (int c = 0; c < kPack; ++c) added[c] = bias ? load(bias[channel + c]) : 0.f;
  const int groups = (g.y_width + kColumns - 1) / kColumns;
  for (int64_t position = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; position < g.positions;
       position += static_cast<int64_t>(gridDim.y) * blockDim.y) {
    const int column = static_cast<int>(position % groups) * kColumns;
    const int64_t line = position / groups;  // of all images
    const int row = static_cast<int>(line % g.y_height);
    const T* const image = x + line / g.y_height * g.height * g.width * g.channels + channel;
    float sums[kColumns][kPack] = {};
    sum_windows<kPack, kWindow, kStride>(g, image, weights + own, slice, row * g.stride_h - g.top, column * g.stride_w - g.left, sums);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      if (column + j >= g.y_width) continue;
      const int64_t at = (line * g.y_width + column + j) * g.channels + channel;
      Pack<T, kPack> beside{}, result;
      if (residual) beside = load_pack<kPack>(residual + at);
#pragma unroll
      for (int c = 0; c < kPack; ++c) {
        sums[j][c] += added[c];
        if (residual) sums[j][c] += load(beside.values[c]);
      }
      activation.apply(sums[j]);
#pragma unroll
      for (int c = 0; c < kPack; ++c) result.values[c] = cast<T>(sums[j][c]);
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

/// Lanes of a block, each with a pack: the channels in as few slices as lanes allow, all alike.
int lanes_of(int channels, int pack) {
  const int packs = (channels + pack - 1) / pack, slices = (packs + kMostLanes - 1) / kMostLanes;
  return (packs + slices - 1) / slices;
}

template <int kPack, int kWindow, int kStride, class T>
Fault run(const Image& g, const Activation& activation, bool has_bias, bool has_residual, const Stream& stream, Inputs in, Outputs out) {
  const int lanes = lanes_of(g.channels, kPack), lines = kThreads / lanes;
  const unsigned slices = blocks_for(g.channels, int64_t{lanes} * kPack);
  const int64_t blocks = std::min(ceil_div(g.positions, lines), std::max<int64_t>(kMostBlocks / slices, 1));
  const Grid grid{dim3(slices, static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(lanes), static_cast<unsigned>(lines)),
                  static_cast<size_t>(g.kernel_h * g.kernel_w * lanes * kPack) * sizeof(T)};
  return launch(stream, grid, convolve_channels<kPack, kWindow, kStride, T>, g, activation, in[0].as<const T>(), in[1].as<const T>(),
                has_bias ? in[2].as<const T>() : nullptr, has_residual ? in.back().as<const T>() : nullptr, out[0].as<T>());
}

template <int kPack, class T, class... A>
Fault run_window(const Image& g, const A&... arguments) {
  const bool square = g.kernel_h == g.kernel_w && g.stride_h == g.stride_w;
  if (square && g.kernel_h == 3 && g.stride_h == 1) return run<kPack, 3, 1, T>(g, arguments...);
  if (square && g.kernel_h == 3 && g.stride_h == 2) return run<kPack, 3, 2, T>(g, arguments...);
  if (square && g.kernel_h == 5 && g.stride_h == 1) return run<kPack, 5, 1, T>(g, arguments...);
  if (square && g.kernel_h == 5 && g.stride_h == 2) return run<kPack, 5, 2, T>(g, arguments...);
  return run<kPack, 0, 0, T>(g, arguments...);
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
  const Image g{narrow(x[3]),          narrow(x[1]),       narrow(x[2]),       narrow(y[1]),
                narrow(y[2]),          narrow(weight[1]),  narrow(weight[2]),  narrow(op.strides[0]),
                narrow(op.strides[1]), narrow(op.pads[0]), narrow(op.pads[1]), y[0] * y[1] * ceil_div(y[2], kColumns)};
  return ref::for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_same_v<T, double>) {
      return refuse(why, "no kernel for f64");
    } else {
      const bool packs = g.channels % kChannels<T> == 0;
      const int64_t slice = packs ? lanes_of(g.channels, kChannels<T>) * kChannels<T> : kMostLanes;
      if (static_cast<size_t>(weight[1] * weight[2] * slice) * sizeof(T) > kMaxWeights) return refuse(why, "the window is too large");
      return make_kernel([g, packs, activation = Activation(op.epilogue), bias = op.bias, residual = op.epilogue.residual](
                             Stream& stream, Inputs in, Outputs out) -> Fault {
        if (packs && takes_packs<T>(residual, in, out)) return run_window<kChannels<T>, T>(g, activation, bias, residual, stream, in, out);
        return run<1, 0, 0, T>(g, activation, bias, residual, stream, in, out);
      });
    }
  });
}

}  // namespace serin::kernels::cuda
