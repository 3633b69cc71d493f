// col2im.cc: Col2Im over one or two spatial axes. Each cell of the windows is added for a whole row of windows before the next cell, so that the compiler can
// use vectors.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/window.h"
#include "kernels/make_kernel.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/ref.h"

namespace serin::kernels::cpu {

namespace {

/// y[i * stride] += x[i].
template <class T>
void add_spread(const T* x, T* y, int64_t stride, int64_t n) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] += x[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * stride] += x[i];
  }
}

struct Blocks {
  Window window;
  int64_t rows, columns;  ///< of windows
};

/// x [cells, rows of windows, columns of windows] -> y.
template <class T>
void add_plane(const Blocks& blocks, const Image& size, const T* x, T* y) {
  const Window& window = blocks.window;
  std::fill_n(y, size.plane(), T{});
  for (int64_t kh = 0; kh < window.h.kernel; ++kh) {
    for (int64_t kw = 0; kw < window.w.kernel; ++kw, x += blocks.rows * blocks.columns) {
      const auto down = window.h.inside(kh, size.h, blocks.rows), right = window.w.inside(kw, size.w, blocks.columns);
      for (int64_t row = down.first; row < down.last && right.first < right.last; ++row) {
        add_spread(x + row * blocks.columns + right.first, y + window.h.at(row, kh) * size.w + window.w.at(right.first, kw),
                   window.w.stride, right.last - right.first);
      }
    }
  }
}

std::vector<int64_t> integers(const TensorView& view) {
  std::vector<int64_t> all(static_cast<size_t>(view.elements()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = ref::index_at(view, static_cast<int64_t>(i));
  return all;
}

/// Windows between one end of an image and the other; less than one if none fits.
int64_t windows_along(const Window::Axis& axis, int64_t size) {
  const int64_t room = size + axis.pad + axis.pad_end - (axis.kernel - 1) * axis.dilation - 1;
  return axis.kernel < 1 || room < 0 ? 0 : room / axis.stride + 1;
}

struct Steps {
  std::vector<int64_t> strides, dilations, pads;
};

template <class T>
Prepared sums(const Steps& steps, Prepared rest) {
  const std::shared_ptr<const Kernel> other = std::move(rest);  // says what is wrong with operands that do not fit
  return make_kernel([steps, other](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Image y(out[0].shape);
    Blocks blocks{Window(integers(in[2]), steps.strides, steps.dilations, steps.pads), 0, 0};
    blocks.rows = windows_along(blocks.window.h, y.h), blocks.columns = windows_along(blocks.window.w, y.w);
    const int64_t cells = blocks.window.cells(), count = blocks.rows * blocks.columns;
    if (count == 0 || in[0].shape[1] != y.c * cells || in[0].shape[2] != count) return other->run(stream, in, out);
    parallel_for(stream, y.n * y.c, [&](int64_t plane, int) {
      add_plane(blocks, y, in[0].as<const T>() + plane * cells * count, out[0].as<T>() + plane * y.plane());
    });
    return kOk;
  });
}

}  // namespace

Prepared col2im(const Simd&, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "Col2Im") return refuse(why, "not a Col2Im");
  Prepared rest = ref::generic(desc, context, why);  // checks the operands
  if (!rest) return nullptr;
  const Shape& y = desc.outputs[0].shape;
  const size_t axes = y.rank() - 2;
  if (axes != 1 && axes != 2) return refuse(why, "only one or two spatial axes");
  const auto given = [&](std::string_view key, size_t count, int64_t value) {
    std::vector<int64_t> values = op.attributes.integers(key);
    if (values.empty()) values.assign(count, value);
    return values;
  };
  const Steps steps{given("strides", axes, 1), given("dilations", axes, 1), given("pads", 2 * axes, 0)};
  switch (desc.inputs[0].dtype) {
    case DType::kFloat32: return sums<float>(steps, std::move(rest));
    case DType::kFloat64: return sums<double>(steps, std::move(rest));
    case DType::kInt32: return sums<uint32_t>(steps, std::move(rest));  // sums wrap
    default: return refuse(why, "no loop for this dtype");
  }
}

}  // namespace serin::kernels::cpu
