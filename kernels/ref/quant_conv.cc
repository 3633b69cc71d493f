// quant_conv.cc: convolutions of quantised tensors: each output is a sum of products in 32 bits over the channels of its group and the cells of its
// window. A cell in the padding stands for zero: it adds nothing.
//
// The engine passes strides, dilations and pads in their explicit form. Each output channel may have a scale and zero point of its own. After passes a
// QLinearConv may have its channels last, and do more (runtime/graph/op.h): add a residual and quantise the sum, and quantise once more.

#include "kernels/indexing.h"
#include "kernels/ref/quant.h"
#include "kernels/ref/windows.h"

namespace serin::kernels::ref {

namespace {

/// A parameter of one element, or of one for each output channel.
bool fits_channels(const GenericDesc& desc, size_t i, int64_t channels) {
  return !desc.has(i) || desc.inputs[i].shape.elements() == 1 || desc.inputs[i].shape.elements() == channels;
}

struct Setup {
  Windows windows;
  int64_t group = 1;
  bool channels_last = false;
};

/// [n, spatial..., c] as [n, c, spatial...].
Shape channels_first(const Shape& shape, bool last) {
  Shape result = shape;
  if (!last) return result;
  result[1] = shape.back();
  for (size_t axis = 2; axis < shape.rank(); ++axis) result[axis] = shape[axis - 1];
  return result;
}

std::optional<Setup> check(const GenericDesc& desc, size_t x, size_t w, std::string& why) {
  if (!desc.has(x) || !desc.has(w)) {
    why = "expects an input and a weight";
    return std::nullopt;
  }
  const bool last = desc.attributes.integer("channels_last", 0) != 0;
  const Shape input = channels_first(desc.inputs[x].shape, last), &weight = desc.inputs[w].shape;
  if (weight.rank() < 3 || input.rank() != weight.rank() || !is_byte(desc.inputs[x].dtype) || !is_byte(desc.inputs[w].dtype)) {
    why = "expects an input and a weight of bytes with as many axes, at least one of them spatial";
    return std::nullopt;
  }
  Setup setup{{{weight.begin() + 2, weight.end()},
               desc.attributes.integers("strides"),
               desc.attributes.integers("dilations"),
               desc.attributes.integers("pads")},
              desc.attributes.integer("group", 1),
              last};
  if (!setup.windows.fits(input)) {
    why = "kernel, strides, dilations and pads do not match the input's spatial axes";
    return std::nullopt;
  }
  if (setup.group < 1 || weight[0] % setup.group != 0 || weight[1] * setup.group != input[1]) {
    why = "weight " + weight.str() + " in " + std::to_string(setup.group) + " groups does not fit input " + input.str();
    return std::nullopt;
  }
  return setup;
}

/// Calls store(i, channel, sum) for each element i of y.
template <class F>
void convolve(const Setup& setup, const TensorView& x, int32_t x_zero, const TensorView& w, const TensorView* w_zero, const Shape& result,
              F&& store) {
  const Shape input = channels_first(x.shape, setup.channels_last), y = channels_first(result, setup.channels_last);
  const int64_t m = y[1], group_c = w.shape[1], cells = setup.windows.cells();
  const int64_t x_plane = product(input, 2, input.rank()), y_plane = product(y, 2, y.rank());
  const int64_t c_step = setup.channels_last ? 1 : x_plane, cell_step = setup.channels_last ? input[1] : 1;
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t image = i / y_plane / m;
    const int64_t channel = setup.channels_last ? i % m : i / y_plane % m, pixel = setup.channels_last ? i / m % y_plane : i % y_plane;
    const int64_t first_c = channel / (m / setup.group) * group_c;
    const int64_t source = image * input[1] * x_plane + first_c * c_step, filter = channel * group_c * cells;
    const int32_t zero = w_zero ? byte_of(*w_zero, w_zero->elements() == 1 ? 0 : channel) : 0;
    uint32_t sum = 0;
    for (int64_t k = 0; k < cells; ++k) {
      const Windows::Cell cell = setup.windows.cell(input, y, pixel, k);
      if (!cell.inside) continue;
      for (int64_t c = 0; c < group_c; ++c) {
        const int32_t term =
            (byte_of(x, source + c * c_step + cell.offset * cell_step) - x_zero) * (byte_of(w, filter + c * cells + k) - zero);
        sum += static_cast<uint32_t>(term);
      }
    }
    store(i, channel, static_cast<int32_t>(sum));
  }
}

}  // namespace

Prepared conv_integer(const GenericDesc& desc, std::string& why) {
  const auto setup = check(desc, 0, 1, why);
  if (!setup) return nullptr;
  if (!fits_channels(desc, 2, 1) || !fits_channels(desc, 3, desc.inputs[1].shape[0])) return refuse(why, "a zero point has a wrong size");
  return make_kernel([setup = *setup](Stream&, Inputs in, Outputs out) -> Fault {
    const int32_t x_zero = operand(in, 2) ? byte_of(in[2], 0) : 0;
    convolve(setup, in[0], x_zero, in[1], operand(in, 3), out[0].shape,
             [&](int64_t i, int64_t, int32_t sum) { out[0].as<int32_t>()[i] = sum; });
    return kOk;
  });
}

Prepared qlinear_conv(const GenericDesc& desc, std::string& why) {
  const auto setup = check(desc, 0, 3, why);
  if (!setup) return nullptr;
  const auto range = quantized_range(desc.outputs[0].dtype);
  if (!range) return refuse_dtype(why, desc.outputs[0].dtype);
  const int64_t channels = desc.inputs[3].shape[0];
  for (const size_t i : {1, 2, 6, 7}) {
    if (!desc.has(i) || desc.inputs[i].shape.elements() != 1) return refuse(why, "operand " + std::to_string(i) + " must be one number");
  }
  if (!desc.has(4)) return refuse(why, "operand 4 is missing");
  for (const size_t i : {4, 5, 8}) {
    if (!fits_channels(desc, i, channels)) return refuse(why, "operand " + std::to_string(i) + " does not fit the output channels");
  }
  if (desc.has(8) && desc.inputs[8].dtype != DType::kInt32) return refuse_dtype(why, desc.inputs[8].dtype);

  if (desc.has(9) && !(desc.inputs[9].shape == desc.outputs[0].shape)) return refuse(why, "the residual has another shape than the result");
  const bool sums = desc.has(12);
  for (const size_t i : {10, 11, 12, 13}) {
    if (sums && (i > 11 || desc.has(9)) && (!desc.has(i) || desc.inputs[i].shape.elements() != 1))
      return refuse(why, "operand " + std::to_string(i) + " must be one number");
  }
  const DType first = sums ? desc.inputs[7].dtype : desc.outputs[0].dtype;
  if (!quantized_range(first)) return refuse_dtype(why, first);

  return make_kernel([setup = *setup, attributes = desc.attributes, first, sums](Stream&, Inputs in, Outputs out) -> Fault {
    const auto x_scale = static_cast<float>(Elements(in[1])[0]);
    Quantiser y = Quantiser::of(first, in[6], &in[7]);
    apply_activation(attributes, "activation", y);
    Quantiser sum_of = sums ? Quantiser::of(out[0].dtype, in[12], &in[13]) : y;
    apply_activation(attributes, "sum_activation", sum_of);
    const bool twice = attributes.has("again_scale");
    Quantiser again{static_cast<float>(attributes.number("again_scale", 1)), static_cast<double>(attributes.integer("again_zero", 0)),
                    *quantized_range(out[0].dtype)};
    apply_activation(attributes, "again_activation", again);
    const TensorView* residual = operand(in, 9);
    const float residual_scale = residual ? static_cast<float>(Elements(in[10])[0]) / sum_of.scale : 0;
    const OptionalElements w_scale(&in[4]), bias(operand(in, 8));
    convolve(setup, in[0], byte_of(in[2], 0), in[3], operand(in, 5), out[0].shape, [&](int64_t i, int64_t channel, int32_t sum) {
      const float factor = x_scale * static_cast<float>(w_scale[channel]) / y.scale;
      const auto total = static_cast<float>(static_cast<double>(sum) + bias[channel]);
      double q = quantized(total * factor, y.zero, y.range);
      if (sums) {
        float real = static_cast<float>(q - y.zero) * (y.scale / sum_of.scale);
        if (residual) real += static_cast<float>(byte_of(*residual, i) - byte_of(in[11], 0)) * residual_scale;
        q = quantized(real, sum_of.zero, sum_of.range);
      }
      if (twice) q = quantized(static_cast<float>(q - sum_of.zero) * (sum_of.scale / again.scale), again.zero, again.range);
      store_integer(out[0], i, q);
    });
    return kOk;
  });
}

}  // namespace serin::kernels::ref
