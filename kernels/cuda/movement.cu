// movement.cu: Concat, Pad, Gather: elements that are moved and never looked at, so only their size counts.
//
// An index out of range cannot end a run at once: the kernel writes it to the stream's fault and reads element 0 instead; the engine looks at the fault
// when the run is over (kernels/backend.h, Stream::fault).

#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;
using ref::visit_size;

constexpr int kThreads = 256;

/// Only strings have no size of their own, and none come here.
template <class F>
Prepared for_sizes(DType dtype, std::string& why, F&& make) {
  return visit_size(dtype, [&]<class T>(Element<T> element) -> Prepared {
    if constexpr (std::is_integral_v<T>)
      return make(element);
    else
      return ref::refuse_dtype(why, dtype);
  });
}

/// Rows of `run` elements, side by side in x, `pitch` apart in y.
template <class T>
__global__ void copy_runs(const T* x, T* y, int64_t run, int64_t pitch, int64_t elements) {
  for (int64_t i = first_element(); i < elements; i += element_step()) y[i / run * pitch + i % run] = x[i];
}

/// kernels/ref/movement.cc has the same for the host: negative pads crop first, then what is left is padded.
struct PaddedAxis {
  int64_t begin = 0, crop = 0, size = 0;

  __device__ int64_t source(int64_t i, Pad::Mode mode) const {
    i -= begin;
    if (i >= 0 && i < size) return i + crop;
    if (mode == Pad::Mode::kConstant) return -1;
    if (mode == Pad::Mode::kEdge || size == 1) return (i < 0 ? 0 : size - 1) + crop;
    const int64_t period = mode == Pad::Mode::kWrap ? size : 2 * (size - 1);
    const int64_t folded = (i % period + period) % period;
    return (folded < size ? folded : period - folded) + crop;
  }
};

struct PaddedSpace {
  int rank = 0;
  int64_t elements = 0;
  Pad::Mode mode = Pad::Mode::kConstant;
  PaddedAxis axes[Shape::kMaxRank];
  int64_t dims[Shape::kMaxRank] = {}, strides[Shape::kMaxRank] = {};
};

template <class T>
__global__ void pad_elements(PaddedSpace space, const T* x, const T* value, T* y) {
  for (int64_t i = first_element(); i < space.elements; i += element_step()) {
    int64_t rest = i, offset = 0;
    bool inside = true;
    for (int axis = space.rank - 1; axis >= 0; --axis) {
      const int64_t source = space.axes[axis].source(rest % space.dims[axis], space.mode);
      inside = inside && source >= 0;
      offset += source * space.strides[axis];
      rest /= space.dims[axis];
    }
    y[i] = inside ? x[offset] : value ? *value : T{};
  }
}

template <class T, class I>
__global__ void gather_runs(const T* x, const I* indices, T* y, int64_t count, int64_t size, int64_t inner, int64_t elements,
                            DeviceFault* fault, int step) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t row = i / inner, o = row / count, given = indices[row % count];
    int64_t index = given < 0 ? given + size : given;
    if (index < 0 || index >= size) {
      if (fault) *fault = {given, step};
      index = 0;
    }
    y[i] = size == 0 ? T{} : x[(o * size + index) * inner + i % inner];
  }
}

class GatherKernel final : public Kernel {
 public:
  using Run = Fault (*)(const GatherKernel&, const Stream&, Inputs, Outputs);
  GatherKernel(Run typed, int64_t axis, const Shape& x, const Shape& indices)
      : outer_(product(x, 0, static_cast<size_t>(axis))),
        size_(x[static_cast<size_t>(axis)]),
        inner_(product(x, static_cast<size_t>(axis) + 1, x.rank())),
        count_(indices.elements()),
        axis_(axis),
        run_(typed) {}

  Fault run(Stream& stream, Inputs in, Outputs out) const override { return run_(*this, stream, in, out); }
  std::string explain(int64_t index) const override {
    return "index " + std::to_string(index) + " is out of range for axis " + std::to_string(axis_) + " of size " + std::to_string(size_);
  }

  template <class T, class I>
  static Fault run_as(const GatherKernel& self, const Stream& stream, Inputs in, Outputs out) {
    const int64_t elements = self.outer_ * self.count_ * self.inner_;
    return launch(stream, {blocks_for(elements, kThreads), kThreads}, gather_runs<T, I>, in[0].as<const T>(), in[1].as<const I>(),
                  out[0].as<T>(), self.count_, self.size_, self.inner_, elements, stream.fault, stream.step);
  }

 private:
  const int64_t outer_, size_, inner_, count_, axis_;
  const Run run_;
};

}  // namespace

Prepared prepare_concat(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto axis = static_cast<size_t>(std::get<Concat>(desc.op).axis);
  const Shape& shape = desc.outputs[0].shape;
  const int64_t inner = product(shape, axis + 1, shape.rank()), pitch = shape[axis] * inner;
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([axis, inner, pitch](Stream& stream, Inputs in, Outputs out) -> Fault {
      T* y = out[0].as<T>();
      for (const TensorView& x : in) {
        const int64_t run = x.shape[axis] * inner;
        if (Fault fault =
                launch(stream, {blocks_for(x.elements(), kThreads), kThreads}, copy_runs<T>, x.as<const T>(), y, run, pitch, x.elements()))
          return fault;
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
    PaddedAxis& padded = space.axes[axis];
    padded.begin = std::max<int64_t>(op.begin[axis], 0);
    padded.crop = std::max<int64_t>(-op.begin[axis], 0);
    padded.size = x[axis] - padded.crop - std::max<int64_t>(-op.end[axis], 0);
    if (op.mode != Pad::Mode::kConstant && padded.size <= 0 && space.elements != 0)
      return refuse(why, "axis " + std::to_string(axis) + " has no elements to repeat");
    space.dims[axis] = y[axis];
    space.strides[axis] = strides[axis];
  }
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([space](Stream& stream, Inputs in, Outputs out) -> Fault {
      const T* const value = in.size() > 1 ? in[1].as<const T>() : nullptr;
      return launch(stream, {blocks_for(space.elements, kThreads), kThreads}, pad_elements<T>, space, in[0].as<const T>(), value,
                    out[0].as<T>());
    });
  });
}

Prepared prepare_gather(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Gather op = std::get<Gather>(desc.op);
  const DType index = desc.inputs[1].dtype;
  if (index != DType::kInt32 && index != DType::kInt64) return refuse(why, "indices must be i32 or i64");
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    const GatherKernel::Run run = index == DType::kInt32 ? GatherKernel::run_as<T, int32_t> : GatherKernel::run_as<T, int64_t>;
    return std::make_unique<GatherKernel>(run, op.axis, desc.inputs[0].shape, desc.inputs[1].shape);
  });
}

}  // namespace serin::kernels::cuda
