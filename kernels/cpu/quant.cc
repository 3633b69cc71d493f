// quant.cc: from names to the vector kernels of quantised tensors, and what these share: parameters that are known at load, packed weights.

#include "kernels/cpu/quant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

struct Row {
  std::string_view name;
  QuantPrepare prepare;
};
constexpr Row kRows[] = {
    {"DequantizeLinear", dequantize_linear},
    {"DynamicQuantizeMatMul", quant_matmul},
    {"QLinearConv", quant_conv},
    {"QuantizeLinear", quantize_linear},
    {"QuantizedBinary", quant_binary},
    {"QuantizedGlobalAveragePool", quant_global_average_pool},
    {"QuantizedLookup", quant_lookup},
    {"QuantizedMatMul", quant_matmul},
    {"QuantizedMaxPool", quant_max_pool},
};

void sum_columns(const WeightLayout& layout, const int8_t* source, int32_t* sums) {
  for (int64_t j = 0; j < layout.n; ++j) {
    int32_t sum = 0;
    for (int64_t t = 0; t < layout.taps; ++t)
      for (int64_t p = 0; p < layout.k; ++p) sum += source[t * layout.tap_step + p * layout.k_step + j * layout.n_step];
    sums[j] = sum;
  }
}

}  // namespace

std::unique_ptr<Kernel> quantised(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const std::string& name = std::get<Generic>(desc.op).name;
  const auto row = std::ranges::find(kRows, name, &Row::name);
  return row == std::end(kRows) ? refuse(why, "not an operator on quantised tensors") : row->prepare(quant, desc, context, why);
}

std::optional<float> known_scale(const OpDesc& desc, size_t i) {
  if (!has_operand(desc, i)) return std::nullopt;
  const TensorDesc& scale = desc.inputs[i];
  if (!scale.constant || scale.dtype != DType::kFloat32 || scale.shape.elements() != 1) return std::nullopt;
  return *scale.constant.as<float>();
}

std::optional<int32_t> known_zero(const OpDesc& desc, size_t i) {
  if (!has_operand(desc, i)) return 0;
  const TensorDesc& zero = desc.inputs[i];
  if (!zero.constant || !is_byte(zero.dtype) || zero.shape.elements() != 1) return std::nullopt;
  if (zero.dtype == DType::kInt8) return *zero.constant.as<int8_t>();
  return *zero.constant.as<uint8_t>();
}

std::optional<QuantTo> known_target(const OpDesc& desc, size_t zero_operand, DType dtype, bool relu) {
  const auto zero = known_zero(desc, zero_operand);
  if (!zero || !is_byte(dtype)) return std::nullopt;
  const bool is_signed = dtype == DType::kInt8;
  const int32_t low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
  return QuantTo{*zero, relu ? std::max(low, *zero) : low, high};
}

bool scales_fit(std::span<const float> scales, int64_t products) {
  const double largest = static_cast<double>(products) * 256 * 128;
  return std::ranges::all_of(scales, [largest](float scale) { return largest * std::abs(static_cast<double>(scale)) < 0x1p30; });
}

PackedWeight pack_weight(const Quant& quant, const WeightLayout& layout, const TensorDesc& weight, PrepareContext& context) {
  PackedWeight packed;
  packed.n = layout.n;
  packed.taps = layout.taps;
  packed.steps = (layout.k + quant.group - 1) / quant.group;
  const int64_t lanes = (layout.n + quant.lanes - 1) / quant.lanes * quant.lanes;
  const int64_t column_bytes = layout.taps * packed.steps * 4;
  packed.panel_bytes = quant.panel_width * column_bytes;

  const std::string key = "quant" + std::to_string(quant.group) + "x" + std::to_string(quant.panel_width) + ":" +
                          std::to_string(layout.taps) + "," + std::to_string(layout.k_step) + "," + std::to_string(layout.n_step) + "," +
                          std::to_string(layout.tap_step);
  const auto panels = static_cast<size_t>(lanes * column_bytes), sums = static_cast<size_t>(layout.n) * sizeof(int32_t);
  packed.buffer = context.weights->get(weight.constant_id, key, panels + sums, [&](std::byte* data) {
    // Unsigned weights become signed by taking 128 off each; so does their zero point.
    std::vector<int8_t> moved;
    const auto* source = weight.constant.as<int8_t>();
    if (weight.dtype == DType::kUInt8) {
      moved.assign(source, source + weight.shape.elements());
      for (int8_t& each : moved) each = static_cast<int8_t>(each ^ 0x80);
      source = moved.data();
    }
    for (int64_t j = 0; j < layout.n; j += quant.panel_width) {
      quant.pack_panel(source + j * layout.n_step, layout.k_step, layout.n_step, layout.tap_step, layout.taps, layout.k,
                       std::min(quant.panel_width, layout.n - j), data + j / quant.panel_width * packed.panel_bytes);
    }
    sum_columns(layout, source, reinterpret_cast<int32_t*>(data + panels));
  });
  packed.column_sums = {reinterpret_cast<const int32_t*>(packed.buffer->data + panels), static_cast<size_t>(layout.n)};
  return packed;
}

}  // namespace serin::kernels::cpu
