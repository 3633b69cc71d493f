// pool.cc: Pool in f32 over one or two spatial axes: each cell of the window adds one shifted row of the input to a row of the output, so the
// inner loop has neither bounds to check nor a window to walk.

#include <limits>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/window.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

void divide_by_counts(const Pool& op, const Window& window, const Image& x, const Image& y, int64_t oh, float* row) {
  const int64_t rows = window.h.count(oh, x.h, op.count_include_pad);
  for (int64_t ow = 0; ow < y.w; ++ow) {
    const int64_t count = rows * window.w.count(ow, x.w, op.count_include_pad);
    row[ow] = count == 0 ? 0.f : row[ow] / static_cast<float>(count);
  }
}

void pool_plane(const Simd& simd, const Pool& op, const Window& window, const Image& x, const Image& y, const float* src, float* dst) {
  const auto join = op.average ? simd.pool_sum : simd.pool_max;
  for (int64_t oh = 0; oh < y.h; ++oh) {
    float* row = dst + oh * y.w;
    std::fill_n(row, y.w, op.average ? 0.f : -std::numeric_limits<float>::infinity());
    for (int64_t kh = 0; kh < window.h.kernel; ++kh) {
      const int64_t ih = window.h.at(oh, kh);
      if (ih < 0 || ih >= x.h) continue;
      for (int64_t kw = 0; kw < window.w.kernel; ++kw) {
        const auto [first, last] = window.w.inside(kw, x.w, y.w);
        if (first < last) join(src + ih * x.w + window.w.at(first, kw), window.w.stride, row + first, last - first);
      }
    }
    if (op.average) divide_by_counts(op, window, x, y, oh, row);
  }
}

}  // namespace

Prepared pool(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Pool& op = std::get<Pool>(desc.op);
  if (!Window::fits(desc.inputs[0].shape, op.kernel.size(), op.strides, op.dilations, op.pads)) {
    return refuse(why, "only one or two spatial axes");
  }
  const Window window(op.kernel, op.strides, op.dilations, op.pads);
  return make_kernel([&simd, op, window](Stream&, Inputs in, Outputs out) -> Fault {
    const Image x(in[0].shape), y(out[0].shape);
    for (int64_t plane = 0; plane < y.n * y.c; ++plane) {
      pool_plane(simd, op, window, x, y, in[0].as<const float>() + plane * x.plane(), out[0].as<float>() + plane * y.plane());
    }
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
