// selection_scatter.cc: ScatterElements, ScatterND and TensorScatter: a copy of the data, into which updates are written in the order of their indices.
// Where several updates meet, a reduction joins them; without one the last wins.

#include "kernels/scatter.h"

#include "kernels/ref/axes.h"
#include "kernels/ref/selection.h"

namespace serin::kernels::ref {

namespace {

template <class T>
void put(const Join& join, T& at, const T& update) {
  if constexpr (std::is_same_v<T, std::string>)
    at = update;
  else
    at = join ? joined(*join, at, update) : update;
}

template <class T>
void copy_data(Inputs in, Outputs out) {
  if (in[0].data != out[0].data) std::copy_n(in[0].as<const T>(), in[0].elements(), out[0].as<T>());
}

/// y[i, index[i, j, k], k] = update[i, j, k] for axis 1.
template <class T>
Fault run_elements(size_t axis, const Join& join, Inputs in, Outputs out) {
  const Shape& shape = in[1].shape;
  if (!(in[2].shape == shape)) return "updates have shape " + in[2].shape.str() + ", indices " + shape.str();
  for (size_t other = 0; other < shape.rank(); ++other) {
    if (other != axis && shape[other] > in[0].shape[other])
      return "indices of shape " + shape.str() + " reach over the data of shape " + in[0].shape.str();
  }
  copy_data<T>(in, out);
  Strides strides = row_major_strides(in[0].shape);
  const int64_t step = strides[axis], size = in[0].shape[axis];
  strides[axis] = 0;
  int64_t wrong = -1;
  for_each<1>(shape, {strides}, [&](int64_t i, const auto& at) {
    const int64_t index = resolve_index(index_at(in[1], i), size);
    if (index < 0)
      wrong = i;
    else
      put<T>(join, out[0].as<T>()[at[0] + index * step], in[2].as<const T>()[i]);
  });
  if (wrong >= 0) return out_of_range(index_at(in[1], wrong), axis, size);
  return kOk;
}

/// The last axis of the indices [tuples..., k] names a slice of the data [d0, ..., dk-1, slice...].
template <class T>
Fault run_nd(const Join& join, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const auto k = static_cast<size_t>(in[1].shape.back());
  if (k > x.rank()) return "tuples of " + std::to_string(k) + " indices are too long for data of shape " + x.str();
  const int64_t slice = product(x, k, x.rank()), tuples = product(in[1].shape, 0, in[1].shape.rank() - 1);
  if (in[2].elements() != tuples * slice)
    return "updates of shape " + in[2].shape.str() + " are not " + std::to_string(tuples) + " slices of " + std::to_string(slice) +
           " elements";
  copy_data<T>(in, out);
  const Strides strides = row_major_strides(x);
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    int64_t offset = 0;
    for (size_t i = 0; i < k; ++i) {
      const int64_t given = index_at(in[1], tuple * static_cast<int64_t>(k) + static_cast<int64_t>(i));
      const int64_t index = resolve_index(given, x[i]);
      if (index < 0) return out_of_range(given, i, x[i]);
      offset += index * strides[i];
    }
    T* y = out[0].as<T>() + offset;
    const T* update = in[2].as<const T>() + tuple * slice;
    if (!join) {
      std::copy_n(update, slice, y);
      continue;
    }
    for (int64_t j = 0; j < slice; ++j) put<T>(join, y[j], update[j]);
  }
  return kOk;
}

/// A cache [batch, ..., size, ...] takes the rows of the update along `axis` from where the batch's index says on.
template <class T>
Fault run_cache(size_t axis, bool circular, Inputs in, Outputs out) {
  copy_data<T>(in, out);
  const AxisView cache(in[0].shape, axis), update(in[1].shape, axis);
  if (cache.outer != update.outer || cache.inner != update.inner || update.size > cache.size)
    return "an update of shape " + in[1].shape.str() + " does not fit the cache of shape " + in[0].shape.str();
  const TensorView* starts = operand(in, 2);
  const int64_t batch = in[0].shape[0], per_batch = batch == 0 ? 0 : cache.outer / batch;
  if (starts && starts->elements() != batch)
    return std::to_string(starts->elements()) + " write indices are given for a batch of " + std::to_string(batch);
  for (int64_t o = 0; o < cache.outer; ++o) {
    const int64_t start = starts ? index_at(*starts, o / per_batch) : 0;
    const bool fits = start >= 0 && (circular ? cache.size > 0 || update.size == 0 : start <= cache.size - update.size);
    if (!fits) return out_of_range(start, axis, cache.size);
    for (int64_t i = 0; i < update.size; ++i) {
      const int64_t row = circular ? (start % cache.size + i) % cache.size : start + i;
      std::copy_n(in[1].as<const T>() + update.at(o, i, 0), update.inner, out[0].as<T>() + cache.at(o, row, 0));
    }
  }
  return kOk;
}

/// Moves elements of any dtype, joins those that are numbers or bool.
template <class F>
Prepared for_joined(const GenericDesc& desc, const Join& join, std::string& why, F&& make) {
  const DType dtype = desc.inputs[0].dtype;
  if (!join) {
    return for_sizes(dtype, why, std::forward<F>(make));
  }
  return visit_dtype(dtype, [&]<class T>(Element<T> element) -> Prepared {
    if constexpr (std::is_void_v<T>)
      return refuse(why, "no reduction of " + std::string(dtype_name(dtype)));
    else
      return make(element);
  });
}

}  // namespace

Prepared scatter_elements(const GenericDesc& desc, std::string& why) {
  Join join;
  if (!find_join(desc.attributes.text("reduction", "none"), join)) return refuse(why, "the reduction is unknown");
  const int64_t axis = resolve_axis(desc.attributes.integer("axis", 0), desc.inputs[0].shape.rank());
  if (axis < 0 || desc.inputs[1].shape.rank() != desc.inputs[0].shape.rank())
    return refuse(why, "axis or rank of the indices does not fit");
  if (!is_index_dtype(desc.inputs[1].dtype)) return refuse(why, "indices must be i32 or i64");
  return for_joined(desc, join, why, [axis, join]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [axis, join](Stream&, Inputs in, Outputs out) -> Fault { return run_elements<T>(static_cast<size_t>(axis), join, in, out); });
  });
}

Prepared scatter_nd(const GenericDesc& desc, std::string& why) {
  Join join;
  if (!find_join(desc.attributes.text("reduction", "none"), join)) return refuse(why, "the reduction is unknown");
  if (!is_index_dtype(desc.inputs[1].dtype)) return refuse(why, "indices must be i32 or i64");
  if (desc.inputs[1].shape.rank() == 0) return refuse(why, "indices must have rank 1 or more");
  return for_joined(desc, join, why, [join]<class T>(Element<T>) -> Prepared {
    return make_kernel([join](Stream&, Inputs in, Outputs out) -> Fault { return run_nd<T>(join, in, out); });
  });
}

Prepared tensor_scatter(const GenericDesc& desc, std::string& why) {
  const size_t rank = desc.inputs[0].shape.rank();
  const int64_t axis = resolve_axis(desc.attributes.integer("axis", -2), rank);
  if (axis < 1 || desc.inputs[1].shape.rank() != rank) return refuse(why, "axis or rank of the update does not fit");
  if (desc.has(2) && !is_index_dtype(desc.inputs[2].dtype)) return refuse(why, "write indices must be i64");
  const bool circular = desc.attributes.text("mode", "linear") == "circular";
  return for_joined(desc, {}, why, [axis, circular]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [axis, circular](Stream&, Inputs in, Outputs out) -> Fault { return run_cache<T>(static_cast<size_t>(axis), circular, in, out); });
  });
}

}  // namespace serin::kernels::ref
