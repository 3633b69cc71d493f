// conv_transpose.cu: ConvTranspose over one to three axes: one product gives what each input adds to each cell of its window, [m * cells, pixels of x], by
// whichever row of MatMul takes it; then a thread for each result adds up the cells that reach it.

#include "kernels/cuda/launch.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/windows.h"
#include "kernels/functors.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

struct Geometry {
  Windows windows;  ///< of x and y as for Conv, though here they lie in y, one for each pixel of x
  int64_t results = 0;
  Division channels;  ///< of y
};

/// The pixel of x whose window has cell k at pixel `at` of y, along one axis; -1: none.
__device__ inline int64_t source(const Windows& w, int axis, int64_t at, int64_t k) {
  const int64_t distance = at + w.begin[axis] - k * w.dilation[axis];
  if (distance < 0 || distance % w.stride[axis] != 0) return -1;
  const int64_t pixel = distance / w.stride[axis];
  return pixel < w.x[axis] ? pixel : -1;
}

/// columns [images, channels, cells, pixels of x] -> y [images, channels, pixels of y].
template <class T>
__global__ void add_cells(Geometry g, const T* columns, const T* bias, T* y) {
  using C = compute_t<T>;
  const Windows& windows = g.windows;
  for (int64_t i = first_element(); i < g.results; i += element_step()) {
    int64_t at[kWindowAxes];
    const int64_t plane = windows.locate(i, at);
    const T* const own = columns + plane * windows.cells() * windows.x_pixels();
    C sum = bias ? static_cast<C>(load(bias[g.channels.remainder(plane)])) : C(0);
    for (int64_t a = 0; a < windows.kernel[0]; ++a) {
      const int64_t d = source(windows, 0, at[0], a);
      if (d < 0) continue;
      for (int64_t b = 0; b < windows.kernel[1]; ++b) {
        const int64_t h = source(windows, 1, at[1], b);
        if (h < 0) continue;
        for (int64_t c = 0; c < windows.kernel[2]; ++c) {
          const int64_t w = source(windows, 2, at[2], c);
          if (w < 0) continue;
          const int64_t cell = (a * windows.kernel[1] + b) * windows.kernel[2] + c;
          sum += load(own[cell * windows.x_pixels() + (d * windows.x[1] + h) * windows.x[2] + w]);
        }
      }
    }
    y[i] = cast<T>(sum);
  }
}

/// The product's operands, as they lie: w [groups, c, m * cells], x [images, groups, c, pixels], columns [images, groups, m * cells, pixels].
struct Shapes {
  Shape w, x, columns;
};

}  // namespace

Prepared prepare_conv_transpose(const Products& products, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const Shape &x = desc.inputs[0].shape, &w = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  const auto kernel = attributes.integers("kernel_shape"), strides = attributes.integers("strides"),
             dilations = attributes.integers("dilations"), pads = attributes.integers("pads");
  const int64_t groups = attributes.integer("group", 1);
  const size_t axes = kernel.size();
  if (axes < 1 || axes > kWindowAxes || x.rank() != axes + 2 || w.rank() != x.rank() || strides.size() != axes ||
      dilations.size() != axes || pads.size() != 2 * axes)
    return refuse(why, "only one to three spatial axes");
  if (groups < 1 || x[1] % groups != 0 || w[0] != x[1] || y[1] != w[1] * groups) return refuse(why, "channels do not fit");
  if (!ref::one_dtype(desc)) return refuse(why, "operands differ in dtype");
  const Geometry g{Windows(x, y, 2, kernel, strides, dilations, pads), y.elements(), Division(y[1], y.elements())};
  const int64_t pixels = g.windows.x_pixels();
  const int64_t c = x[1] / groups, rows = w[1] * g.windows.cells();
  const Shapes shapes = groups == 1 ? Shapes{{c, rows}, {x[0], c, pixels}, {x[0], rows, pixels}}
                                    : Shapes{{groups, c, rows}, {x[0], groups, c, pixels}, {x[0], groups, rows, pixels}};
  MatMul op;
  op.transpose_a = true;
  const DType dtype = desc.outputs[0].dtype;
  auto found = products.prepare(op, dtype, shapes.w, shapes.x, shapes.columns, context, why);
  if (!found) return nullptr;
  const std::shared_ptr<const Product> product = std::make_shared<Product>(std::move(*found));
  const size_t column_bytes = (static_cast<size_t>(shapes.columns.elements()) * dtype_size(dtype) + 255) / 256 * 256;
  return ref::for_floats(dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [=](Stream& stream, Inputs in, Outputs out) -> Fault {
          if (g.results == 0) return kOk;
          const TensorView columns{dtype, shapes.columns, stream.scratch};
          if (Fault fault = product->run(stream, {dtype, shapes.w, in[1].data}, {dtype, shapes.x, in[0].data}, columns,
                                         stream.scratch + column_bytes))
            return fault;
          return launch(stream, {blocks_for(g.results, kBlockThreads), kBlockThreads}, add_cells<T>, g, columns.as<const T>(),
                        operand_as<T>(in, 2), out[0].as<T>());
        },
        {.scratch_bytes = column_bytes + product->scratch_bytes()});
  });
}

}  // namespace serin::kernels::cuda
