// conv_transpose.cu: ConvTranspose over one to three axes: one product gives what each input adds to each cell of its window, [m * cells, pixels of x], by
// whichever row of MatMul takes it; then a thread for each result adds up the cells that reach it.

#include "kernels/cuda/launch.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kThreads = 256;
constexpr int kAxes = 3;

/// Fewer axes have leading ones of size 1. `small`: x; `large`: y.
struct Geometry {
  int64_t results = 0, channels = 0, cells = 1, pixels = 1;  ///< channels of y; cells of a window; pixels of x
  Division of_channels, large[kAxes];
  int64_t small[kAxes] = {1, 1, 1}, kernel[kAxes] = {1, 1, 1}, stride[kAxes] = {1, 1, 1}, dilation[kAxes] = {1, 1, 1},
          begin[kAxes] = {0, 0, 0};
};

/// The pixel of x whose window has cell k at place `at` of y, along one axis; -1: none.
__device__ inline int64_t source(const Geometry& g, int axis, int64_t at, int64_t k) {
  const int64_t distance = at + g.begin[axis] - k * g.dilation[axis];
  if (distance < 0 || distance % g.stride[axis] != 0) return -1;
  const int64_t pixel = distance / g.stride[axis];
  return pixel < g.small[axis] ? pixel : -1;
}

/// columns [images, channels, cells, pixels of x] -> y [images, channels, pixels of y].
template <class T>
__global__ void add_cells(Geometry g, const T* columns, const T* bias, T* y) {
  using C = compute_t<T>;
  for (int64_t i = first_element(); i < g.results; i += element_step()) {
    int64_t rest = i, at[kAxes];
    for (int axis = kAxes - 1; axis >= 0; --axis) {
      const int64_t next = g.large[axis].quotient(rest);
      at[axis] = rest - next * g.large[axis].d;
      rest = next;
    }
    const T* const plane = columns + rest * g.cells * g.pixels;
    C sum = bias ? static_cast<C>(load(bias[g.of_channels.remainder(rest)])) : C(0);
    for (int64_t a = 0; a < g.kernel[0]; ++a) {
      const int64_t d = source(g, 0, at[0], a);
      if (d < 0) continue;
      for (int64_t b = 0; b < g.kernel[1]; ++b) {
        const int64_t h = source(g, 1, at[1], b);
        if (h < 0) continue;
        for (int64_t c = 0; c < g.kernel[2]; ++c) {
          const int64_t w = source(g, 2, at[2], c);
          if (w < 0) continue;
          const int64_t cell = (a * g.kernel[1] + b) * g.kernel[2] + c;
          sum += load(plane[cell * g.pixels + (d * g.small[1] + h) * g.small[2] + w]);
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
  if (axes < 1 || axes > kAxes || x.rank() != axes + 2 || w.rank() != x.rank() || strides.size() != axes || dilations.size() != axes ||
      pads.size() != 2 * axes)
    return refuse(why, "only one to three spatial axes");
  if (groups < 1 || x[1] % groups != 0 || w[0] != x[1] || y[1] != w[1] * groups) return refuse(why, "channels do not fit");
  if (!ref::one_dtype(desc)) return refuse(why, "operands differ in dtype");
  Geometry g;
  g.results = y.elements(), g.channels = y[1];
  g.of_channels = Division(y[1], g.results);
  g.large[0] = g.large[1] = Division(1, g.results);
  for (size_t axis = 0; axis < axes; ++axis) {
    const size_t at = kAxes - axes + axis;
    g.small[at] = x[axis + 2], g.large[at] = Division(y[axis + 2], g.results), g.kernel[at] = kernel[axis];
    g.stride[at] = strides[axis], g.dilation[at] = dilations[axis], g.begin[at] = pads[axis];
    g.cells *= kernel[axis], g.pixels *= x[axis + 2];
  }
  const int64_t c = x[1] / groups, rows = w[1] * g.cells;
  const Shapes shapes = groups == 1 ? Shapes{{c, rows}, {x[0], c, g.pixels}, {x[0], rows, g.pixels}}
                                    : Shapes{{groups, c, rows}, {x[0], groups, c, g.pixels}, {x[0], groups, rows, g.pixels}};
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
          return launch(stream, {blocks_for(g.results, kThreads), kThreads}, add_cells<T>, g, columns.as<const T>(), operand_as<T>(in, 2),
                        out[0].as<T>());
        },
        {.scratch_bytes = column_bytes + product->scratch_bytes()});
  });
}

}  // namespace serin::kernels::cuda
