// rows.cc: the kernels that work on one row at a time: Softmax, LayerNorm, BatchNorm. Softmax over another axis than the last works on many
// columns at once.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// A negative axis counts from the end.
size_t resolve_axis(int64_t axis, const Shape& shape) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.rank()) : axis);
}

}  // namespace

Prepared softmax(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Softmax op = std::get<Softmax>(desc.op);
  const Shape& shape = desc.inputs[0].shape;
  const size_t axis = resolve_axis(op.axis, shape);
  if (axis >= shape.rank()) return refuse(why, "axis out of range");
  return make_kernel([&simd, op, axis](Stream& stream, Inputs in, Outputs out) -> Fault {
    const int64_t outer = product(in[0].shape, 0, axis), n = in[0].shape[axis], inner = product(in[0].shape, axis + 1, in[0].shape.rank());
    const float* const x = in[0].as<const float>();
    float* const y = out[0].as<float>();
    if (n == 0 || inner == 0) return kOk;
    if (inner == 1) {
      parallel_rows(stream, outer, 4 * n,
                    [&](int64_t begin, int64_t end) { simd.softmax_rows(x + begin * n, y + begin * n, end - begin, n, op.log); });
      return kOk;
    }
    constexpr int64_t kColumns = 512;
    const int64_t parts = (inner + kColumns - 1) / kColumns;
    parallel_rows(stream, outer * parts, 4 * n * std::min(inner, kColumns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % parts * kColumns, at = i / parts * n * inner + first;
        simd.softmax_columns(x + at, y + at, inner, n, std::min(kColumns, inner - first), op.log);
      }
    });
    return kOk;
  });
}

Prepared layer_norm(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const LayerNorm op = std::get<LayerNorm>(desc.op);
  const Shape& shape = desc.inputs[0].shape;
  const size_t axis = resolve_axis(op.axis, shape);
  if (axis >= shape.rank() || desc.inputs.size() != (op.bias ? 3u : 2u)) return refuse(why, "unexpected axis or inputs");
  const int64_t row = product(shape, axis, shape.rank());
  for (size_t i = 1; i < desc.inputs.size(); ++i) {
    if (desc.inputs[i].shape.elements() != row) return refuse(why, "scale and bias must have one value for each element of a row");
  }
  return make_kernel([&simd, op, axis](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& x = in[0].shape;
    const float* bias = op.bias ? in[2].as<const float>() : nullptr;
    const int64_t n = product(x, axis, x.rank());
    parallel_rows(stream, product(x, 0, axis), 2 * n, [&](int64_t begin, int64_t end) {
      simd.layer_norm_rows(in[0].as<const float>() + begin * n, in[1].as<const float>(), bias, out[0].as<float>() + begin * n, end - begin,
                           n, op.epsilon);
    });
    return kOk;
  });
}

Prepared batch_norm(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 5 || !is_f32(desc, why)) return refuse(why, "f32 only");
  const Shape& shape = desc.inputs[0].shape;
  if (shape.rank() < 2) return refuse(why, "input must have rank 2 or more");
  for (size_t i = 1; i < 5; ++i) {
    if (desc.inputs[i].shape.elements() != shape[1]) return refuse(why, "parameters must have one value for each channel");
  }
  if (product(shape, 2, shape.rank()) < 4) return refuse(why, "fewer than 4 elements to a channel");
  const float epsilon = std::get<BatchNorm>(desc.op).epsilon;
  return make_kernel([&simd, epsilon](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& x = in[0].shape;  // [n, c, ...]
    const int64_t spatial = product(x, 2, x.rank());
    parallel_rows(stream, x[0] * x[1], spatial, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = row % x[1];
        const auto parameter = [&](size_t input) { return in[input].as<const float>()[c]; };
        const float factor = parameter(1) / std::sqrt(parameter(4) + epsilon);
        simd.normalize(in[0].as<const float>() + row * spatial, out[0].as<float>() + row * spatial, spatial, parameter(3), factor,
                       parameter(2));
      }
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
