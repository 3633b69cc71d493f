// movement.cu: Concat, Pad, OneHot, ReverseSequence, Trilu: a thread for each element of the result, which comes from one place or from none.

#include "kernels/padding.h"

#include "kernels/cuda/index.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"

namespace serin::kernels::cuda {

namespace {

using ref::AxisView;
using ref::Element;

/// Rows of `run` elements, side by side in x, `pitch` apart in y.
template <class T>
__global__ void copy_runs(const T* x, T* y, Division run, int64_t pitch, int64_t elements) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t row = run.quotient(i);
    y[row * pitch + i - row * run.d] = x[i];
  }
}

struct PaddedSpace {
  int rank = 0;
  int64_t elements = 0;
  Pad::Mode mode = Pad::Mode::kConstant;
  PaddedAxis axes[Shape::kMaxRank];
  Division dims[Shape::kMaxRank];
  int64_t strides[Shape::kMaxRank] = {};
};

template <class T>
__global__ void pad_elements(PaddedSpace space, const T* x, const T* value, T* y) {
  for (int64_t i = first_element(); i < space.elements; i += element_step()) {
    int64_t rest = i, offset = 0;
    bool inside = true;
    for (int axis = space.rank - 1; axis >= 0; --axis) {
      const int64_t next = space.dims[axis].quotient(rest);
      const int64_t source = space.axes[axis].source(rest - next * space.dims[axis].d, space.mode);
      inside = inside && source >= 0;
      offset += source * space.strides[axis];
      rest = next;
    }
    y[i] = inside ? x[offset] : value ? *value : T{};
  }
}

/// y [outer, depth, inner]: values[1] where the index is this one, values[0] elsewhere. Indices outside of [-depth, depth) switch nothing on.
template <class T, class I>
__global__ void switch_on(AxisView axis, Division inner, Division depth, int64_t elements, const I* indices, const T* values, T* y) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t row = inner.quotient(i), outer = depth.quotient(row), at = row - outer * axis.size;
    const auto index = cast<int64_t>(indices[outer * axis.inner + i - row * axis.inner]);
    y[i] = values[index == at || index + axis.size == at ? 1 : 0];
  }
}

/// The first `lengths[b]` steps of sequence b in reverse. Strides of the two axes; steps and sequences.
struct Reversal {
  Division step_stride, batch_stride, steps, batch;
  int64_t elements;
};

template <class T>
__global__ void reverse_steps(Reversal r, const T* x, const int64_t* lengths, T* y, IndexFaults faults) {
  for (int64_t i = first_element(); i < r.elements; i += element_step()) {
    const int64_t b = r.batch.remainder(r.batch_stride.quotient(i)), step = r.steps.remainder(r.step_stride.quotient(i));
    const int64_t length = lengths[b];
    if (length < 0 || length > r.steps.d) {
      faults.report(length, 0);
      continue;
    }
    const int64_t source = step < length ? length - 1 - step : step;
    y[i] = x[i + (source - step) * r.step_stride.d];
  }
}

/// `k`: the diagonal, in the device's memory; null: 0.
template <class T>
__global__ void keep_triangle(bool upper, Division rows, Division columns, int64_t elements, const T* x, const int64_t* k, T* y) {
  const int64_t limit = rows.d + columns.d + 1, given = k ? *k : 0;
  const int64_t diagonal = given < -limit ? -limit : given > limit ? limit : given;
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t line = columns.quotient(i), column = i - line * columns.d, distance = column - rows.remainder(line) - diagonal;
    y[i] = (upper ? distance >= 0 : distance <= 0) ? x[i] : T{};
  }
}

}  // namespace

Prepared prepare_concat(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto axis = static_cast<size_t>(std::get<Concat>(desc.op).axis);
  const Shape& shape = desc.outputs[0].shape;
  const int64_t inner = product(shape, axis + 1, shape.rank()), pitch = shape[axis] * inner;
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([axis, inner, pitch](Stream& stream, Inputs in, Outputs out) -> Fault {
      T* y = out[0].as<T>();
      for (const TensorView& x : in) {
        const int64_t run = x.shape[axis] * inner, rows = run == 0 ? 0 : x.elements() / run;
        const Fault fault = in_pieces<T>({run, pitch}, {x.data, y}, [&]<class U>(Element<U>, int64_t of_piece) {
          const int64_t elements = rows * run / of_piece;
          return launch(stream, {blocks_for(elements, kBlockThreads), kBlockThreads}, copy_runs<U>, x.as<const U>(),
                        reinterpret_cast<U*>(y), Division(run / of_piece, elements), pitch / of_piece, elements);
        });
        if (fault) return fault;
        y += run;
      }
      return kOk;
    });
  });
}

Prepared prepare_pad(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Pad>(desc.op);
  const Shape &x = desc.inputs[0].shape, &y = desc.outputs[0].shape;
  if (op.begin.size() != x.rank() || op.end.size() != x.rank()) return refuse(why, "pads do not match the input's rank");
  PaddedSpace space;
  space.rank = static_cast<int>(y.rank());
  space.elements = y.elements();
  space.mode = op.mode;
  const Strides strides = row_major_strides(x);
  for (size_t axis = 0; axis < y.rank(); ++axis) {
    space.axes[axis] = PaddedAxis(op.begin[axis], op.end[axis], x[axis]);
    if (op.mode != Pad::Mode::kConstant && space.axes[axis].size <= 0 && space.elements != 0)
      return refuse(why, "axis " + std::to_string(axis) + " has no elements to repeat");
    space.dims[axis] = Division(y[axis], space.elements);
    space.strides[axis] = strides[axis];
  }
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([space](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(space.elements, kBlockThreads), kBlockThreads}, pad_elements<T>, space, in[0].as<const T>(),
                    operand_as<T>(in, 1), out[0].as<T>());
    });
  });
}

Prepared prepare_one_hot(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape& y = desc.outputs[0].shape;
  const int64_t axis = ref::resolve_axis(std::get<Generic>(desc.op).attributes.integer("axis", -1), y.rank());
  if (axis < 0 || desc.inputs[2].shape.elements() != 2) return refuse(why, "axis out of range, or values are not two");
  const AxisView view(y, static_cast<size_t>(axis));
  const int64_t elements = y.elements();
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return ref::for_numbers(desc.inputs[0].dtype, why, [&]<class I>(Element<I>) -> Prepared {
      return make_kernel(
          [=](Stream& stream, Inputs in, Outputs out) -> Fault {
            return launch(stream, {blocks_for(elements, kBlockThreads), kBlockThreads}, switch_on<T, I>, view,
                          Division(view.inner, elements), Division(view.size, elements), elements, in[0].as<const I>(), in[2].as<const T>(),
                          out[0].as<T>());
          },
          {.packed_inputs = 0b010});
    });
  });
}

Prepared prepare_reverse_sequence(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const int64_t batch = ref::resolve_axis(attributes.integer("batch_axis", 1), x.rank());
  const int64_t time = ref::resolve_axis(attributes.integer("time_axis", 0), x.rank());
  if (batch < 0 || time < 0 || batch == time) return refuse(why, "batch_axis and time_axis do not fit");
  const auto b = static_cast<size_t>(batch), t = static_cast<size_t>(time);
  if (desc.inputs[1].dtype != DType::kInt64 || desc.inputs[1].shape.elements() != x[b])
    return refuse(why, "there must be one length (i64) for each of the batch");
  const Strides strides = row_major_strides(x);
  const int64_t n = x.elements();
  const Reversal reversal{Division(strides[t], n), Division(strides[b], n), Division(x[t], n), Division(x[b], n), n};
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_indexed(Shape{x[t]}, make_kernel([reversal](Stream& stream, Inputs in, Outputs out) -> Fault {
                          return launch(stream, {blocks_for(reversal.elements, kBlockThreads), kBlockThreads}, reverse_steps<T>, reversal,
                                        in[0].as<const T>(), in[1].as<const int64_t>(), out[0].as<T>(), IndexFaults(stream));
                        }));
  });
}

Prepared prepare_trilu(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() < 2) return refuse(why, "the input must have rank 2 or more");
  const bool diagonal = has_operand(desc, 1);
  if (diagonal && (desc.inputs[1].dtype != DType::kInt64 || desc.inputs[1].shape.elements() != 1)) return refuse(why, "k must be one i64");
  const bool upper = std::get<Generic>(desc.op).attributes.integer("upper", 1) != 0;
  const int64_t elements = x.elements();
  const Division rows(x[x.rank() - 2], elements), columns(x.back(), elements);
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(elements, kBlockThreads), kBlockThreads}, keep_triangle<T>, upper, rows, columns, elements,
                    in[0].as<const T>(), diagonal ? in[1].as<const int64_t>() : nullptr, out[0].as<T>());
    });
  });
}

}  // namespace serin::kernels::cuda
