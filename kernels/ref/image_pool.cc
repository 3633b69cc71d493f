// image_pool.cc: the pools other than Pool: MaxPoolWithIndices, LpPool, GlobalLpPool, and MaxUnpool, which puts values back where they came
// from. Windows are explicit here (runtime/engine/lower/lower_image.cc resolves auto_pad and defaults).

#include <cmath>

#include "kernels/ref/axes.h"
#include "kernels/ref/image.h"
#include "kernels/ref/windows.h"

namespace serin::kernels::ref {

namespace {

/// The position of an element within its plane, counted with the first axis running fastest.
int64_t column_major(const Shape& x, int64_t offset) {
  int64_t position = 0, step = product(x, 2, x.rank());
  for (size_t axis = x.rank(); axis-- > 2; offset /= x[axis]) {
    step /= x[axis];
    position += offset % x[axis] * step;
  }
  return position;
}

/// The first maximum of each window, and which element of the whole input it is. A window that sees padding only keeps the lowest value.
template <class T>
Fault run_max(const Windows& windows, bool columns_first, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;   // [n, c, spatial...]
  const Shape& y = out[0].shape;  // [n, c, spatial...]
  const int64_t plane = product(x, 2, x.rank()), positions = product(y, 2, y.rank()), cells = windows.cells();
  for (int64_t i = 0; i < out[0].elements(); ++i) {
    const T* source = in[0].as<const T>() + i / positions * plane;
    int64_t best = -1;
    for (int64_t k = 0; k < cells; ++k) {
      const Windows::Cell cell = windows.cell(x, y, i % positions, k);
      if (!cell.inside) continue;
      const auto value = load(source[cell.offset]);
      if (best < 0 || value > load(source[best]) || (value != value && load(source[best]) == load(source[best]))) best = cell.offset;
    }
    out[0].as<T>()[i] = best < 0 ? T{} : source[best];
    if (out.size() > 1)
      out[1].as<int64_t>()[i] = i / positions * plane + (columns_first ? column_major(x, std::max<int64_t>(best, 0)) : best);
  }
  return kOk;
}

/// Sum of |x|^p, and what p makes of it.
struct PowerSum {
  double p, sum = 0;
  void add(double x) { sum += std::pow(std::fabs(x), p); }
  double root() const { return std::pow(sum, 1 / p); }
};

template <class T>
Fault run_lp(const Windows& windows, double p, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const Shape& y = out[0].shape;
  const int64_t plane = product(x, 2, x.rank()), positions = product(y, 2, y.rank()), cells = windows.cells();
  for (int64_t i = 0; i < out[0].elements(); ++i) {
    const T* source = in[0].as<const T>() + i / positions * plane;
    PowerSum sum{p};
    for (int64_t k = 0; k < cells; ++k) {
      const Windows::Cell cell = windows.cell(x, y, i % positions, k);
      if (cell.inside) sum.add(static_cast<double>(load(source[cell.offset])));
    }
    out[0].as<T>()[i] = kernels::cast<T>(sum.root());
  }
  return kOk;
}

template <class T>
Fault run_global_lp(double p, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const int64_t plane = product(x, 2, x.rank());
  for (int64_t i = 0; i < out[0].elements(); ++i) {
    PowerSum sum{p};
    for (int64_t k = 0; k < plane; ++k) sum.add(static_cast<double>(load(in[0].as<const T>()[i * plane + k])));
    out[0].as<T>()[i] = kernels::cast<T>(sum.root());
  }
  return kOk;
}

/// Indices count in the shape that the pool must have had as its input; a larger output keeps it in its corner.
template <class T>
Fault run_unpool(const Windows& windows, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const Shape& y = out[0].shape;
  Shape pooled = x;
  for (size_t axis = 0; axis < windows.axes(); ++axis) {
    pooled[axis + 2] =
        (x[axis + 2] - 1) * windows.strides[axis] + windows.kernel[axis] - windows.pads[axis] - windows.pads[axis + windows.axes()];
    if (pooled[axis + 2] < 0) pooled[axis + 2] = 0;
  }
  if (!(in[1].shape == x)) return "indices have shape " + in[1].shape.str() + ", the input " + x.str();
  const int64_t elements = pooled.elements();
  const Strides strides = row_major_strides(y);
  const auto out_of_range = [&pooled](int64_t index) {
    return "index " + std::to_string(index) + " is out of range for the shape " + pooled.str();
  };
  const T* const from = in[0].as<const T>();
  T* const to = out[0].as<T>();
  std::fill_n(to, out[0].elements(), T{});
  if (pooled == y && in[1].dtype == DType::kInt64) {
    const std::span<const int64_t> indices = in[1].span<const int64_t>();
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= elements) return out_of_range(indices[i]);
      to[indices[i]] = from[i];
    }
    return kOk;
  }
  for (int64_t i = 0; i < in[0].elements(); ++i) {
    const int64_t index = index_at(in[1], i);
    if (index < 0 || index >= elements) return out_of_range(index);
    int64_t offset = 0, rest = index;
    bool inside = true;
    for (size_t axis = y.rank(); axis-- > 0; rest /= pooled[axis]) {
      inside &= rest % pooled[axis] < y[axis];
      offset += rest % pooled[axis] * strides[axis];
    }
    if (inside) to[offset] = from[i];
  }
  return kOk;
}

}  // namespace

Prepared max_pool_with_indices(const GenericDesc& desc, std::string& why) {
  const Windows windows = windows_of(desc.attributes);
  if (!windows.fits(desc.inputs[0].shape)) return refuse(why, "the window does not match the input's spatial axes");
  const bool columns_first = desc.attributes.integer("storage_order", 0) != 0;
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [windows, columns_first](Stream&, Inputs in, Outputs out) -> Fault { return run_max<T>(windows, columns_first, in, out); });
  });
}

Prepared max_unpool(const GenericDesc& desc, std::string& why) {
  Windows windows = windows_of(desc.attributes);
  if (windows.strides.empty()) windows.strides.assign(windows.axes(), 1);
  if (windows.pads.empty()) windows.pads.assign(2 * windows.axes(), 0);
  windows.dilations.assign(windows.axes(), 1);
  if (!windows.fits(desc.inputs[0].shape)) return refuse(why, "the window does not match the input's spatial axes");
  if (!is_index_dtype(desc.inputs[1].dtype)) return refuse(why, "indices must be i64");
  return for_sizes(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([windows](Stream&, Inputs in, Outputs out) -> Fault { return run_unpool<T>(windows, in, out); });
  });
}

Prepared lp_pool(const GenericDesc& desc, std::string& why) {
  const Windows windows = windows_of(desc.attributes);
  if (!windows.fits(desc.inputs[0].shape)) return refuse(why, "the window does not match the input's spatial axes");
  const double p = static_cast<double>(desc.attributes.integer("p", 2));
  return for_floats(desc.inputs[0].dtype, why, [windows, p]<class T>(Element<T>) -> Prepared {
    return make_kernel([windows, p](Stream&, Inputs in, Outputs out) -> Fault { return run_lp<T>(windows, p, in, out); });
  });
}

Prepared global_lp_pool(const GenericDesc& desc, std::string& why) {
  const double p = static_cast<double>(desc.attributes.integer("p", 2));
  if (desc.inputs[0].shape.rank() < 2) return refuse(why, "the input must have rank 2 or more");
  return for_floats(desc.inputs[0].dtype, why, [p]<class T>(Element<T>) -> Prepared {
    return make_kernel([p](Stream&, Inputs in, Outputs out) -> Fault { return run_global_lp<T>(p, in, out); });
  });
}

}  // namespace serin::kernels::ref
