// select.cc: Where, of elements of four bytes: axes are collapsed, so that the innermost one is as long as the operands' broadcasting allows, and each
// operand stands still or runs along it.

#include <algorithm>

#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

void run(const ImageLoops& loops, const Stream& stream, Inputs in, const TensorView& y) {
  const Collapsed<3> space = collapse<3>(
      y.shape, {broadcast_strides(in[0].shape, y.shape), broadcast_strides(in[1].shape, y.shape), broadcast_strides(in[2].shape, y.shape)});
  const size_t last = space.shape.rank() - 1;
  const int64_t n = space.shape[last];
  Shape outer = space.shape;
  outer[last] = 1;
  // Split along the first axis: each task walks the rest by itself.
  const int64_t first = last > 0 ? outer[0] : 1, tasks = stream.workers ? std::min<int64_t>(first, 16) : 1;
  parallel_for(stream, tasks, [&](int64_t task, int) {
    const int64_t begin = first * task / tasks, end = first * (task + 1) / tasks;
    Shape part = outer;
    if (last > 0) part[0] = end - begin;
    const int64_t rows_before = last > 0 ? begin * (outer.elements() / std::max<int64_t>(1, first)) : 0;
    const auto start = [&](size_t k) { return last > 0 ? begin * space.strides[k][0] : 0; };
    for_each<3>(part, space.strides, [&](int64_t i, const auto& at) {
      loops.select(in[0].as<const bool>() + start(0) + at[0], space.strides[0][last], in[1].as<const float>() + start(1) + at[1],
                   space.strides[1][last], in[2].as<const float>() + start(2) + at[2], space.strides[2][last],
                   y.as<float>() + (rows_before + i) * n, n);
    });
  });
}

}  // namespace

Prepared select(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 3 || desc.inputs[0].dtype != DType::kBool) return refuse(why, "the condition must be bool");
  const DType dtype = desc.outputs[0].dtype;
  if (desc.inputs[1].dtype != dtype || desc.inputs[2].dtype != dtype || dtype_size(dtype) != 4)
    return refuse(why, "only elements of four bytes");
  const ImageLoops& loops = *simd.image;
  return make_kernel([&loops](Stream& stream, Inputs in, Outputs out) -> Fault {
    if (out[0].elements() != 0) run(loops, stream, in, out[0]);
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
