// index.h: Indices that come as operands, and reports of indices out of range.
//
// Such an index cannot end a run at once, because the host has continued. The kernel writes it to the stream's fault and continues with
// another index. The engine reads the fault when the run is over (kernels/backend.h, Stream::fault).
//
//   const int64_t row = places.resolve(indices[i], size, axis);      // in a kernel; -1 if there is no such element
//   return make_indexed(x.shape, make_kernel(...));                  // reports "index 12 is out of range for axis 0 of size 10"
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/launch.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

/// The place to which a kernel reports an index. A fault's detail is the index, cut to 59 bits, and its axis.
struct IndexFaults {
  DeviceFault* fault = nullptr;
  int32_t step = 0;

  explicit IndexFaults(const Stream& stream) : fault(stream.fault), step(stream.step) {}

  /// The first report of a run is kept: one that many threads write at once could be of two of them.
  __device__ void report(int64_t index, int axis) const {
    constexpr int64_t kMost = int64_t{1} << 58;
    if (fault && atomicCAS(&fault->step, 0, step) == 0)
      fault->detail = (index < -kMost ? -kMost : index > kMost ? kMost : index) * 16 + axis;
  }
  /// An index counted from the end if negative; -1 and a report if it is out of range.
  __device__ int64_t resolve(int64_t index, int64_t size, int axis) const {
    const int64_t place = index < 0 ? index + size : index;
    if (place >= 0 && place < size) return place;
    report(index, axis);
    return -1;
  }
};

/// Tuples of indices that name slices of the data [before..., d0, d1, ..., slice...].
struct IndexTuples {
  int axes = 0, first_axis = 0;  ///< the length of a tuple; its first axis in the data
  int64_t dims[Shape::kMaxRank] = {}, strides[Shape::kMaxRank] = {};

  IndexTuples() = default;
  IndexTuples(const Shape& data, size_t first, size_t count) : axes(static_cast<int>(count)), first_axis(static_cast<int>(first)) {
    const Strides all = row_major_strides(data);
    for (size_t k = 0; k < count; ++k) dims[k] = data[first + k], strides[k] = all[first + k];
  }
  /// The start of a tuple's slice; -1 and a report if it is out of range.
  template <class I>
  __device__ int64_t offset(const I* tuple, const IndexFaults& faults) const {
    int64_t offset = 0;
    bool inside = true;
    for (int k = 0; k < axes; ++k) {
      const int64_t at = faults.resolve(tuple[k], dims[k], first_axis + k);
      inside = inside && at >= 0;
      offset += at * strides[k];
    }
    return inside ? offset : -1;
  }
};

/// `kernel` reports indices along the axes of `x`.
inline std::unique_ptr<Kernel> make_indexed(const Shape& x, std::unique_ptr<Kernel> kernel) {
  class IndexedKernel final : public Kernel {
   public:
    IndexedKernel(const Shape& shape, std::unique_ptr<Kernel> kernel) : shape_(shape), kernel_(std::move(kernel)) {}
    Fault run(Stream& stream, Inputs in, Outputs out) const override { return kernel_->run(stream, in, out); }
    size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
    uint32_t packed_inputs() const override { return kernel_->packed_inputs(); }
    std::string explain(int64_t detail) const override {
      const auto axis = static_cast<size_t>(detail & 15);
      return *ref::out_of_range(detail >> 4, axis, shape_[axis]);
    }

   private:
    const Shape shape_;
    const std::unique_ptr<Kernel> kernel_;
  };
  if (!kernel) return nullptr;
  return std::make_unique<IndexedKernel>(x, std::move(kernel));
}

/// Indices of both types: make(Element<int32_t>{}) or make(Element<int64_t>{}).
template <class F>
std::unique_ptr<Kernel> for_indices(DType dtype, std::string& why, F&& make) {
  if (dtype == DType::kInt32) return make(ref::Element<int32_t>{});
  if (dtype == DType::kInt64) return make(ref::Element<int64_t>{});
  return refuse(why, "indices must be i32 or i64");
}

}  // namespace serin::kernels::cuda
