// selection_gather.cc: GatherElements takes one element for each index, GatherND a slice for each tuple of indices. Strings move, too.

#include "kernels/ref/axes.h"
#include "kernels/ref/selection.h"

namespace serin::kernels::ref {

namespace {

/// y[i, j, k] = x[i, index[i, j, k], k] for axis 1: the other axes of the indices may be shorter than those of x. Row by row of the indices.
template <class T, class I>
Fault run_elements(size_t axis, Inputs in, Outputs out) {
  const Shape& shape = in[1].shape;
  for (size_t other = 0; other < shape.rank(); ++other) {
    if (other != axis && shape[other] > in[0].shape[other])
      return "indices of shape " + shape.str() + " reach over the data of shape " + in[0].shape.str();
  }
  Strides strides = row_major_strides(in[0].shape);
  const int64_t step = strides[axis], size = in[0].shape[axis], row = shape.back(), along = axis + 1 == shape.rank() ? 0 : 1;
  strides[axis] = 0;
  Shape rows = shape;
  rows[shape.rank() - 1] = 1;
  int64_t wrong = -1;
  for_each<1>(rows, {strides}, [&](int64_t r, const auto& at) {
    const I* index = in[1].as<const I>() + r * row;
    const T* x = in[0].as<const T>() + at[0];
    T* y = out[0].as<T>() + r * row;
    for (int64_t i = 0; i < row; ++i) {
      const int64_t place = index[i] < 0 ? index[i] + size : index[i];
      if (place < 0 || place >= size)
        wrong = r * row + i;
      else
        y[i] = x[i * along + place * step];
    }
  });
  if (wrong >= 0) return out_of_range(index_at(in[1], wrong), axis, size);
  return kOk;
}

/// The last axis of the indices [batch..., tuples..., k] names a slice of the data [batch..., d0, ..., dk-1, slice...].
template <class T>
Fault run_nd(size_t batch_axes, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const Shape& indices = in[1].shape;
  const auto k = static_cast<size_t>(indices.back());
  if (batch_axes + k > x.rank()) return "tuples of " + std::to_string(k) + " indices are too long for data of shape " + x.str();
  const int64_t batches = product(x, 0, batch_axes), batch = product(x, batch_axes, x.rank());
  const int64_t slice = product(x, batch_axes + k, x.rank());
  const int64_t tuples = product(indices, batch_axes, indices.rank() - 1);
  const Strides strides = row_major_strides(x);
  T* y = out[0].as<T>();
  for (int64_t b = 0, tuple = 0; b < batches; ++b) {
    for (int64_t t = 0; t < tuples; ++t, ++tuple) {
      int64_t offset = b * batch;
      for (size_t i = 0; i < k; ++i) {
        const int64_t given = index_at(in[1], tuple * static_cast<int64_t>(k) + static_cast<int64_t>(i));
        const int64_t index = resolve_index(given, x[batch_axes + i]);
        if (index < 0) return out_of_range(given, batch_axes + i, x[batch_axes + i]);
        offset += index * strides[batch_axes + i];
      }
      y = std::copy_n(in[0].as<const T>() + offset, slice, y);
    }
  }
  return kOk;
}

template <class F>
Prepared for_moved(const GenericDesc& desc, std::string& why, F&& make) {
  if (!is_index_dtype(desc.inputs[1].dtype)) return refuse(why, "indices must be i32 or i64");
  return for_sizes(desc.inputs[0].dtype, why, std::forward<F>(make));
}

}  // namespace

Prepared gather_elements(const GenericDesc& desc, std::string& why) {
  const int64_t axis = resolve_axis(desc.attributes.integer("axis", 0), desc.inputs[0].shape.rank());
  if (axis < 0 || desc.inputs[1].shape.rank() != desc.inputs[0].shape.rank())
    return refuse(why, "axis or rank of the indices does not fit");
  return for_moved(desc, why, [axis]<class T>(Element<T>) -> Prepared {
    return make_kernel([axis = static_cast<size_t>(axis)](Stream&, Inputs in, Outputs out) -> Fault {
      return in[1].dtype == DType::kInt32 ? run_elements<T, int32_t>(axis, in, out) : run_elements<T, int64_t>(axis, in, out);
    });
  });
}

Prepared gather_nd(const GenericDesc& desc, std::string& why) {
  const int64_t batch_axes = desc.attributes.integer("batch_dims", 0);
  const size_t rank = std::min(desc.inputs[0].shape.rank(), desc.inputs[1].shape.rank());
  if (rank == 0 || batch_axes < 0 || batch_axes >= static_cast<int64_t>(rank)) return refuse(why, "batch_dims does not fit the ranks");
  return for_moved(desc, why, [batch_axes]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [batch_axes](Stream&, Inputs in, Outputs out) -> Fault { return run_nd<T>(static_cast<size_t>(batch_axes), in, out); });
  });
}

}  // namespace serin::kernels::ref
