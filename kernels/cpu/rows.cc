// rows.cc: the kernels whose work is a row at a time: Softmax, LayerNorm, BatchNorm, Reduce.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu.h"
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
  if (resolve_axis(op.axis, shape) + 1 != shape.rank()) return refuse(why, "only over the last axis");
  return make_kernel([&simd, op](Stream&, Inputs in, Outputs out) -> Fault {
    const int64_t n = in[0].shape.back();
    const int64_t rows = n == 0 ? 0 : in[0].elements() / n;
    simd.softmax_rows(in[0].as<const float>(), out[0].as<float>(), rows, n, op.log);
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
  return make_kernel([&simd, op, axis](Stream&, Inputs in, Outputs out) -> Fault {
    const Shape& x = in[0].shape;
    const float* bias = op.bias ? in[2].as<const float>() : nullptr;
    simd.layer_norm_rows(in[0].as<const float>(), in[1].as<const float>(), bias, out[0].as<float>(), product(x, 0, axis),
                         product(x, axis, x.rank()), op.epsilon);
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
  return make_kernel([&simd, epsilon](Stream&, Inputs in, Outputs out) -> Fault {
    const Shape& x = in[0].shape;  // [n, c, ...]
    const int64_t spatial = product(x, 2, x.rank());
    for (int64_t row = 0; row < x[0] * x[1]; ++row) {
      const int64_t c = row % x[1];
      const auto parameter = [&](size_t input) { return in[input].as<const float>()[c]; };
      const float factor = parameter(1) / std::sqrt(parameter(4) + epsilon);
      simd.normalize(in[0].as<const float>() + row * spatial, out[0].as<float>() + row * spatial, spatial, parameter(3), factor,
                     parameter(2));
    }
    return kOk;
  });
}

Prepared reduce(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Reduce& op = std::get<Reduce>(desc.op);
  if (op.axes.empty()) return refuse(why, "no axes");
  const auto [low, high] = std::ranges::minmax(op.axes);
  if (high - low + 1 != static_cast<int64_t>(op.axes.size())) return refuse(why, "only over axes that lie side by side");
  const auto begin = static_cast<size_t>(low), end = static_cast<size_t>(high) + 1;
  const ReduceRowsLoop rows = simd.reduce_rows(op.fn);
  const ReduceColumnsLoop columns = simd.reduce_columns(op.fn);
  return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
    const Shape& x = in[0].shape;  // [outer..., n..., inner...]
    const int64_t outer = product(x, 0, begin), n = product(x, begin, end), inner = product(x, end, x.rank());
    if (inner == 1) {
      rows(in[0].as<const float>(), out[0].as<float>(), outer, n);
      return kOk;
    }
    for (int64_t o = 0; o < outer; ++o) columns(in[0].as<const float>() + o * n * inner, out[0].as<float>() + o * inner, n, inner);
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
