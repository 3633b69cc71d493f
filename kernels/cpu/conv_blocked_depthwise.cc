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
      : loops_(*simd.blocked),
        conv_(conv),
        activation_(simd, conv.epilogue),
        bias_(packed_bias(context, desc, conv)),
        workers_(std::max(1, context.threads)) {
    weight_ = packed_floats(context, desc.inputs[1], "depthwise_b" + std::to_string(conv.b), conv.y_blocks() * conv.cells() * conv.b,
                            [&](const float* weight, float* to) { pack(conv, weight, to); });
  }

  std::string_view name() const override { return "conv_f32_blocked_depthwise"; }
  uint32_t packed_inputs() const override { return conv_.bias ? 0b110 : 0b10; }

  size_t scratch_bytes() const override { return static_cast<size_t>(workers_ * ring_floats()) * sizeof(float); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const BlockedConv& g = conv_;
    const int64_t blocks = g.y_blocks();
    // Rows by which the activation follows: few enough that they are still in the first cache.
    const int64_t rows = std::clamp<int64_t>(kFloatsAtATime / (g.ow * g.b), 1, g.oh);
    const auto plane = [&](int64_t i, int worker) {
      RowRing ring{narrow() ? reinterpret_cast<float*>(stream.scratch) + worker * ring_floats() : nullptr, ring_rows(), ring_width(), 0};
      const float* x = in[0].as<const float>() + i * g.h * g.w * g.b;
      float* y = out[0].as<float>() + i * g.pixels() * g.b;
      const float* bias = g.bias ? floats(bias_) + i % blocks * g.b : nullptr;
      for (int64_t row = 0; row < g.oh; row += rows) {
        const int64_t count = std::min(rows, g.oh - row);
        loops_.depthwise(g.plane(x, y), floats(weight_) + i % blocks * g.cells() * g.b, bias, activation_.low(), activation_.high(), row,
                         count, ring);
        activation_.finish(y + row * g.ow * g.b, count * g.ow * g.b);
      }
    };
    parallel_for(stream, g.n * blocks, plane);
    return kOk;
  }

 private:
  static constexpr int64_t kFloatsAtATime = 4096;

  /// Whether copying rows pays. Microseconds on one core of Zen 5, without : with: 5x5, 960 at 7x7 40 : 14; 480 at 14x14 51 : 33; 120 at 28x28 31 : 26;
  /// to 28x28 with stride 2 23 : 27; 3x3, 200 at 14x14 9.4 : 9.3; 64 to 56x56 with stride 2 47 : 63.
  bool narrow() const { return conv_.ow <= 7 || (conv_.stride_w == 1 && conv_.ow <= (conv_.kernel_w < 5 ? 14 : 28)); }
  int64_t ring_rows() const { return (conv_.kernel_h - 1) * conv_.dilation_h + 1; }
  int64_t ring_width() const { return (conv_.ow - 1) * conv_.stride_w + (conv_.kernel_w - 1) * conv_.dilation_w + 1; }
  int64_t ring_floats() const { return !narrow() ? 0 : ring_rows() * ring_width() * conv_.b; }

  const BlockedLoops& loops_;
  const BlockedConv conv_;
  const BlockedActivation activation_;
  PackedBuffer weight_, bias_;
  const int workers_;
};

}  // namespace

Prepared conv_blocked_depthwise(const Simd& simd, const OpDesc& desc, const BlockedConv& conv, PrepareContext& context) {
  return std::make_unique<DepthwiseKernel>(simd, desc, conv, context);
}

}  // namespace serin::kernels::cpu
