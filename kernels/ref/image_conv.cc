// image_conv.cc: convolutions other than Conv. ConvTranspose and Col2Im add each input to all the outputs that its window covers;
// DeformConv reads its input at places that another operand shifts. Windows are explicit here (runtime/engine/lower/lower_image.cc).

#include <cmath>
#include <vector>

#include "kernels/ref/axes.h"
#include "kernels/ref/image.h"
#include "kernels/ref/windows.h"

namespace serin::kernels::ref {

namespace {

/// Seen from the larger tensor, the windows of a transposed convolution are those of the convolution: `cell` of (large, small).
template <class T>
Fault run_transpose(const Windows& windows, int64_t group, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;   // [n, c, small...]
  const Shape& w = in[1].shape;   // [c, m / group, kernel...]
  const Shape& y = out[0].shape;  // [n, m, large...]
  const int64_t small = product(x, 2, x.rank()), large = product(y, 2, y.rank()), cells = windows.cells();
  const int64_t group_c = x[1] / group, group_m = w[1];
  std::vector<sum_t<T>> plane(static_cast<size_t>(large));
  for (int64_t row = 0; row < y[0] * y[1]; ++row) {  // images x output channels
    const int64_t image = row / y[1], m = row % y[1], first_c = m / group_m * group_c;
    const TensorView* bias = operand(in, 2);
    std::fill(plane.begin(), plane.end(), bias ? widen(bias->as<const T>()[m]) : sum_t<T>(0));
    for (int64_t c = first_c; c < first_c + group_c; ++c) {
      const T* source = in[0].as<const T>() + (image * x[1] + c) * small;
      const T* filter = in[1].as<const T>() + (c * group_m + m % group_m) * cells;
      for (int64_t o = 0; o < small; ++o) {
        for (int64_t k = 0; k < cells; ++k) {
          const Windows::Cell cell = windows.cell(y, x, o, k);
          if (cell.inside) plane[static_cast<size_t>(cell.offset)] += widen(source[o]) * widen(filter[k]);
        }
      }
    }
    std::transform(plane.begin(), plane.end(), out[0].as<T>() + row * large, narrow<T>);
  }
  return kOk;
}

/// x [n, c * cells, windows] -> y [n, c, image...]: what overlaps is added.
template <class T>
Fault run_col2im(Windows windows, Inputs in, Outputs out) {
  const Shape& y = out[0].shape;
  const size_t axes = y.rank() - 2;
  Shape positions{y[0], y[1]};  // of the windows, as a tensor of its own
  windows.kernel.clear();
  for (size_t axis = 0; axis < axes; ++axis) {
    windows.kernel.push_back(index_at(in[2], static_cast<int64_t>(axis)));
    const int64_t extent = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1;
    const int64_t room = y[axis + 2] + windows.pads[axis] + windows.pads[axis + axes] - extent;
    if (windows.kernel[axis] < 1 || room < 0)
      return "a block of " + std::to_string(windows.kernel[axis]) + " does not fit axis " + std::to_string(axis);
    positions.push_back(room / windows.strides[axis] + 1);
  }
  const int64_t cells = windows.cells(), count = product(positions, 2, positions.rank()), plane = product(y, 2, y.rank());
  if (in[0].shape[1] != y[1] * cells || in[0].shape[2] != count)
    return "an input of shape " + in[0].shape.str() + " does not have " + std::to_string(cells) + " cells of " + std::to_string(count) +
           " blocks";
  std::vector<sum_t<T>> sums(static_cast<size_t>(plane));
  for (int64_t row = 0; row < y[0] * y[1]; ++row) {
    std::fill(sums.begin(), sums.end(), sum_t<T>(0));
    const T* source = in[0].as<const T>() + row * cells * count;
    for (int64_t k = 0; k < cells; ++k) {
      for (int64_t o = 0; o < count; ++o) {
        const Windows::Cell cell = windows.cell(y, positions, o, k);
        if (cell.inside) sums[static_cast<size_t>(cell.offset)] += widen(source[k * count + o]);
      }
    }
    std::transform(sums.begin(), sums.end(), out[0].as<T>() + row * plane, narrow<T>);
  }
  return kOk;
}

/// The plane at a place between its elements; zero around it.
template <class T>
double bilinear(const T* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width))) return 0;
  const auto row = static_cast<int64_t>(std::floor(y)), column = static_cast<int64_t>(std::floor(x));
  const double down = y - std::floor(y), right = x - std::floor(x);
  const auto at = [&](int64_t r, int64_t c) {
    return r >= 0 && r < height && c >= 0 && c < width ? static_cast<double>(load(plane[r * width + c])) : 0;
  };
  return (1 - down) * ((1 - right) * at(row, column) + right * at(row, column + 1)) +
         down * ((1 - right) * at(row + 1, column) + right * at(row + 1, column + 1));
}

struct Deform {
  Windows windows;
  int64_t group, offset_group;
};

template <class T>
Fault run_deform(const Deform& op, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;   // [n, c, h, w]
  const Shape& w = in[1].shape;   // [m, c / group, kh, kw]
  const Shape& y = out[0].shape;  // [n, m, oh, ow]
  const Windows& windows = op.windows;
  const int64_t cells = windows.cells(), positions = y[2] * y[3];
  const TensorView* bias = operand(in, 3);
  const TensorView* mask = operand(in, 4);  // [n, offset_group * cells, oh, ow]; the offsets have twice as many channels, y then x
  for (int64_t i = 0; i < out[0].elements(); ++i) {
    const int64_t image = i / positions / y[1], m = i / positions % y[1], o = i % positions;
    const int64_t first_c = m / (y[1] / op.group) * w[1];
    double sum = bias ? static_cast<double>(load(bias->as<const T>()[m])) : 0;
    for (int64_t c = 0; c < w[1]; ++c) {
      const int64_t channel = first_c + c, shifts = image * op.offset_group + channel / (x[1] / op.offset_group);
      const T* plane = in[0].as<const T>() + (image * x[1] + channel) * x[2] * x[3];
      for (int64_t k = 0; k < cells; ++k) {
        const auto shift = [&](int64_t axis) {
          return static_cast<double>(load(in[2].as<const T>()[((shifts * cells + k) * 2 + axis) * positions + o]));
        };
        const int64_t row = o / y[3] * windows.strides[0] - windows.pads[0] + k / w[3] * windows.dilations[0];
        const int64_t column = o % y[3] * windows.strides[1] - windows.pads[1] + k % w[3] * windows.dilations[1];
        double value = bilinear(plane, x[2], x[3], static_cast<double>(row) + shift(0), static_cast<double>(column) + shift(1));
        if (mask) value *= static_cast<double>(load(mask->as<const T>()[(shifts * cells + k) * positions + o]));
        sum += value * static_cast<double>(load(in[1].as<const T>()[(m * w[1] + c) * cells + k]));
      }
    }
    out[0].as<T>()[i] = kernels::cast<T>(sum);
  }
  return kOk;
}

}  // namespace

Prepared conv_transpose(const GenericDesc& desc, std::string& why) {
  const Windows windows = windows_of(desc.attributes);
  const Shape& x = desc.inputs[0].shape;
  const Shape& w = desc.inputs[1].shape;
  const int64_t group = desc.attributes.integer("group", 1);
  if (!windows.fits(x) || w.rank() != x.rank()) return refuse(why, "the window does not match the input's spatial axes");
  if (group < 1 || x[1] != w[0] || x[1] % group != 0 || desc.outputs[0].shape[1] != w[1] * group) return refuse(why, "channels do not fit");
  return for_floats(desc.inputs[0].dtype, why, [windows, group]<class T>(Element<T>) -> Prepared {
    return make_kernel([windows, group](Stream&, Inputs in, Outputs out) -> Fault { return run_transpose<T>(windows, group, in, out); });
  });
}

Prepared col2im(const GenericDesc& desc, std::string& why) {
  Windows windows = windows_of(desc.attributes);
  const size_t axes = desc.outputs[0].shape.rank() - 2;
  if (windows.strides.empty()) windows.strides.assign(axes, 1);
  if (windows.dilations.empty()) windows.dilations.assign(axes, 1);
  if (windows.pads.empty()) windows.pads.assign(2 * axes, 0);
  windows.kernel.assign(axes, 1);
  if (!windows.fits(desc.outputs[0].shape) || desc.inputs[0].shape.rank() != 3 || !is_index_dtype(desc.inputs[2].dtype) ||
      desc.inputs[2].shape.elements() != static_cast<int64_t>(axes)) {
    return refuse(why, "block_shape, strides, dilations and pads do not match the image");
  }
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([windows](Stream&, Inputs in, Outputs out) -> Fault { return run_col2im<T>(windows, in, out); });
  });
}

Prepared deform_conv(const GenericDesc& desc, std::string& why) {
  const Deform op{windows_of(desc.attributes), desc.attributes.integer("group", 1), desc.attributes.integer("offset_group", 1)};
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() != 4 || !op.windows.fits(x)) return refuse(why, "only two spatial axes");
  return for_floats(desc.inputs[0].dtype, why, [op]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_deform<T>(op, in, out); });
  });
}

}  // namespace serin::kernels::ref
