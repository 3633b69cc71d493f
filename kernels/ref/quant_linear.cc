// quant_linear.cc: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: between real numbers and quantised ones.
//
// A quotient is rounded once to the type that the operator divides in (its `precision`, else the scale's type) before it is rounded to a whole number:
// what lies next to a half depends on it.

#include <algorithm>

#include "kernels/ref/quant.h"

namespace serin::kernels::ref {

namespace {

double rounded_to(DType precision, double x) {
  switch (precision) {
    case DType::kFloat16: return to_float(to_half(x));
    case DType::kBFloat16: return to_float(to_bfloat16(x));
    case DType::kFloat64: return x;
    default: return static_cast<float>(x);
  }
}

DType precision_of(const GenericDesc& desc) {
  const std::string name = desc.attributes.text("precision", "");
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    if (dtype_name(dtype) == name) return dtype;
  }
  return desc.inputs[1].dtype;
}

void store_real(const TensorView& y, int64_t i, double value) {
  switch (y.dtype) {
    case DType::kFloat16: y.as<Half>()[i] = to_half(static_cast<float>(value)); break;
    case DType::kBFloat16: y.as<BFloat16>()[i] = to_bfloat16(static_cast<float>(value)); break;
    case DType::kFloat64: y.as<double>()[i] = value; break;
    default: y.as<float>()[i] = static_cast<float>(value);
  }
}

Fault misfit(const TensorView& x, const TensorView& scale) {
  return "scale " + scale.shape.str() + " does not fit a tensor of shape " + x.shape.str();
}

bool has_scale(const GenericDesc& desc, std::string& why) {
  if (!desc.has(0) || !desc.has(1) || desc.inputs.size() > 3 || desc.outputs.size() != 1)
    why = "expects x, scale, perhaps a zero point, and one output";
  else if (!Elements::accepts(desc.inputs[0].dtype) || !Elements::accepts(desc.inputs[1].dtype))
    why = "x or scale has no numbers";
  else if (desc.has(2) && !(desc.inputs[2].shape == desc.inputs[1].shape) &&
           (desc.inputs[2].shape.elements() != 1 || desc.inputs[1].shape.elements() != 1))
    why = "the zero point has shape " + desc.inputs[2].shape.str() + ", the scale " + desc.inputs[1].shape.str();
  return why.empty();
}

}  // namespace

Prepared quantize_linear(const GenericDesc& desc, std::string& why) {
  if (!has_scale(desc, why)) return nullptr;
  const DType to = desc.outputs[0].dtype;
  const auto range = quantized_range(to);
  if (!range && (!is_narrow_float(to) || to == DType::kFloat8E8M0)) return refuse_dtype(why, to);
  const int64_t axis = desc.attributes.integer("axis", 1), block_size = desc.attributes.integer("block_size", 0);
  const bool saturate = desc.attributes.integer("saturate", 1) != 0;
  const DType precision = precision_of(desc);
  const bool keeps_sign = to != DType::kFloat4E2M1;  // the 8-bit floats have no use for a zero point and keep -0; -0 + 0 is 0

  return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
    const auto granularity = Granularity::find(in[0].shape, in[1].shape, axis, block_size);
    if (!granularity) return misfit(in[0], in[1]);
    const Elements x(in[0]), scale(in[1]);
    const OptionalElements zero(operand(in, 2));
    for (int64_t i = 0; i < in[0].elements(); ++i) {
      const int64_t at = granularity->index(i);
      const double quotient = rounded_to(precision, rounded_to(precision, x[i]) / scale[at]);
      if (range)
        store_integer(out[0], i, quantized(quotient, zero[at], *range));
      else
        out[0].as<uint8_t>()[i] = narrow_from_double(to, keeps_sign && zero[at] == 0 ? quotient : quotient + zero[at], saturate);
    }
    return kOk;
  });
}

Prepared dequantize_linear(const GenericDesc& desc, std::string& why) {
  if (!has_scale(desc, why)) return nullptr;
  if (!is_float(desc.outputs[0].dtype)) return refuse_dtype(why, desc.outputs[0].dtype);
  const int64_t axis = desc.attributes.integer("axis", 1), block_size = desc.attributes.integer("block_size", 0);

  return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
    const auto granularity = Granularity::find(in[0].shape, in[1].shape, axis, block_size);
    if (!granularity) return misfit(in[0], in[1]);
    const Elements x(in[0]), scale(in[1]);
    const OptionalElements zero(operand(in, 2));
    const bool exact = out[0].dtype == DType::kFloat64;
    for (int64_t i = 0; i < in[0].elements(); ++i) {
      const int64_t at = granularity->index(i);
      const double difference = x[i] - zero[at];
      store_real(out[0], i, exact ? difference * scale[at] : static_cast<float>(difference) * static_cast<float>(scale[at]));
    }
    return kOk;
  });
}

DynamicScale dynamically_quantised(std::span<const float> x, uint8_t* y) {
  float low = 0, high = 0;
  for (const float each : x) {
    low = std::min(low, each);
    high = std::max(high, each);
  }
  const DynamicScale scale = DynamicScale::of(low, high);
  for (size_t i = 0; i < x.size(); ++i) y[i] = scale.quantise(x[i]);
  return scale;
}

/// y = u8, and the scale and zero point that let it reach from the least to the largest element, 0 included.
Prepared dynamic_quantize_linear(const GenericDesc& desc, std::string& why) {
  if (desc.inputs.size() != 1 || desc.outputs.size() != 3) return refuse(why, "expects one input and three outputs");
  if (desc.inputs[0].dtype != DType::kFloat32) return refuse_dtype(why, desc.inputs[0].dtype);
  return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
    const auto [scale, zero] = dynamically_quantised(in[0].span<const float>(), out[0].as<uint8_t>());
    if (out[1].data) *out[1].as<float>() = scale;
    if (out[2].data) *out[2].as<uint8_t>() = zero;
    return kOk;
  });
}

}  // namespace serin::kernels::ref
