// gather_elements.cc: GatherElements, row by row of the indices. An index out of range is noticed without a branch and named at the end.

#include "kernels/cpu/generic.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// y[i] = x[i * along + index[i] * step] for i < n; whether all indices were in range.
template <class T, class I>
bool gather_row(const T* x, int64_t along, int64_t step, int64_t size, const I* index, T* y, int64_t n) {
  uint64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t given = index[i];
    const auto place = static_cast<uint64_t>(given + (given < 0 ? size : 0));
    const bool inside = place < static_cast<uint64_t>(size);
    wrong |= inside ? 0 : 1;
    y[i] = x[i * along + static_cast<int64_t>(inside ? place : 0) * step];
  }
  return wrong == 0;
}

template <class I>
Fault name_wrong(const I* indices, int64_t n, size_t axis, int64_t size) {
  for (int64_t i = 0; i < n; ++i) {
    if (indices[i] < -size || indices[i] >= size)
      return "index " + std::to_string(indices[i]) + " is out of range for axis " + std::to_string(axis) + " of size " +
             std::to_string(size);
  }
  return kOk;
}

template <class T, class I>
Fault run(size_t axis, const Stream& stream, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const Shape& shape = in[1].shape;
  for (size_t other = 0; other < shape.rank(); ++other) {
    if (other != axis && shape[other] > x[other]) return "indices of shape " + shape.str() + " reach over the data of shape " + x.str();
  }
  const I* const indices = in[1].as<const I>();
  if (shape.elements() == 0) return kOk;
  if (x[axis] == 0) return name_wrong(indices, shape.elements(), axis, 0);
  Strides strides = row_major_strides(x);
  const int64_t step = strides[axis], size = x[axis], row = shape.back(), along = axis + 1 == shape.rank() ? 0 : 1;
  strides[axis] = 0;
  Shape rows = shape;
  rows[shape.rank() - 1] = 1;
  std::atomic<bool> all_inside = true;
  parallel_rows(stream, rows.elements(), row, [&](int64_t begin, int64_t end) {
    for_each_in<1>(rows, {strides}, begin, end, [&](int64_t r, const auto& at) {
      const T* from = in[0].as<const T>() + at[0];
      if (!gather_row(from, along, step, size, indices + r * row, out[0].as<T>() + r * row, row)) all_inside = false;
    });
  });
  return all_inside ? Fault() : name_wrong(indices, shape.elements(), axis, size);
}

template <class T>
Prepared make(size_t axis, DType indices) {
  return make_kernel([axis, indices](Stream& stream, Inputs in, Outputs out) -> Fault {
    return indices == DType::kInt32 ? run<T, int32_t>(axis, stream, in, out) : run<T, int64_t>(axis, stream, in, out);
  });
}

}  // namespace

Prepared gather_elements(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "GatherElements") return refuse(why, "not GatherElements");
  if (desc.inputs.size() != 2 || desc.inputs[0].dtype != desc.outputs[0].dtype) return refuse(why, "operands differ in dtype");
  const DType indices = desc.inputs[1].dtype;
  if (indices != DType::kInt32 && indices != DType::kInt64) return refuse(why, "indices must be i32 or i64");
  const auto rank = static_cast<int64_t>(desc.inputs[0].shape.rank());
  const int64_t given = op.attributes.integer("axis", 0), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank || static_cast<int64_t>(desc.inputs[1].shape.rank()) != rank)
    return refuse(why, "axis or rank of the indices does not fit");
  switch (dtype_size(desc.inputs[0].dtype)) {
    case 4: return make<uint32_t>(static_cast<size_t>(axis), indices);
    case 8: return make<uint64_t>(static_cast<size_t>(axis), indices);
    default: return refuse(why, "only elements of four or eight bytes");
  }
}

}  // namespace serin::kernels::cpu
