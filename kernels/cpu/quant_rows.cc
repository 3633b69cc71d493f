// quant_rows.cc: quantised tensors outside of products: to and from f32, sums of two, pools with the channels last.

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/quant.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPiece = int64_t{1} << 15;  // elements of a task

/// f(begin, count) over pieces of `elements`.
template <class F>
void in_pieces(const Stream& stream, int64_t elements, F&& f, int64_t piece = kPiece) {
  parallel_for(stream, (elements + piece - 1) / piece,
               [&](int64_t task, int) { f(task * piece, std::min(piece, elements - task * piece)); });
}

/// One number for the whole tensor, known at load or computed.
bool is_one_scale(const OpDesc& desc, size_t i) {
  return has_operand(desc, i) && desc.inputs[i].dtype == DType::kFloat32 && desc.inputs[i].shape.elements() == 1;
}
bool is_one_zero(const OpDesc& desc, size_t i, DType dtype) {
  return !has_operand(desc, i) || (desc.inputs[i].dtype == dtype && desc.inputs[i].shape.elements() == 1);
}
int32_t zero_of(const TensorView* zero) {
  if (!zero) return 0;
  return zero->dtype == DType::kInt8 ? int32_t{*zero->as<const int8_t>()} : int32_t{*zero->as<const uint8_t>()};
}

}  // namespace

std::unique_ptr<Kernel> quantize_linear(const Quant& quant, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() < 2 || desc.outputs.size() != 1 || desc.inputs[0].dtype != DType::kFloat32) return refuse(why, "f32 only");
  const DType dtype = desc.outputs[0].dtype;
  if (!is_byte(dtype) || !is_one_scale(desc, 1) || !is_one_zero(desc, 2, dtype) || attributes_of(desc).has("precision"))
    return refuse(why, "not to bytes with one scale");
  const int32_t low = dtype == DType::kInt8 ? -128 : 0, high = dtype == DType::kInt8 ? 127 : 255;
  return make_kernel([&quant, low, high](Stream& stream, Inputs in, Outputs out) -> Fault {
    const float *x = in[0].as<const float>(), scale = *in[1].as<const float>();
    uint8_t* y = out[0].as<uint8_t>();
    const QuantTo to{zero_of(operand(in, 2)), low, high};
    in_pieces(stream, in[0].elements(), [&](int64_t begin, int64_t count) { quant.quantise(x + begin, y + begin, count, scale, to); });
    return kOk;
  });
}

std::unique_ptr<Kernel> dequantize_linear(const Quant& quant, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() < 2 || desc.outputs.size() != 1 || !is_byte(desc.inputs[0].dtype)) return refuse(why, "bytes only");
  const DType dtype = desc.inputs[0].dtype;
  if (!is_one_scale(desc, 1) || !is_one_zero(desc, 2, dtype) || desc.outputs[0].dtype != DType::kFloat32)
    return refuse(why, "not to f32 with one scale");
  return make_kernel([&quant, is_signed = dtype == DType::kInt8](Stream& stream, Inputs in, Outputs out) -> Fault {
    const uint8_t* x = in[0].as<const uint8_t>();
    const float scale = *in[1].as<const float>();
    float* y = out[0].as<float>();
    const int32_t zero = zero_of(operand(in, 2));
    in_pieces(stream, in[0].elements(),
              [&](int64_t begin, int64_t count) { quant.dequantise(x + begin, is_signed, y + begin, count, scale, zero); });
    return kOk;
  });
}

std::unique_ptr<Kernel> dynamic_quantize_linear(const Quant& quant, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 1 || desc.outputs.size() != 3 || desc.inputs[0].dtype != DType::kFloat32) return refuse(why, "f32 only");
  return make_kernel([&quant](Stream& stream, Inputs in, Outputs out) -> Fault {
    const float* x = in[0].as<const float>();
    float low = 0, high = 0;
    quant.range(x, in[0].elements(), &low, &high);
    const auto [scale, zero] = DynamicScale::of(low, high);
    uint8_t* y = out[0].as<uint8_t>();
    in_pieces(stream, in[0].elements(), [&, scale = scale, to = QuantTo{zero, 0, 255}](int64_t begin, int64_t count) {
      quant.quantise(x + begin, y + begin, count, scale, to);
    });
    if (out[1].data) *out[1].as<float>() = scale;
    if (out[2].data) *out[2].as<uint8_t>() = zero;
    return kOk;
  });
}

namespace {

/// How an operand is repeated over the rows of the other one, the channels of a pixel: [n, 1, 1, c] beside [n, h, w, c], [c], or one number.
enum class Repeated : uint8_t { kRowOfImage, kRow, kNumber };

std::optional<Repeated> repeated(const Shape& large, const Shape& small) {
  if (small.rank() > large.rank()) return std::nullopt;
  if (small.elements() == 1) return Repeated::kNumber;
  if (small.back() != large.back()) return std::nullopt;
  if (small.elements() == large.back()) return Repeated::kRow;
  const bool of_images =
      large.rank() == small.rank() && large.rank() >= 3 && large[0] == small[0] && product(small, 1, small.rank() - 1) == 1;
  return of_images ? std::optional(Repeated::kRowOfImage) : std::nullopt;
}

}  // namespace

std::unique_ptr<Kernel> quant_binary(const Quant& quant, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 8 || desc.outputs.size() != 1) return refuse(why, "unexpected number of operands");
  if (!is_byte(desc.inputs[0].dtype) || !is_byte(desc.inputs[3].dtype)) return refuse(why, "bytes only");
  const bool same = desc.inputs[0].shape == desc.inputs[3].shape;
  // Sums and products are the same both ways: a is the operand that is whole.
  const size_t a_at = desc.inputs[0].shape == desc.outputs[0].shape ? 0 : 3, b_at = 3 - a_at;
  const auto way = same ? std::nullopt : repeated(desc.inputs[a_at].shape, desc.inputs[b_at].shape);
  if (!same && (!way || desc.inputs[a_at].shape != desc.outputs[0].shape)) return refuse(why, "an operand is broadcast, not by rows");
  const auto a_scale = known_scale(desc, a_at + 1), b_scale = known_scale(desc, b_at + 1), y_scale = known_scale(desc, 6);
  const auto a_zero = known_zero(desc, a_at + 2), b_zero = known_zero(desc, b_at + 2);
  const auto to = known_target(desc, 7, desc.outputs[0].dtype, has_relu(desc, "activation"));
  if (!a_scale || !b_scale || !y_scale || !a_zero || !b_zero || !to) return refuse(why, "a scale or zero point is not known at load");
  QuantSum sum{};
  const bool multiplies = attributes_of(desc).text("function", "Add") == "Mul";
  sum.own_scale = multiplies ? *a_scale * *b_scale / *y_scale : *a_scale / *y_scale;
  sum.residual_scale = *b_scale / *y_scale;
  sum.residual_zero = *b_zero;
  sum.to = *to;
  const bool a_signed = desc.inputs[a_at].dtype == DType::kInt8, b_signed = desc.inputs[b_at].dtype == DType::kInt8;
  const auto loop = multiplies ? quant.product : quant.sum;
  if (way == Repeated::kNumber) {
    return make_kernel([=, a_zero = *a_zero](Stream& stream, Inputs in, Outputs out) -> Fault {
      constexpr int64_t kFilled = 4096;
      std::array<uint8_t, kFilled> b;
      b.fill(*in[b_at].as<const uint8_t>());
      const auto* a = in[a_at].as<const uint8_t>();
      auto* y = out[0].as<uint8_t>();
      const auto piece = [&](int64_t i, int64_t n) { loop(a + i, b.data(), a_signed, b_signed, y + i, n, sum, a_zero); };
      in_pieces(stream, out[0].elements(), piece, kFilled);
      return kOk;
    });
  }
  if (!same) {
    return make_kernel([=, a_zero = *a_zero, shared = way == Repeated::kRow](Stream& stream, Inputs in, Outputs out) -> Fault {
      const uint8_t *a = in[a_at].as<const uint8_t>(), *b = in[b_at].as<const uint8_t>();
      uint8_t* y = out[0].as<uint8_t>();
      const int64_t channels = out[0].shape.back(), pixels = product(out[0].shape, 1, out[0].shape.rank() - 1);
      if (channels == 0) return kOk;
      const auto rows = [&](int64_t begin, int64_t count) {
        for (int64_t pixel = begin; pixel < begin + count; ++pixel)
          loop(a + pixel * channels, shared ? b : b + pixel / pixels * channels, a_signed, b_signed, y + pixel * channels, channels, sum,
               a_zero);
      };
      in_pieces(stream, out[0].elements() / channels, rows, std::max<int64_t>(1, kPiece / channels));
      return kOk;
    });
  }
  return make_kernel([=, a_zero = *a_zero](Stream& stream, Inputs in, Outputs out) -> Fault {
    const uint8_t *a = in[a_at].as<const uint8_t>(), *b = in[b_at].as<const uint8_t>();
    uint8_t* y = out[0].as<uint8_t>();
    in_pieces(stream, out[0].elements(),
              [&](int64_t begin, int64_t count) { loop(a + begin, b + begin, a_signed, b_signed, y + begin, count, sum, a_zero); });
    return kOk;
  });
}

std::unique_ptr<Kernel> quant_lookup(const Quant& quant, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 2 || desc.outputs.size() != 1) return refuse(why, "unexpected number of operands");
  if (!is_byte(desc.inputs[0].dtype) || !is_byte(desc.outputs[0].dtype) || desc.inputs[1].shape.elements() != 256)
    return refuse(why, "bytes and a table of 256 of them only");
  return make_kernel([&quant](Stream& stream, Inputs in, Outputs out) -> Fault {
    const uint8_t *x = in[0].as<const uint8_t>(), *table = in[1].as<const uint8_t>();
    uint8_t* y = out[0].as<uint8_t>();
    in_pieces(stream, in[0].elements(), [&](int64_t begin, int64_t count) { quant.lookup(x + begin, table, y + begin, count); });
    return kOk;
  });
}

std::unique_ptr<Kernel> quant_global_average_pool(const Quant& quant, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 5 || desc.outputs.size() != 1 || !is_byte(desc.inputs[0].dtype)) return refuse(why, "bytes only");
  const Shape& shape = desc.inputs[0].shape;
  if (shape.rank() < 3 || attributes_of(desc).integer("channels_last", 0) == 0) return refuse(why, "channels last only");
  const auto x_scale = known_scale(desc, 1), y_scale = known_scale(desc, 3);
  const auto x_zero = known_zero(desc, 2);
  const auto to = known_target(desc, 4, desc.outputs[0].dtype, false);
  if (!x_scale || !y_scale || !x_zero || !to) return refuse(why, "a scale or zero point is not known at load");
  if (product(shape, 1, shape.rank() - 1) > (1 << 22)) return refuse(why, "sums of more than 32 bits");
  const bool is_signed = desc.inputs[0].dtype == DType::kInt8;
  const float scale = *x_scale / *y_scale;
  return make_kernel(
      [&quant, is_signed, scale, x_zero = *x_zero, to = *to](Stream& stream, Inputs in, Outputs out) -> Fault {
        const Shape& x = in[0].shape;
        const int64_t channels = x.back(), pixels = product(x, 1, x.rank() - 1);
        auto* sums = reinterpret_cast<int32_t*>(stream.scratch);
        auto* means = reinterpret_cast<float*>(sums + channels);
        const float of_pixels = scale / static_cast<float>(pixels);
        for (int64_t image = 0; image < x[0]; ++image) {
          quant.add_rows(in[0].as<const uint8_t>() + image * pixels * channels, is_signed, pixels, channels, channels, sums);
          for (int64_t c = 0; c < channels; ++c) means[c] = static_cast<float>(sums[c] - static_cast<int32_t>(pixels) * x_zero) * of_pixels;
          quant.quantise(means, out[0].as<uint8_t>() + image * channels, channels, 1.f, to);
        }
        return kOk;
      },
      {.scratch_bytes = static_cast<size_t>(shape.back()) * (sizeof(int32_t) + sizeof(float))});
}

std::unique_ptr<Kernel> quant_max_pool(const Quant& quant, const OpDesc& desc, PrepareContext&, std::string& why) {
  const Attributes& attributes = attributes_of(desc);
  const auto kernel = attributes.integers("kernel_shape"), strides = attributes.integers("strides"),
             dilations = attributes.integers("dilations"), pads = attributes.integers("pads");
  if (desc.inputs.size() != 1 || desc.outputs.size() != 1 || !is_byte(desc.inputs[0].dtype)) return refuse(why, "bytes only");
  if (desc.inputs[0].shape.rank() != 4 || kernel.size() != 2 || strides.size() != 2 || dilations.size() != 2 || pads.size() != 4 ||
      attributes.integer("channels_last", 0) == 0)
    return refuse(why, "only two spatial axes, channels last");
  const bool is_signed = desc.inputs[0].dtype == DType::kInt8;
  return make_kernel([&quant, is_signed, kernel, strides, dilations, pads](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape &x = in[0].shape, &y = out[0].shape;
    const int64_t channels = x[3];
    parallel_for(stream, y[0] * y[1], [&](int64_t line, int) {
      const uint8_t* image = in[0].as<const uint8_t>() + line / y[1] * x[1] * x[2] * channels;
      std::vector<const uint8_t*> cells(static_cast<size_t>(kernel[0] * kernel[1]));
      for (int64_t column = 0; column < y[2]; ++column) {
        size_t count = 0;
        for (int64_t kh = 0; kh < kernel[0]; ++kh) {
          const int64_t h = line % y[1] * strides[0] + kh * dilations[0] - pads[0];
          for (int64_t kw = 0; kw < kernel[1]; ++kw) {
            const int64_t w = column * strides[1] + kw * dilations[1] - pads[1];
            if (h >= 0 && h < x[1] && w >= 0 && w < x[2]) cells[count++] = image + (h * x[2] + w) * channels;
          }
        }
        uint8_t* to = out[0].as<uint8_t>() + (line * y[2] + column) * channels;
        if (count > 0)
          quant.maximum(cells.data(), static_cast<int64_t>(count), is_signed, to, channels);
        else
          std::fill_n(to, channels, is_signed ? uint8_t{0x80} : uint8_t{0});
      }
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
