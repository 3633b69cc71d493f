// conv_depthwise.cc: Conv in f32 whose groups are one channel and one filter each: a weighted pooling. It needs no matrix product. For a
// vector of output pixels, the cells of the window are read in place (kernels/cpu/simd/window.h) and summed in one register, one channel
// after the other. On one core of an AVX-512 machine, oneDNN with the reorders it needs : ours, microseconds: 3x3, 32 at 112x112 264 : 150;
// 144 at 56x56 323 : 157; 576 at 14x14 77 : 36; 960 at 7x7 31 : 17; with stride 2 160 : 72, 164 : 73, 40 : 30 and, with rows of 4 that
// leave most of a vector empty, 16 : 26.

#include <algorithm>
#include <limits>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/window.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(const Simd& simd, const Conv& op, const Window& window)
      : simd_(simd), op_(op), activation_(simd.unary(op.epilogue.activation)), clamp_(clamp_of(op.epilogue)), window_(window) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(window_.cells()) * sizeof(Tap); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Image x(in[0].shape), y(out[0].shape);
    auto* taps = reinterpret_cast<Tap*>(stream.scratch);
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const RowFinish finish{op_.bias ? in[2].as<const float>() : nullptr, clamp_ ? clamp_->low : -kInf, clamp_ ? clamp_->high : kInf};
    for (int64_t image = 0; image < y.n; ++image) {
      const float* source = in[0].as<const float>() + image * x.c * x.plane();
      float* target = out[0].as<float>() + image * y.c * y.plane();
      for (int64_t pixel = 0; pixel < y.plane();) {
        const int64_t n = window_.lanes(x, y, pixel, simd_.width);
        window_.taps(x, y, pixel, n, taps);
        simd_.depthwise({taps, window_.cells(), window_.w.stride}, in[1].as<const float>(), finish, {source, x.plane()},
                        {target + pixel, y.plane()}, y.c, static_cast<int>(n));
        pixel += n;
      }
      if (!clamp_) activation_(target, target, y.c * y.plane(), op_.epilogue.alpha, op_.epilogue.beta);
    }
    return kOk;
  }

 private:
  const Simd& simd_;
  const Conv op_;
  const UnaryLoop activation_;
  const std::optional<RowFinish> clamp_;
  const Window window_;
};

}  // namespace

Prepared conv_depthwise(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Conv& op = std::get<Conv>(desc.op);
  const Shape& x = desc.inputs[0].shape;
  const Shape& weight = desc.inputs[1].shape;
  if (weight.rank() < 3 || weight[1] != 1 || weight[0] != op.group || x.rank() < 2 || x[1] != op.group) return refuse(why, "not depthwise");
  if (desc.outputs[0].shape.rank() != weight.rank()) return refuse(why, "in channel blocks");
  if (desc.inputs.size() != 2u + op.bias || op.epilogue.residual) return refuse(why, "a residual, or an unexpected number of inputs");
  if (!Window::fits(x, weight.rank() - 2, op.strides, op.dilations, op.pads)) return refuse(why, "only one or two spatial axes");
  if (!simd.unary(op.epilogue.activation)) return refuse(why, "no vector code for the activation");
  return std::make_unique<DepthwiseKernel>(simd, op, Window(weight.dims().subspan(2), op.strides, op.dilations, op.pads));
}

}  // namespace serin::kernels::cpu
