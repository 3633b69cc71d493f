// quant_fused.cc: the operators that passes make of quantised graphs. They read and write bytes and compute with the numbers that the bytes
// stand for (runtime/graph/op.h lists them). Each rounds once, where the graph before had a QuantizeLinear.

#include "kernels/indexing.h"
#include "kernels/ref/quant.h"
#include "kernels/ref/windows.h"

namespace serin::kernels::ref {

namespace {

bool are_bytes(const GenericDesc& desc, std::initializer_list<size_t> operands, std::string& why) {
  for (const size_t i : operands) {
    if (!desc.has(i) || !is_byte(desc.inputs[i].dtype)) why = "operand " + std::to_string(i) + " must be bytes";
  }
  if (desc.outputs.size() != 1 || !is_byte(desc.outputs[0].dtype)) why = "the result must be bytes";
  return why.empty();
}

bool are_numbers(const GenericDesc& desc, std::initializer_list<size_t> operands, std::string& why) {
  for (const size_t i : operands) {
    if (!desc.has(i) || desc.inputs[i].shape.elements() != 1) why = "operand " + std::to_string(i) + " must be one number";
  }
  return why.empty();
}

}  // namespace

Prepared quantized_binary(const GenericDesc& desc, std::string& why) {
  if (!are_bytes(desc, {0, 2, 3, 5, 7}, why) || !are_numbers(desc, {1, 2, 4, 5, 6, 7}, why)) return nullptr;
  const bool multiplies = desc.attributes.text("function", "Add") == "Mul";
  return make_kernel([multiplies, attributes = desc.attributes](Stream&, Inputs in, Outputs out) -> Fault {
    Quantiser y = Quantiser::of(out[0].dtype, in[6], &in[7]);
    apply_activation(attributes, "activation", y);
    const auto a_scale = static_cast<float>(Elements(in[1])[0]), b_scale = static_cast<float>(Elements(in[4])[0]);
    const int32_t a_zero = byte_of(in[2], 0), b_zero = byte_of(in[5], 0);
    const Shape& shape = out[0].shape;
    for_each<2>(shape, {broadcast_strides(in[0].shape, shape), broadcast_strides(in[3].shape, shape)}, [&](int64_t i, const auto& at) {
      const auto a = static_cast<float>(byte_of(in[0], at[0]) - a_zero), b = static_cast<float>(byte_of(in[3], at[1]) - b_zero);
      const float real = multiplies ? a * b * (a_scale * b_scale / y.scale) : a * (a_scale / y.scale) + b * (b_scale / y.scale);
      store_integer(out[0], i, quantized(real, y.zero, y.range));
    });
    return kOk;
  });
}

Prepared quantized_global_average_pool(const GenericDesc& desc, std::string& why) {
  if (!are_bytes(desc, {0, 2, 4}, why) || !are_numbers(desc, {1, 2, 3, 4}, why)) return nullptr;
  if (desc.inputs[0].shape.rank() < 3) return refuse(why, "expects spatial axes");
  const bool last = desc.attributes.integer("channels_last", 0) != 0;
  return make_kernel([last](Stream&, Inputs in, Outputs out) -> Fault {
    const Shape& x = in[0].shape;
    const Quantiser y = Quantiser::of(out[0].dtype, in[3], &in[4]);
    const int64_t channels = last ? x.back() : x[1], pixels = product(x, 1, x.rank()) / (channels > 0 ? channels : 1);
    const auto scale = static_cast<float>(Elements(in[1])[0]) / y.scale / static_cast<float>(pixels);
    for (int64_t i = 0; i < out[0].elements(); ++i) {
      const int64_t image = i / channels, channel = i % channels;
      int64_t sum = 0;
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t at = last ? p * channels + channel : channel * pixels + p;
        sum += byte_of(in[0], image * channels * pixels + at) - byte_of(in[2], 0);
      }
      store_integer(out[0], i, quantized(static_cast<float>(sum) * scale, y.zero, y.range));
    }
    return kOk;
  });
}

Prepared quantized_lookup(const GenericDesc& desc, std::string& why) {
  if (!are_bytes(desc, {0, 1}, why)) return nullptr;
  if (desc.inputs[1].shape.elements() != 256) return refuse(why, "the table must have 256 elements");
  return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
    const auto* table = in[1].as<const uint8_t>();
    for (int64_t i = 0; i < in[0].elements(); ++i) out[0].as<uint8_t>()[i] = table[in[0].as<const uint8_t>()[i]];
    return kOk;
  });
}

Prepared quantized_max_pool(const GenericDesc& desc, std::string& why) {
  if (!are_bytes(desc, {0}, why)) return nullptr;
  if (desc.inputs[0].shape.rank() < 3 || desc.attributes.integer("channels_last", 0) == 0) return refuse(why, "expects channels last");
  const Windows windows{desc.attributes.integers("kernel_shape"), desc.attributes.integers("strides"),
                        desc.attributes.integers("dilations"), desc.attributes.integers("pads")};
  if (!windows.fits(desc.inputs[0].shape)) return refuse(why, "kernel, strides, dilations and pads do not match the input's spatial axes");
  return make_kernel([windows](Stream&, Inputs in, Outputs out) -> Fault {
    const auto first = [](const Shape& shape) {  // channels first
      Shape result = shape;
      result[1] = shape.back();
      for (size_t axis = 2; axis < shape.rank(); ++axis) result[axis] = shape[axis - 1];
      return result;
    };
    const Shape x = first(in[0].shape), y = first(out[0].shape);
    const int64_t channels = x[1], x_plane = product(x, 2, x.rank()), y_plane = product(y, 2, y.rank());
    for (int64_t i = 0; i < out[0].elements(); ++i) {
      const int64_t channel = i % channels, pixel = i / channels % y_plane, image = i / channels / y_plane;
      int32_t most = in[0].dtype == DType::kInt8 ? -128 : 0;
      for (int64_t k = 0; k < windows.cells(); ++k) {
        const Windows::Cell cell = windows.cell(x, y, pixel, k);
        if (cell.inside) most = std::max(most, byte_of(in[0], (image * x_plane + cell.offset) * channels + channel));
      }
      store_integer(out[0], i, most);
    }
    return kOk;
  });
}

}  // namespace serin::kernels::ref
