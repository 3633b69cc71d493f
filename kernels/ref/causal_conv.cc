// causal_conv.cc: CausalConvWithState: a filter of k taps along each channel that sees the past only. The elements before x are `past` (or
// zeros); the last k - 1 elements are returned for the next call.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

namespace {

enum : size_t { kX, kWeight, kBias, kPast };

template <class T>
Fault run(bool silu, Inputs in, Outputs out) {
  const Shape& shape = in[kX].shape;
  const int64_t channels = shape[1], length = shape[2], taps = in[kWeight].shape[2];
  const TensorView *const bias = operand(in, kBias), *const past = operand(in, kPast);
  for (int64_t row = 0; row < shape[0] * channels; ++row) {
    const T* const x = in[kX].as<const T>() + row * length;
    const T* const before = past ? past->as<const T>() + row * (taps - 1) : nullptr;
    const T* const weight = in[kWeight].as<const T>() + row % channels * taps;
    const auto joined = [&](int64_t i) { return i >= taps - 1 ? x[i - (taps - 1)] : before ? before[i] : T{}; };  // past, then x
    for (int64_t t = 0; t < length; ++t) {
      double sum = bias ? widen(bias->as<const T>()[row % channels]) : 0;
      for (int64_t k = 0; k < taps; ++k) sum += widen(joined(t + k)) * widen(weight[k]);
      out[0].as<T>()[row * length + t] = narrow<T>(silu ? unary(UnaryFn::kSilu, sum, 0.f, 0.f) : sum);
    }
    for (int64_t i = 0; i < taps - 1; ++i) out[1].as<T>()[row * (taps - 1) + i] = joined(length + i);
  }
  return kOk;
}

}  // namespace

Prepared causal_conv(const GenericDesc& desc, std::string& why) {
  const std::string activation = desc.attributes.text("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none") return refuse(why, "unknown activation '" + activation + "'");
  const Shape &x = desc.inputs[kX].shape, &weight = desc.inputs[kWeight].shape;
  if (x.rank() != 3 || weight.rank() != 3 || weight[0] != x[1] || weight[1] != 1 || weight[2] < 1)
    return refuse(why, "x has shape " + x.str() + ", the weight " + weight.str());
  if (desc.has(kBias) && desc.inputs[kBias].shape != Shape{x[1]})
    return refuse(why, "the bias has shape " + desc.inputs[kBias].shape.str());
  if (desc.has(kPast) && desc.inputs[kPast].shape != Shape{x[0], x[1], weight[2] - 1})
    return refuse(why, "past_state has shape " + desc.inputs[kPast].shape.str());
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (desc.has(i) && desc.inputs[i].dtype != desc.inputs[kX].dtype) return refuse(why, "inputs differ in dtype");
  }
  return for_floats(desc.inputs[kX].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([silu](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(silu, in, out); });
  });
}

}  // namespace serin::kernels::ref
