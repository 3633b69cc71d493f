// conv_finish.cu: what follows a convolution that a library computed alone: y = act(y + bias + residual), in one pass over y. For what the library does not
// fuse, or fuses slowly: HardSwish, SiLU in f32, ReLU6.
//
// A thread has 16 bytes of neighbouring results. They have one bias where channels come before pixels, and neighbouring ones where channels are last.

#include "kernels/cuda/known_function.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/indexing.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

struct Finishing {
  int64_t elements = 0;
  Division pixels, channels;  ///< element i has bias i / pixels % channels

  SERIN_HD int64_t channel(int64_t i) const { return channels.remainder(pixels.quotient(i)); }
};

/// All lengths are multiples of kPack.
template <int kPack, bool kChannelsLast, class T, class Activation>
__global__ void finish_results(Finishing g, Activation activation, const T* bias, const T* residual, T* y) {
  for (int64_t i = first_element() * kPack; i < g.elements; i += element_step() * kPack) {
    auto values = load_pack<kPack>(y + i);
    Pack<T, kPack> added{}, beside{};
    if (residual) beside = load_pack<kPack>(residual + i);
    if (bias) {
      const int64_t channel = g.channel(i);
#pragma unroll
      for (int k = 0; k < kPack; ++k) added.values[k] = bias[channel + (kChannelsLast ? k : 0)];
    }
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      float sum = load(values.values[k]);
      if (residual) sum += load(beside.values[k]);
      if (bias) sum += load(added.values[k]);
      values.values[k] = cast<T>(activation(sum));
    }
    store_pack(y + i, values);
  }
}

template <bool kChannelsLast, class T>
Fault run(const Finishing& g, const AnyFunction& function, bool packs, const Stream& stream, const T* bias, const T* residual, T* y) {
  constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  const auto start = [&]<int kCount>(std::integral_constant<int, kCount>) {
    return with_function<UnaryFn::kIdentity, UnaryFn::kRelu, UnaryFn::kClip, UnaryFn::kHardSwish, UnaryFn::kSilu>(
        function, [&]<class Activation>(Activation activation) {
          return launch(stream, {blocks_for(g.elements, int64_t{kBlockThreads} * kCount), kBlockThreads},
                        finish_results<kCount, kChannelsLast, T, Activation>, g, activation, bias, residual, y);
        });
  };
  if (packs && is_aligned<T, kPack>(y) && is_aligned<T, kPack>(residual)) return start(std::integral_constant<int, kPack>{});
  return start(std::integral_constant<int, 1>{});
}

}  // namespace

Prepared prepare_conv_finish(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Conv>(desc.op);
  const Shape& y = desc.outputs[0].shape;
  if (op.epilogue.residual && desc.inputs.back().shape != y) return refuse(why, "the residual broadcasts");
  const int64_t channels = op.channels_last ? y.back() : y[1];
  Finishing g;
  g.elements = y.elements();
  g.pixels = Division(op.channels_last ? 1 : product(y, 2, y.rank()), g.elements);
  g.channels = Division(channels, g.elements);
  const AnyFunction function{op.epilogue.activation, op.epilogue.alpha, op.epilogue.beta};
  return ref::for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_same_v<T, double>) {
      return refuse(why, "no kernel for f64");
    } else {
      const bool packs = (op.channels_last ? channels : g.pixels.d) % (16 / static_cast<int64_t>(sizeof(T))) == 0;
      return make_kernel([g, function, packs, has_bias = op.bias, has_residual = op.epilogue.residual, last = op.channels_last](
                             Stream& stream, Inputs in, Outputs out) -> Fault {
        const T* const bias = has_bias ? in[2].as<const T>() : nullptr;
        const T* const residual = has_residual ? in.back().as<const T>() : nullptr;
        if (last) return run<true, T>(g, function, packs, stream, bias, residual, out[0].as<T>());
        return run<false, T>(g, function, packs, stream, bias, residual, out[0].as<T>());
      });
    }
  });
}

}  // namespace serin::kernels::cuda
