// select.cc: Where. Axes are collapsed, so that the innermost one is as long as broadcasting allows.
// Along it each operand is either one value or a run.

#include "kernels/cpu/image.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

template <class T>
using SelectLoop = void (*)(const bool* condition, int64_t c_step, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n);

/// For what the loops of simd/ lack. Both sides are read, so that there is no branch.
template <class T>
void select_plain(const bool* condition, int64_t c_step, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  if (c_step == 1 && a_step == 1 && b_step == 1) {
    for (int64_t i = 0; i < n; ++i) {
      const T mask = static_cast<T>(-static_cast<T>(condition[i]));
      y[i] = static_cast<T>((a[i] & mask) | (b[i] & ~mask));
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const T left = a[i * a_step], right = b[i * b_step];
    y[i] = condition[i * c_step] ? left : right;
  }
}

template <class T>
Prepared make_select(SelectLoop<T> loop) {
  return make_kernel([loop](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& y = out[0].shape;
    const Collapsed<3> space =
        collapse<3>(y, {broadcast_strides(in[0].shape, y), broadcast_strides(in[1].shape, y), broadcast_strides(in[2].shape, y)});
    const size_t last = space.shape.rank() - 1;
    const int64_t n = space.shape[last], c_step = space.strides[0][last], a_step = space.strides[1][last], b_step = space.strides[2][last];
    Shape outer = space.shape;
    outer[last] = 1;
    const int64_t rows = outer.elements();
    const auto run = [&](int64_t row, const auto& at, int64_t begin, int64_t end) {
      loop(in[0].as<const bool>() + at[0] + begin * c_step, c_step, in[1].as<const T>() + at[1] + begin * a_step, a_step,
           in[2].as<const T>() + at[2] + begin * b_step, b_step, out[0].as<T>() + row * n + begin, end - begin);
    };
    if (rows == 1) {
      parallel_ranges(stream, n, kElements, [&](int64_t begin, int64_t end) { run(0, std::array<int64_t, 3>{}, begin, end); });
    } else {
      parallel_rows(stream, rows, n, [&](int64_t begin, int64_t end) {
        for_each_in<3>(outer, space.strides, begin, end, [&](int64_t row, const auto& at) { run(row, at, 0, n); });
      });
    }
    return kOk;
  });
}

}  // namespace

Prepared select(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 3 || desc.inputs[0].dtype != DType::kBool) return refuse(why, "the condition must be bool");
  const DType dtype = desc.outputs[0].dtype;
  if (desc.inputs[1].dtype != dtype || desc.inputs[2].dtype != dtype) return refuse(why, "operands differ in dtype");
  if (dtype_size(dtype) == 4) return make_select<float>(simd.image->select);
  if (dtype_size(dtype) == 8) return make_select<int64_t>(simd.image->select_wide);
  switch (dtype) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kUInt8: return make_select<uint8_t>(select_plain<uint8_t>);
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16: return make_select<uint16_t>(select_plain<uint16_t>);
    default: return refuse(why, "no loop for this dtype");
  }
}

}  // namespace serin::kernels::cpu
