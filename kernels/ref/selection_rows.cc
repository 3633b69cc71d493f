// selection_rows.cc: Compress keeps the rows whose condition is set, OneHot writes one "on" for each index, ReverseSequence turns the beginning of each
// sequence around, Trilu keeps a triangle.

#include <algorithm>
#include <optional>

#include "kernels/functors.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/selection.h"

namespace serin::kernels::ref {

namespace {

/// The condition may be shorter than the axis: what it does not reach is left out.
template <class T>
Fault run_compress(const std::optional<size_t>& axis, Inputs in, Outputs out) {
  const Shape flat{in[0].elements()};
  const Shape& shape = axis ? in[0].shape : flat;
  const AxisView view(shape, axis.value_or(0));
  const bool* keep = in[1].as<const bool>();
  const int64_t given = in[1].elements();
  for (int64_t i = view.size; i < given; ++i) {
    if (keep[i]) return out_of_range(i, axis.value_or(0), view.size);
  }
  T* y = out[0].as<T>();
  int64_t count = 0;
  for (int64_t i = 0; i < std::min(given, view.size); ++i) count += keep[i];
  out[0].shape = shape;
  out[0].shape[axis.value_or(0)] = count;
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < std::min(given, view.size); ++i) {
      if (keep[i]) y = std::copy_n(in[0].as<const T>() + view.at(o, i, 0), view.inner, y);
    }
  }
  return kOk;
}

/// Element i of a numeric operand as an integer, cut toward zero.
int64_t whole_number(const TensorView& x, int64_t i) {
  return visit_dtype(x.dtype, [&]<class T>(Element<T>) -> int64_t {
    if constexpr (std::is_void_v<T>)
      return 0;
    else
      return kernels::cast<int64_t>(x.as<const T>()[i]);
  });
}

/// Indices outside of [-depth, depth) switch nothing on.
template <class T>
Fault run_one_hot(size_t axis, Inputs in, Outputs out) {
  if (in[1].elements() != 1 || in[2].elements() != 2) return "depth must be one number and values must be two";
  const int64_t depth = whole_number(in[1], 0);
  if (depth < 0 || (out[0].data && depth != out[0].shape[axis])) return "depth is " + std::to_string(depth);
  out[0].shape[axis] = depth;
  if (!out[0].data) return kOk;  // asked for the size only
  const AxisView view(out[0].shape, axis);
  const T off = in[2].as<const T>()[0], on = in[2].as<const T>()[1];
  std::fill_n(out[0].as<T>(), out[0].elements(), off);
  for (int64_t i = 0; i < in[0].elements(); ++i) {
    const int64_t index = resolve_index(whole_number(in[0], i), depth);
    if (index >= 0) out[0].as<T>()[view.at(i / view.inner, index, i % view.inner)] = on;
  }
  return kOk;
}

template <class T>
Fault run_reverse(size_t batch_axis, size_t time_axis, Inputs in, Outputs out) {
  const Shape& shape = in[0].shape;
  const Strides strides = row_major_strides(shape);
  const int64_t steps = shape[time_axis];
  if (in[1].elements() != shape[batch_axis])
    return std::to_string(in[1].elements()) + " lengths are given for a batch of " + std::to_string(shape[batch_axis]);
  for (int64_t i = 0; i < in[1].elements(); ++i) {
    const int64_t length = index_at(in[1], i);
    if (length < 0 || length > steps)
      return "length " + std::to_string(length) + " of sequence " + std::to_string(i) + " is not within 0 to " + std::to_string(steps);
  }
  const int64_t run = strides[std::max(batch_axis, time_axis)];  // elements of one sequence and one step that lie beside each other
  for (int64_t i = 0; i < in[0].elements(); i += run) {
    const int64_t length = index_at(in[1], i / strides[batch_axis] % shape[batch_axis]), step = i / strides[time_axis] % steps;
    const int64_t source = step < length ? length - 1 - step : step;
    std::copy_n(in[0].as<const T>() + i + (source - step) * strides[time_axis], run, out[0].as<T>() + i);
  }
  return kOk;
}

template <class T>
Fault run_trilu(bool upper, Inputs in, Outputs out) {
  const Shape& shape = in[0].shape;
  const int64_t rows = shape[shape.rank() - 2], columns = shape.back();
  int64_t k = 0;
  if (const TensorView* diagonal = operand(in, 1)) {
    if (diagonal->elements() != 1) return "k has " + std::to_string(diagonal->elements()) + " elements, it must be one number";
    k = std::clamp(index_at(*diagonal, 0), -rows - 1, columns + 1);
  }
  for (int64_t row = 0; row < product(shape, 0, shape.rank() - 1); ++row) {
    const T* x = in[0].as<const T>() + row * columns;
    T* y = out[0].as<T>() + row * columns;
    const int64_t split = std::clamp<int64_t>(row % rows + k + !upper, 0, columns);  // upper: kept from here on; lower: kept up to here
    const int64_t begin = upper ? split : 0, end = upper ? columns : split;
    std::fill(y, y + begin, T{});
    std::copy(x + begin, x + end, y + begin);
    std::fill(y + end, y + columns, T{});
  }
  return kOk;
}

}  // namespace

Prepared compress(const GenericDesc& desc, std::string& why) {
  std::optional<size_t> axis;
  if (desc.attributes.has("axis")) {
    const int64_t resolved = resolve_axis(desc.attributes.integer("axis", 0), desc.inputs[0].shape.rank());
    if (resolved < 0) return refuse(why, "axis out of range");
    axis = static_cast<size_t>(resolved);
  }
  if (desc.inputs[1].dtype != DType::kBool) return refuse(why, "the condition must be bool");
  return for_sizes(desc.inputs[0].dtype, why, [axis]<class T>(Element<T>) -> Prepared {
    return make_kernel([axis](Stream&, Inputs in, Outputs out) -> Fault { return run_compress<T>(axis, in, out); });
  });
}

Prepared one_hot(const GenericDesc& desc, std::string& why) {
  const int64_t axis = resolve_axis(desc.attributes.integer("axis", -1), desc.inputs[0].shape.rank() + 1);
  if (axis < 0) return refuse(why, "axis out of range");
  return for_sizes(desc.inputs[2].dtype, why, [axis]<class T>(Element<T>) -> Prepared {
    return make_kernel([axis](Stream&, Inputs in, Outputs out) -> Fault { return run_one_hot<T>(static_cast<size_t>(axis), in, out); });
  });
}

Prepared reverse_sequence(const GenericDesc& desc, std::string& why) {
  const size_t rank = desc.inputs[0].shape.rank();
  const int64_t batch = resolve_axis(desc.attributes.integer("batch_axis", 1), rank);
  const int64_t time = resolve_axis(desc.attributes.integer("time_axis", 0), rank);
  if (batch < 0 || time < 0 || batch == time) return refuse(why, "batch_axis and time_axis do not fit");
  if (!is_index_dtype(desc.inputs[1].dtype)) return refuse(why, "lengths must be i64");
  return for_sizes(desc.inputs[0].dtype, why, [batch, time]<class T>(Element<T>) -> Prepared {
    return make_kernel([batch, time](Stream&, Inputs in, Outputs out) -> Fault {
      return run_reverse<T>(static_cast<size_t>(batch), static_cast<size_t>(time), in, out);
    });
  });
}

Prepared trilu(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].shape.rank() < 2) return refuse(why, "the input must have rank 2 or more");
  if (desc.has(1) && !is_index_dtype(desc.inputs[1].dtype)) return refuse(why, "k must be i64");
  const bool upper = desc.attributes.integer("upper", 1) != 0;
  return for_sizes(desc.inputs[0].dtype, why, [upper]<class T>(Element<T>) -> Prepared {
    return make_kernel([upper](Stream&, Inputs in, Outputs out) -> Fault { return run_trilu<T>(upper, in, out); });
  });
}

}  // namespace serin::kernels::ref
