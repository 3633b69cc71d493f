// conv.cc: Conv in f32 over one or two spatial axes, as y[m, pixels] = weight[m, k] * columns[k, pixels] with k = channels x window cells.
//
// The matrix of columns is never whole: for one panel of output pixels at a time, its columns are gathered into scratch in the order the
// micro-kernel reads them (what to read is found once for all channels: kernels/cpu/simd/window.h), multiplied with all filters of the group, and the
// outputs finished: bias and clamp in the registers of the product, residual and other activations while they are in cache.
// The weight needs no packing: its rows are read as they lie.

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/window.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kBlock = 512;         // of k, as in gemm.cc
constexpr int64_t kMaxPanelWidth = 64;  // of any instruction set

class ConvKernel final : public Kernel {
 public:
  ConvKernel(const Simd& simd, const OpDesc& desc, const Window& window)
      : simd_(simd),
        op_(std::get<Conv>(desc.op)),
        activation_(simd.unary(op_.epilogue.activation)),
        clamp_(clamp_of(op_.epilogue)),
        window_(window) {
    const Shape& weight = desc.inputs[1].shape;
    k_ = product(weight, 1, weight.rank());
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(k_ * simd_.panel_width + simd_.width) * sizeof(float) +
           static_cast<size_t>(window_.cells() * simd_.panel_width) * sizeof(Tap);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    Image x(in[0].shape), y(out[0].shape);
    if (window_.is_point()) x.join_rows(), y.join_rows();
    auto* panel = reinterpret_cast<float*>(stream.scratch);  // [k, panel_width], and a vector
    auto* taps = reinterpret_cast<Tap*>(panel + k_ * simd_.panel_width + simd_.width);
    const int64_t channels = x.c / op_.group;
    for (int64_t pixel = 0; pixel < y.plane(); pixel += simd_.panel_width) {
      const int64_t pixels = std::min(simd_.panel_width, y.plane() - pixel);
      const Chunks chunks = find_taps(x, y, pixel, pixels, taps);
      for (int64_t i = 0; i < y.n * op_.group; ++i) {  // images x groups
        const float* source = in[0].as<const float>() + i * channels * x.plane();
        simd_.gather_columns({taps, window_.cells() * chunks.count, window_.w.stride}, chunks.columns.data(), chunks.count,
                             {source, x.plane()}, channels, panel);
        multiply(in, y, i, pixel, pixels, panel, out[0].as<float>());
      }
    }
    return kOk;
  }

 private:
  /// The pixels of a panel, cut where a vector, or what it can read at once, ends: the column at which each piece begins.
  struct Chunks {
    std::array<int64_t, kMaxPanelWidth> columns;
    int64_t count = 0;
  };

  /// Taps [cell, chunk] of the pixels [first, first + count).
  Chunks find_taps(const Image& x, const Image& y, int64_t first, int64_t count, Tap* taps) const {
    Chunks chunks;
    struct {
      int64_t oh, ow, length;
    } at[kMaxPanelWidth];
    for (int64_t column = 0; column < count;) {
      const int64_t pixel = first + column;
      const int64_t length = std::min(count - column, window_.lanes(x, y, pixel, simd_.width));
      at[chunks.count] = {pixel / y.w, pixel % y.w, length};
      chunks.columns[static_cast<size_t>(chunks.count++)] = column;
      column += length;
    }
    for (int64_t kw = 0; kw < window_.w.kernel; ++kw) {
      const auto inside = window_.w.inside(kw, x.w, y.w);
      for (int64_t kh = 0; kh < window_.h.kernel; ++kh) {
        Tap* cell = taps + (kh * window_.w.kernel + kw) * chunks.count;
        for (int64_t i = 0; i < chunks.count; ++i) cell[i] = window_.tap(x, y, inside, at[i].oh, at[i].ow, at[i].length, kh, kw);
      }
    }
    return chunks;
  }

  /// All filters of `image_group` times the panel, finished.
  void multiply(Inputs in, const Image& y, int64_t image_group, int64_t pixel, int64_t pixels, const float* panel, float* out) const {
    const int64_t filters = y.c / op_.group, group = image_group % op_.group;
    const float* weight = in[1].as<const float>() + group * filters * k_;
    const float* bias = op_.bias ? in[2].as<const float>() + group * filters : nullptr;
    const int64_t at = image_group * filters * y.plane() + pixel;
    const RowFinish finish{bias, clamp_ ? clamp_->low : 0.f, clamp_ ? clamp_->high : 0.f};
    for (int64_t p = 0; p == 0 || p < k_; p += kBlock) {
      const bool last = p + kBlock >= k_;
      simd_.gemm_panel(filters, pixels, std::min(kBlock, k_ - p), weight + p, k_, 1, panel + p * simd_.panel_width, out + at, y.plane(),
                       p > 0, last && clamp_ ? &finish : nullptr);
    }
    if (clamp_) return;
    const float* residual = op_.epilogue.residual ? in.back().as<const float>() + at : nullptr;
    for (int64_t m = 0; m < filters; ++m) {
      float* row = out + at + m * y.plane();
      if (bias || residual) {
        simd_.add_terms(row, pixels, 1.f, bias ? bias + m : nullptr, true, residual ? residual + m * y.plane() : nullptr, false);
      }
      if (op_.epilogue.activation != UnaryFn::kIdentity) activation_(row, row, pixels, op_.epilogue.alpha, op_.epilogue.beta);
    }
  }

  const Simd& simd_;
  const Conv op_;
  const UnaryLoop activation_;
  const std::optional<RowFinish> clamp_;
  const Window window_;
  int64_t k_;  // channels of a group x window cells
};

}  // namespace

std::optional<RowFinish> clamp_of(const Epilogue& epilogue) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (epilogue.residual) return std::nullopt;
  switch (epilogue.activation) {
    case UnaryFn::kIdentity: return RowFinish{nullptr, -kInf, kInf};
    case UnaryFn::kRelu: return RowFinish{nullptr, 0.f, kInf};
    case UnaryFn::kClip: return RowFinish{nullptr, epilogue.alpha, epilogue.beta};
    default: return std::nullopt;
  }
}

Prepared conv(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Conv& op = std::get<Conv>(desc.op);
  if (desc.inputs.size() != 2u + op.bias + op.epilogue.residual) return refuse(why, "unexpected number of inputs");
  const Shape& weight = desc.inputs[1].shape;
  if (desc.outputs[0].shape.rank() != weight.rank()) return refuse(why, "in channel blocks");
  const size_t axes = weight.rank() < 2 ? 0 : weight.rank() - 2;
  if (!Window::fits(desc.inputs[0].shape, axes, op.strides, op.dilations, op.pads)) {
    return refuse(why, "only one or two spatial axes");
  }
  if (weight.elements() == 0 || op.group < 1 || weight[0] % op.group != 0)
    return refuse(why, "an empty weight, or groups that do not divide it");
  if (op.epilogue.residual && !(desc.inputs.back().shape == desc.outputs[0].shape)) return refuse(why, "the residual is broadcast");
  if (!simd.unary(op.epilogue.activation)) return refuse(why, "no vector code for the activation");
  return std::make_unique<ConvKernel>(simd, desc, Window(weight.dims().subspan(2), op.strides, op.dilations, op.pads));
}

// Measured on one core of an AVX-512 machine, oneDNN 3.2 with the reorders it needs : ours, microseconds, batch 1 except where it is given:
//
//   3x3 on small maps                   8 -> 8 at 9x8 2.1 : 0.9; 16 -> 32 at 8x8 3.6 : 2.8, batch 32 90 : 87; 3 -> 16 at 32x32 8.0 : 7.9, batch 8 76 : 51
//     against wider, larger, with stride  32 -> 64 at 4x4 2.7 : 2.8, batch 32 60 : 88; 8 -> 16 at 28x28 10.6 : 12.7; 16 -> 32 to 7x7 3.2 : 3.9
//   narrow groups                       4 -> 4 at 56x56, 32 groups 687 : 370; 8 -> 8 at 14x14, 8 groups 17.6 : 14.6
//   1x1 with stride                     64 -> 128 to 28x28 126 : 58; 512 -> 1024 to 14x14 1210 : 820; the same to 7x7 227 : 253
//   1x1 that widens, or of few pixels   128 -> 512 at 28x28 422 : 394; 16 -> 32 at 8x8 1.2 : 0.4; 160 -> 960 at 7x7 83 : 73
//     against narrowing ones            256 -> 64 at 56x56 388 : 457; 16 -> 8 at 56x56 6.0 : 7.7
Prepared conv_small(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Conv& op = std::get<Conv>(desc.op);
  const Shape& weight = desc.inputs[1].shape;
  const Shape& y = desc.outputs[0].shape;
  if (weight.rank() < 3 || y.rank() < 3 || op.group < 1) return refuse(why, "only one or two spatial axes");
  const int64_t channels = weight[1], filters = weight[0] / op.group;
  const int64_t pixels = product(y, 2, y.rank());
  const bool steps = std::ranges::any_of(op.strides, [](int64_t stride) { return stride > 1; });
  bool ours = channels * filters <= (steps ? 192 : 512) && channels * filters * pixels <= 50'000;
  if (op.group > 1) ours |= channels * filters <= 64;
  if (product(weight, 2, weight.rank()) == 1) {
    ours |= filters >= channels || pixels <= 64 || steps;
  }
  if (!ours) return refuse(why, "not a shape for which it beats oneDNN");
  return conv(simd, desc, context, why);
}

}  // namespace serin::kernels::cpu
