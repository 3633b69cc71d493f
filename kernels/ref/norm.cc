// norm.cc: Softmax, LayerNorm and BatchNorm, in double, for the floating point types.
//
//   softmax:   y = exp(x - max) / sum(exp(x - max));  log: (x - max) - log(sum)      the maximum is taken out so that nothing overflows
//   layernorm: y = (x - mean) / sqrt(var + eps) * scale + bias                        mean and variance of each row
//   batchnorm: the same with a mean and variance that are given for each channel

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/indexing.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

namespace {

template <class T>
Fault run_softmax(const Softmax& op, Inputs in, Outputs out) {
  const Shape& shape = in[0].shape;
  const auto axis = static_cast<size_t>(op.axis);
  const int64_t outer = product(shape, 0, axis), n = shape[axis], inner = product(shape, axis + 1, shape.rank());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t j = 0; j < inner; ++j) {
      const T* x = in[0].as<const T>() + o * n * inner + j;
      T* y = out[0].as<T>() + o * n * inner + j;
      double max = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < n; ++i) max = maximum(widen(x[i * inner]), max);
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += std::exp(widen(x[i * inner]) - max);
      for (int64_t i = 0; i < n; ++i) {
        const double shifted = widen(x[i * inner]) - max;
        y[i * inner] = narrow<T>(op.log ? shifted - std::log(sum) : std::exp(shifted) / sum);
      }
    }
  }
  return kOk;
}

template <class T>
Fault run_layer_norm(const LayerNorm& op, Inputs in, Outputs out) {
  const Shape& shape = in[0].shape;
  const auto axis = static_cast<size_t>(op.axis);
  const int64_t rows = product(shape, 0, axis), n = product(shape, axis, shape.rank());
  const T* scale = in[1].as<const T>();                     // [n]
  const T* bias = op.bias ? in[2].as<const T>() : nullptr;  // [n]
  for (int64_t row = 0; row < rows; ++row) {
    const T* x = in[0].as<const T>() + row * n;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += widen(x[i]);
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) squares += (widen(x[i]) - mean) * (widen(x[i]) - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(op.epsilon));
    for (int64_t i = 0; i < n; ++i) {
      out[0].as<T>()[row * n + i] = narrow<T>((widen(x[i]) - mean) * factor * widen(scale[i]) + (bias ? widen(bias[i]) : 0));
    }
  }
  return kOk;
}

template <class T>
Fault run_batch_norm(const BatchNorm& op, Inputs in, Outputs out) {
  const Shape& shape = in[0].shape;  // [n, c, ...]
  const int64_t spatial = product(shape, 2, shape.rank());
  const bool of_f32 = in[1].dtype == DType::kFloat32;
  const auto parameter = [&in, of_f32](size_t input, int64_t channel) {
    return of_f32 ? widen(in[input].as<const float>()[channel]) : widen(in[input].as<const T>()[channel]);
  };
  for (int64_t i = 0; i < in[0].elements(); ++i) {
    const int64_t c = i / spatial % shape[1];
    const double normal = (widen(in[0].as<const T>()[i]) - parameter(3, c)) / std::sqrt(parameter(4, c) + static_cast<double>(op.epsilon));
    out[0].as<T>()[i] = narrow<T>(normal * parameter(1, c) + parameter(2, c));
  }
  return kOk;
}

template <class F>
Prepared for_floats(const OpDesc& desc, std::string& why, F&& make) {
  if (!one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  return ref::for_floats(desc.outputs[0].dtype, why, std::forward<F>(make));
}

/// An axis that may be negative, as an index; nothing where it is out of range.
std::optional<int64_t> resolve_axis(int64_t axis, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.rank());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? std::optional(axis) : std::nullopt;
}

}  // namespace

Prepared softmax(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  Softmax op = std::get<Softmax>(desc.op);
  const auto axis = resolve_axis(op.axis, desc.inputs[0].shape);
  if (!axis) return refuse(why, "axis out of range");
  op.axis = *axis;
  return for_floats(desc, why, [op]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_softmax<T>(op, in, out); });
  });
}

Prepared layer_norm(const OpDesc& desc, PrepareContext&, std::string& why) {
  LayerNorm op = std::get<LayerNorm>(desc.op);
  if (!has_operands(desc, op.bias ? 3 : 2, why)) return nullptr;
  const Shape& shape = desc.inputs[0].shape;
  const auto axis = resolve_axis(op.axis, shape);
  if (!axis) return refuse(why, "axis out of range");
  op.axis = *axis;
  const int64_t n = product(shape, static_cast<size_t>(*axis), shape.rank());
  for (size_t i = 1; i < desc.inputs.size(); ++i) {
    if (desc.inputs[i].shape.elements() != n) return refuse(why, "scale and bias must have one value for each element of a row");
  }
  return for_floats(desc, why, [op]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_layer_norm<T>(op, in, out); });
  });
}

Prepared batch_norm(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 5, why)) return nullptr;
  const BatchNorm op = std::get<BatchNorm>(desc.op);
  const Shape& shape = desc.inputs[0].shape;
  if (shape.rank() < 2) return refuse(why, "input must have rank 2 or more");
  for (size_t i = 1; i < 5; ++i) {
    if (desc.inputs[i].shape.elements() != shape[1]) return refuse(why, "parameters must have one value for each channel");
  }
  if (desc.inputs[0].dtype != desc.outputs[0].dtype) return refuse(why, "input and output differ in dtype");
  const bool of_f32 =
      std::all_of(desc.inputs.begin() + 1, desc.inputs.end(), [](const auto& input) { return input.dtype == DType::kFloat32; });
  if (!of_f32 && !one_dtype(desc)) return refuse(why, "parameters are neither f32 nor of the input's type");
  return ref::for_floats(desc.outputs[0].dtype, why, [op]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_batch_norm<T>(op, in, out); });
  });
}

}  // namespace serin::kernels::ref
