// pool_bytes.cc: the largest of each window in i8 and u8, which are not converted to f32 for it. Each cell of the windows is taken for a whole row of outputs
// before the next cell, so that the compiler can use vectors.

#include <algorithm>
#include <limits>

#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/window.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// y[i] = max(y[i], x[i * stride]) for n elements.
template <class T>
void keep_larger(const T* x, int64_t stride, T* y, int64_t n) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::max(y[i], x[i]);
  } else if (stride == 2) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::max(y[i], x[2 * i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = std::max(y[i], x[i * stride]);
  }
}

/// A window without a cell inside x has the lowest number, as in kernels/ref/pool.cc.
template <class T>
void pool_plane(const Window& window, const Image& x_size, const Image& y_size, const T* x, T* y) {
  std::fill_n(y, y_size.plane(), std::numeric_limits<T>::lowest());
  for (int64_t row = 0; row < y_size.h; ++row, y += y_size.w) {
    for (int64_t kh = 0; kh < window.h.kernel; ++kh) {
      const int64_t from = window.h.at(row, kh);
      if (from < 0 || from >= x_size.h) continue;
      for (int64_t kw = 0; kw < window.w.kernel; ++kw) {
        const auto [first, last] = window.w.inside(kw, x_size.w, y_size.w);
        if (first < last) keep_larger(x + from * x_size.w + window.w.at(first, kw), window.w.stride, y + first, last - first);
      }
    }
  }
}

template <class T>
Prepared largest(const Window& window) {
  return make_kernel([window](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Image x(in[0].shape), y(out[0].shape);
    parallel_for(stream, x.n * x.c, [&](int64_t plane, int) {
      pool_plane(window, x, y, in[0].as<const T>() + plane * x.plane(), out[0].as<T>() + plane * y.plane());
    });
    return kOk;
  });
}

}  // namespace

Prepared max_pool_bytes(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const Pool& op = std::get<Pool>(desc.op);
  const DType dtype = desc.inputs[0].dtype;
  if (op.average || (dtype != DType::kInt8 && dtype != DType::kUInt8) || desc.outputs[0].dtype != dtype)
    return refuse(why, "only maxima in i8 and u8");
  if (!Window::fits(desc.inputs[0].shape, op.kernel.size(), op.strides, op.dilations, op.pads)) {
    return refuse(why, "only one or two spatial axes");
  }
  const Window window(op.kernel, op.strides, op.dilations, op.pads);
  return dtype == DType::kInt8 ? largest<int8_t>(window) : largest<uint8_t>(window);
}

}  // namespace serin::kernels::cpu
