// conv.cc: Conv over any number of spatial axes: each output is a sum over the channels of its group and the cells of its window.

#include "kernels/indexing.h"
#include "kernels/ref/epilogue.h"
#include "kernels/ref/visit.h"
#include "kernels/ref/windows.h"

namespace serin::kernels::ref {

namespace {

template <class T>
Fault run(const Conv& op, const Windows& windows, Inputs in, Outputs out) {
  const bool last = op.channels_last;
  const Shape x = channels_first(in[0].shape, last);       // [n, c, spatial...]
  const Shape weight = channels_first(in[1].shape, last);  // [m, c / group, kernel...]
  const Shape y = channels_first(out[0].shape, last);      // [n, m, spatial...]
  const int64_t m = y[1];
  const int64_t group_c = weight[1];
  const int64_t x_spatial = product(x, 2, x.rank());
  const int64_t y_spatial = product(y, 2, y.rank());
  const int64_t cells = windows.cells();
  // From one channel to the next, from one pixel to the next.
  const int64_t x_channel = last ? 1 : x_spatial, x_pixel = last ? x[1] : 1;
  const int64_t w_channel = last ? 1 : cells, w_cell = last ? group_c : 1;

  // A bias [m] is added along the channels: seen as [m, 1, ...] it broadcasts where they are axis 1.
  TensorView operands[4];
  std::copy(in.begin(), in.end(), operands);
  if (op.bias && !last) {
    Shape bias_shape{m};
    for (size_t axis = 0; axis < windows.axes(); ++axis) bias_shape.push_back(1);
    operands[2].shape = bias_shape;
  }
  const Epilogued<T> epilogue(op.epilogue, op.bias, Inputs(operands, in.size()), out[0].shape);

  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t image = i / (y_spatial * m);
    const int64_t o = last ? i / m % y_spatial : i % y_spatial;
    const int64_t channel = last ? i % m : i / y_spatial % m;
    const int64_t first_c = channel / (m / op.group) * group_c;
    const T* source = in[0].as<const T>() + image * x[1] * x_spatial + first_c * x_channel;
    const T* filter = in[1].as<const T>() + channel * group_c * cells;
    sum_t<T> sum = 0;
    for (int64_t k = 0; k < cells; ++k) {
      const Windows::Cell cell = windows.cell(x, y, o, k);
      if (!cell.inside) continue;
      for (int64_t c = 0; c < group_c; ++c)
        sum = add(sum, multiply(widen(source[c * x_channel + cell.offset * x_pixel]), widen(filter[c * w_channel + k * w_cell])));
    }
    out[0].as<T>()[i] = epilogue(sum, i);
  }
  return kOk;
}

}  // namespace

Prepared conv(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Conv& op = std::get<Conv>(desc.op);
  if (!has_operands(desc, 2 + op.bias + op.epilogue.residual, why)) return nullptr;
  if (!one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  if (desc.inputs[1].shape.rank() < 2) return refuse(why, "weight must have rank 2 or more");
  const Shape weight = channels_first(desc.inputs[1].shape, op.channels_last);
  if (desc.outputs[0].shape.rank() != weight.rank()) return refuse(why, "the output's rank is not the weight's");
  const Windows windows{{weight.begin() + 2, weight.end()}, op.strides, op.dilations, op.pads};
  if (!windows.fits(desc.inputs[0].shape)) return refuse(why, "kernel, strides, dilations and pads do not match the input's spatial axes");
  if (op.group < 1 || weight[0] % op.group != 0 || weight[1] * op.group != channels_first(desc.inputs[0].shape, op.channels_last)[1]) {
    return refuse(
        why, "weight " + weight.str() + " in " + std::to_string(op.group) + " groups does not fit input " + desc.inputs[0].shape.str());
  }
  return for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op, windows](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(op, windows, in, out); });
  });
}

}  // namespace serin::kernels::ref
