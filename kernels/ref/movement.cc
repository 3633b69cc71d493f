// movement.cc: the kernels that move elements and never look into them, for every dtype: StridedCopy, Concat, Pad, Gather. (NonZero, which
// does look, is here because its result is positions.)

#include <cstring>
#include <vector>

#include "kernels/indexing.h"
#include "kernels/padding.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

namespace {

template <class F>
Prepared for_sizes(const OpDesc& desc, std::string& why, F&& make) {
  if (desc.inputs[0].dtype != desc.outputs[0].dtype) return refuse(why, "input and output differ in dtype");
  return ref::for_sizes(desc.outputs[0].dtype, why, std::forward<F>(make));
}

bool axis_fits(int64_t axis, const Shape& shape) { return axis >= 0 && axis < static_cast<int64_t>(shape.rank()); }

template <class T>
Fault run_strided_copy(const StridedCopy& op, Inputs in, Outputs out) {
  Strides strides{};
  std::copy(op.strides.begin(), op.strides.end(), strides.begin());
  const T* x = in[0].as<const T>() + op.offset;
  for_each<1>(out[0].shape, {strides}, [&](int64_t i, const auto& at) { out[0].as<T>()[i] = x[at[0]]; });
  return kOk;
}

template <class T>
Fault run_concat(const Concat& op, Inputs in, Outputs out) {
  const Shape& shape = out[0].shape;
  const auto axis = static_cast<size_t>(op.axis);
  const int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.rank());
  T* y = out[0].as<T>();
  for (int64_t o = 0; o < outer; ++o) {
    for (const TensorView& x : in) {
      const int64_t run = x.shape[axis] * inner;
      y = std::copy_n(x.as<const T>() + o * run, run, y);
    }
  }
  return kOk;
}

template <class T>
Fault run_pad(const Pad& op, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const Shape& y = out[0].shape;
  std::vector<PaddedAxis> axes;
  for (size_t axis = 0; axis < y.rank(); ++axis) {
    axes.emplace_back(op.begin[axis], op.end[axis], x[axis]);
    if (op.mode != Pad::Mode::kConstant && axes.back().size <= 0 && out[0].elements() != 0)
      return "axis " + std::to_string(axis) + " has no elements to repeat";
  }
  const T value = in.size() > 1 ? in[1].as<const T>()[0] : T{};
  const Strides strides = row_major_strides(x);
  for (int64_t i = 0; i < out[0].elements(); ++i) {
    int64_t offset = 0, rest = i;
    bool inside = true;
    for (size_t axis = y.rank(); axis-- > 0; rest /= y[axis]) {
      const int64_t source = axes[axis].source(rest % y[axis], op.mode);
      inside &= source >= 0;
      offset += source * strides[axis];
    }
    out[0].as<T>()[i] = inside ? in[0].as<const T>()[offset] : value;
  }
  return kOk;
}

template <class T, class I>
Fault run_gather(const Gather& op, Inputs in, Outputs out) {
  const Shape& shape = in[0].shape;
  const auto axis = static_cast<size_t>(op.axis);
  const int64_t outer = product(shape, 0, axis), size = shape[axis], inner = product(shape, axis + 1, shape.rank());
  const auto indices = in[1].span<const I>();
  T* y = out[0].as<T>();
  for (int64_t o = 0; o < outer; ++o) {
    for (const I index : indices) {
      const int64_t i = index < 0 ? index + size : index;
      if (i < 0 || i >= size) {
        return "index " + std::to_string(index) + " is out of range for axis " + std::to_string(op.axis) + " of size " +
               std::to_string(size);
      }
      y = std::copy_n(in[0].as<const T>() + (o * size + i) * inner, inner, y);
    }
  }
  return kOk;
}

/// Row r of y holds index r of each element that is not zero: [rank, count], so they are counted first.
template <class T>
Fault run_non_zero(Inputs in, Outputs out) {
  const auto is_set = [](T x) { return load(x) != compute_t<T>(0); };
  const auto x = in[0].span<const T>();
  const Shape& shape = in[0].shape;
  const int64_t count = std::count_if(x.begin(), x.end(), is_set);
  out[0].shape = Shape{static_cast<int64_t>(shape.rank()), count};
  int64_t* y = out[0].as<int64_t>();
  int64_t column = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!is_set(x[i])) continue;
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = shape.rank(); axis-- > 0; rest /= shape[axis]) y[static_cast<int64_t>(axis) * count + column] = rest % shape[axis];
    ++column;
  }
  return kOk;
}

}  // namespace

Prepared strided_copy(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  const StridedCopy& op = std::get<StridedCopy>(desc.op);
  if (op.strides.size() != desc.outputs[0].shape.rank()) return refuse(why, "one stride is needed for each output axis");
  return for_sizes(desc, why, [&op]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_strided_copy<T>(op, in, out); });
  });
}

Prepared concat(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.empty() || !has_operands(desc, desc.inputs.size(), why)) return refuse(why, "nothing to concatenate");
  const Concat op = std::get<Concat>(desc.op);
  if (!one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  if (!axis_fits(op.axis, desc.outputs[0].shape)) return refuse(why, "axis out of range");
  return for_sizes(desc, why, [op]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_concat<T>(op, in, out); });
  });
}

Prepared pad(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Pad& op = std::get<Pad>(desc.op);
  if (desc.inputs.size() != 2 && !has_operands(desc, 1, why)) return nullptr;
  if (!one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  const size_t rank = desc.inputs[0].shape.rank();
  if (op.begin.size() != rank || op.end.size() != rank) return refuse(why, "pads do not match the input's rank");
  return for_sizes(desc, why, [&op]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_pad<T>(op, in, out); });
  });
}

Prepared gather(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 2, why)) return nullptr;
  const Gather op = std::get<Gather>(desc.op);
  if (!axis_fits(op.axis, desc.inputs[0].shape)) return refuse(why, "axis out of range");
  const DType index = desc.inputs[1].dtype;
  if (index != DType::kInt32 && index != DType::kInt64) return refuse(why, "indices must be i32 or i64");
  return for_sizes(desc, why, [op, index]<class T>(Element<T>) -> Prepared {
    return make_kernel([op, index](Stream&, Inputs in, Outputs out) -> Fault {
      return index == DType::kInt32 ? run_gather<T, int32_t>(op, in, out) : run_gather<T, int64_t>(op, in, out);
    });
  });
}

/// There is only one memory here.
Prepared transfer(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
    std::memcpy(out[0].data, in[0].data, in[0].bytes());
    return kOk;
  });
}

Prepared non_zero(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  if (desc.outputs[0].dtype != DType::kInt64) return refuse(why, "output must be i64");
  return visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>)
      return refuse_dtype(why, desc.inputs[0].dtype);
    else
      return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault { return run_non_zero<T>(in, out); });
  });
}

}  // namespace serin::kernels::ref
