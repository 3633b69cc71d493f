// conv_blocked_depthwise.cc: a convolution whose groups are single channels, on channel blocks: each block of each image is by itself.

#include <algorithm>

#include "kernels/cpu/conv_blocked.h"
#include "kernels/cpu/parallel.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// [m, cells] as [blocks, cells, b].
void pack(const BlockedConv& conv, const float* weight, float* to) {
  for (int64_t block = 0; block < conv.y_blocks(); ++block) {
    for (int64_t cell = 0; cell < conv.cells(); ++cell) {
      for (int64_t lane = 0; lane < conv.b; ++lane) {
        const int64_t channel = block * conv.b + lane;
        *to++ = channel < conv.m ? weight[channel * conv.cells() + cell] : 0.f;
      }
    }
  }
}

class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(const Simd& simd, const OpDesc& desc, const BlockedConv& conv, PrepareContext& context)
      : loops_(*simd.blocked), conv_(conv), activation_(simd, conv.epilogue), bias_(packed_bias(context, desc, conv)) {
    weight_ = packed(context, desc.inputs[1], "depthwise_b" + std::to_string(conv.b), conv.y_blocks() * conv.cells() * conv.b,
                     [&](const float* weight, float* to) { pack(conv, weight, to); });
  }

  std::string_view name() const override { return "conv_f32_blocked_depthwise"; }
  uint32_t packed_inputs() const override { return conv_.bias ? 0b110 : 0b10; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const BlockedConv& g = conv_;
    const int64_t blocks = g.y_blocks();
    // Rows by which the activation follows: few enough that they are still in the first cache.
    const int64_t rows = std::clamp<int64_t>(kFloatsAtATime / (g.ow * g.b), 1, g.oh);
    const auto plane = [&](int64_t i, int) {
      const float* x = in[0].as<const float>() + i * g.h * g.w * g.b;
      float* y = out[0].as<float>() + i * g.pixels() * g.b;
      const float* bias = g.bias ? floats(bias_) + i % blocks * g.b : nullptr;
      for (int64_t row = 0; row < g.oh; row += rows) {
        const int64_t count = std::min(rows, g.oh - row);
        loops_.depthwise(g.plane(x, y), floats(weight_) + i % blocks * g.cells() * g.b, bias, activation_.low(), activation_.high(), row,
                         count);
        activation_.finish(y + row * g.ow * g.b, count * g.ow * g.b);
      }
    };
    parallel_for(stream, g.n * blocks, plane);
    return kOk;
  }

 private:
  static constexpr int64_t kFloatsAtATime = 4096;

  const BlockedLoops& loops_;
  const BlockedConv conv_;
  const BlockedActivation activation_;
  PackedBuffer weight_, bias_;
};

}  // namespace

Prepared conv_blocked_depthwise(const Simd& simd, const OpDesc& desc, const BlockedConv& conv, PrepareContext& context) {
  return std::make_unique<DepthwiseKernel>(simd, desc, conv, context);
}

}  // namespace serin::kernels::cpu
