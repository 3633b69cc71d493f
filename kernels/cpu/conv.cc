// conv.cc: Conv in f32 over one or two spatial axes, as y[m, pixels] = weight[m, k] * columns[k, pixels] with k = channels x window cells.
//
// The matrix of columns is never whole: for one panel of output pixels at a time, its columns are gathered into scratch in the order the
// micro-kernel reads them, multiplied with all filters of the group, and the outputs finished (bias, residual, activation) while they are in cache.
// The weight needs no packing: its rows are read as they lie.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/window.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kBlock = 512;         // of k, as in gemm.cc
constexpr int64_t kMaxPanelWidth = 64;  // of any instruction set

/// dst[i] = row[first + i * stride], zero outside [0, size).
void gather_row(const float* row, int64_t size, int64_t first, int64_t stride, float* dst, int64_t count) {
  const int64_t begin = std::min(count, first < 0 ? (-first + stride - 1) / stride : 0);
  const int64_t end = std::clamp(size > first ? (size - first + stride - 1) / stride : 0, begin, count);
  std::fill(dst, dst + begin, 0.f);
  if (stride == 1) {
    if (end > begin) std::memcpy(dst + begin, row + first + begin, static_cast<size_t>(end - begin) * sizeof(float));
  } else {
    for (int64_t i = begin; i < end; ++i) dst[i] = row[first + i * stride];
  }
  std::fill(dst + end, dst + count, 0.f);
}

class ConvKernel final : public Kernel {
 public:
  ConvKernel(const Simd& simd, const OpDesc& desc, const Window& window)
      : simd_(simd), op_(std::get<Conv>(desc.op)), activation_(simd.unary(op_.epilogue.activation)), window_(window) {
    const Shape& weight = desc.inputs[1].shape;
    k_ = product(weight, 1, weight.rank());
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(k_ * simd_.panel_width) * sizeof(float); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Image x(in[0].shape), y(out[0].shape);
    auto* panel = reinterpret_cast<float*>(stream.scratch);  // [k, panel_width]
    for (int64_t image = 0; image < y.n; ++image) {
      for (int64_t group = 0; group < op_.group; ++group) {
        const float* source = in[0].as<const float>() + (image * x.c + group * (x.c / op_.group)) * x.plane();
        for (int64_t pixel = 0; pixel < y.plane(); pixel += simd_.panel_width) {
          const int64_t pixels = std::min(simd_.panel_width, y.plane() - pixel);
          gather_columns(x, y, source, pixel, pixels, panel);
          multiply(in, y, image, group, pixel, pixels, panel, out[0].as<float>());
        }
      }
    }
    return kOk;
  }

 private:
  /// Neighbouring pixels in one row of the output.
  struct Run {
    int64_t column, oh, ow, length;  // `column`: where they begin in the panel
  };

  /// Columns of the pixels [first, first + count): one row of the panel for each channel of the group and cell of the window.
  void gather_columns(const Image& x, const Image& y, const float* source, int64_t first, int64_t count, float* panel) const {
    std::array<Run, kMaxPanelWidth> runs;
    size_t run_count = 0;
    for (int64_t column = 0; column < count; column += runs[run_count++].length) {
      const int64_t oh = (first + column) / y.w, ow = (first + column) % y.w;
      runs[run_count] = {column, oh, ow, std::min(count - column, y.w - ow)};
    }
    const int64_t cells = window_.h.kernel * window_.w.kernel;
    for (int64_t c = 0; c < k_ / cells; ++c) {
      const float* plane = source + c * x.plane();
      for (int64_t kh = 0; kh < window_.h.kernel; ++kh) {
        for (int64_t kw = 0; kw < window_.w.kernel; ++kw, panel += simd_.panel_width) {
          for (const Run& run : std::span(runs.data(), run_count)) {
            const int64_t ih = window_.h.at(run.oh, kh);
            const bool inside = ih >= 0 && ih < x.h;  // a row of padding is a row without elements
            gather_row(inside ? plane + ih * x.w : plane, inside ? x.w : 0, window_.w.at(run.ow, kw), window_.w.stride, panel + run.column,
                       run.length);
          }
          std::fill(panel + count, panel + simd_.panel_width, 0.f);
        }
      }
    }
  }

  void multiply(Inputs in, const Image& y, int64_t image, int64_t group, int64_t pixel, int64_t pixels, const float* panel,
                float* out) const {
    const int64_t filters = y.c / op_.group;
    const float* weight = in[1].as<const float>() + group * filters * k_;
    const int64_t at = (image * y.c + group * filters) * y.plane() + pixel;
    for (int64_t p = 0; p == 0 || p < k_; p += kBlock) {
      simd_.gemm_panel(filters, pixels, std::min(kBlock, k_ - p), weight + p, k_, 1, panel + p * simd_.panel_width, out + at, y.plane(),
                       p > 0);
    }
    const float* residual = op_.epilogue.residual ? in.back().as<const float>() + at : nullptr;
    for (int64_t m = 0; m < filters; ++m) {
      float* row = out + at + m * y.plane();
      const float* bias = op_.bias ? in[2].as<const float>() + group * filters + m : nullptr;
      if (bias || residual) simd_.add_terms(row, pixels, 1.f, bias, true, residual ? residual + m * y.plane() : nullptr, false);
      if (op_.epilogue.activation != UnaryFn::kIdentity) activation_(row, row, pixels, op_.epilogue.alpha, op_.epilogue.beta);
    }
  }

  const Simd& simd_;
  const Conv op_;
  const UnaryLoop activation_;
  const Window window_;
  int64_t k_;  // channels of a group x window cells
};

}  // namespace

Prepared conv(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Conv& op = std::get<Conv>(desc.op);
  if (desc.inputs.size() != 2u + op.bias + op.epilogue.residual) return refuse(why, "unexpected number of inputs");
  const Shape& weight = desc.inputs[1].shape;
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

}  // namespace serin::kernels::cpu
