// quant.cc: maps operator names to the vector kernels of quantised tensors, and reads the parameters and weights that these kernels share.

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
    {"DynamicQuantizeLinear", dynamic_quantize_linear},
    {"DynamicQuantizeMatMul", quant_matmul},
    {"QLinearConv", quant_conv},
    {"QuantizeLinear", quantize_linear},
    {"QuantizedBinary", quant_binary},
    {"QuantizedGlobalAveragePool", quant_global_average_pool},
    {"QuantizedLookup", quant_lookup},
    {"QuantizedMatMul", quant_matmul},
    {"QuantizedMaxPool", quant_max_pool},
};

constexpr int32_t kLeast = -128, kMost = 127;

/// Element (tap, k, column) as the columns' taps, their parts, k innermost.
std::vector<int8_t> in_parts(const WeightLayout& layout, const TensorDesc& weight, std::span<const int32_t> zeros, int64_t parts) {
  const bool is_signed = weight.dtype == DType::kInt8;
  const auto* const source = weight.constant.as<uint8_t>();
  std::vector<int8_t> made(static_cast<size_t>(layout.n * layout.taps * parts * layout.k));
  auto* to = made.data();
  for (int64_t j = 0; j < layout.n; ++j) {
    for (int64_t t = 0; t < layout.taps; ++t, to += parts * layout.k) {
      for (int64_t p = 0; p < layout.k; ++p) {
        const uint8_t byte = source[t * layout.tap_step + p * layout.k_step + j * layout.n_step];
        int32_t rest = (is_signed ? static_cast<int8_t>(byte) : byte) - zeros[static_cast<size_t>(j)];
        for (int64_t part = 0; part < parts; ++part) {
          const int32_t own = std::clamp(rest, kLeast, kMost);
          to[part * layout.k + p] = static_cast<int8_t>(own);
          rest -= own;
        }
      }
    }
  }
  return made;
}

void sum_columns(const WeightLayout& layout, const int8_t* source, int32_t* sums) {
  for (int64_t j = 0; j < layout.n; ++j) {
    int32_t sum = 0;
    for (int64_t t = 0; t < layout.taps; ++t)
      for (int64_t p = 0; p < layout.k; ++p) sum += source[t * layout.tap_step + p * layout.k_step + j * layout.n_step];
    sums[j] = sum;
  }
}

/// "" where all are 0.
std::string key_of(std::span<const int32_t> zeros) {
  const bool one = std::ranges::all_of(zeros, [&](int32_t zero) { return zero == zeros[0]; });
  if (one && zeros[0] == 0) return {};
  std::string key;
  for (const int32_t zero : zeros.first(one ? 1 : zeros.size())) key += " " + std::to_string(zero);
  return key;
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
  const double largest = static_cast<double>(products) * 256 * 256;
  return std::ranges::all_of(scales, [largest](float scale) { return largest * std::abs(static_cast<double>(scale)) < 0x1p30; });
}

std::optional<std::vector<int32_t>> known_zeros(const OpDesc& desc, size_t weight, size_t zero, int64_t n) {
  std::vector<int32_t> zeros(static_cast<size_t>(n), 0);
  if (!has_operand(desc, zero)) return zeros;
  const TensorDesc& given = desc.inputs[zero];
  const int64_t elements = given.shape.elements();
  if (!given.constant || given.dtype != desc.inputs[weight].dtype || (elements != 1 && elements != n)) return std::nullopt;
  const auto* const bytes = given.constant.as<uint8_t>();
  for (int64_t j = 0; j < n; ++j) {
    const uint8_t byte = bytes[elements == 1 ? 0 : j];
    zeros[static_cast<size_t>(j)] = given.dtype == DType::kInt8 ? static_cast<int8_t>(byte) : byte;
  }
  return zeros;
}

int64_t parts_of(DType dtype, std::span<const int32_t> zeros) {
  const auto [least, most] = std::ranges::minmax(zeros);
  const int32_t low = (dtype == DType::kInt8 ? -128 : 0) - most, high = (dtype == DType::kInt8 ? 127 : 255) - least;
  return std::max({int64_t{1}, (high + kMost - 1) / int64_t{kMost}, (-low - kLeast - 1) / int64_t{-kLeast}});
}

const Quant& loops_for(const Quant* quant, const TensorDesc& weight, std::span<const int32_t> zeros) {
  if (!quant->narrow) return *quant;
  constexpr int32_t kNarrow = 64;
  const auto fits = [&](auto elements) {
    const auto [low, high] = std::ranges::minmax(elements);
    const auto [least, most] = std::ranges::minmax(zeros);
    return low - most >= -kNarrow && high - least <= kNarrow;
  };
  const auto count = static_cast<size_t>(weight.shape.elements());
  const bool narrow = weight.dtype == DType::kInt8 ? fits(std::span(weight.constant.as<int8_t>(), count))
                                                   : fits(std::span(weight.constant.as<uint8_t>(), count));
  return narrow ? *quant->narrow : *quant;
}

PackedWeight pack_weight(const Quant& quant, const WeightLayout& layout, const TensorDesc& weight, std::span<const int32_t> zeros,
                         int64_t parts, PrepareContext& context) {
  PackedWeight packed;
  packed.n = layout.n;
  packed.taps = layout.taps * parts;
  packed.steps = (layout.k + quant.group - 1) / quant.group;
  const int64_t lanes = (layout.n + quant.lanes - 1) / quant.lanes * quant.lanes;
  const int64_t column_bytes = packed.taps * packed.steps * 4;
  packed.panel_bytes = quant.panel_width * column_bytes;

  const std::string zero_key = key_of(zeros);
  const std::string key = "quant" + std::to_string(quant.group) + "x" + std::to_string(quant.panel_width) + ":" +
                          std::to_string(layout.taps) + "," + std::to_string(layout.k_step) + "," + std::to_string(layout.n_step) + "," +
                          std::to_string(layout.tap_step) + zero_key;
  const auto panels = static_cast<size_t>(lanes * column_bytes), sums = static_cast<size_t>(layout.n) * sizeof(int32_t);
  packed.buffer = context.weights->get(weight.constant_id, key, panels + sums, [&](std::byte* data) {
    WeightLayout from = layout;
    std::vector<int8_t> made;
    const bool as_it_is = weight.dtype == DType::kInt8 && zero_key.empty();
    if (!as_it_is) {
      made = in_parts(layout, weight, zeros, parts);
      from = {packed.taps, layout.k, layout.n, layout.k, 1, packed.taps * layout.k};
    }
    const int8_t* const source = as_it_is ? weight.constant.as<int8_t>() : made.data();
    for (int64_t j = 0; j < from.n; j += quant.panel_width) {
      quant.pack_panel(source + j * from.n_step, from.k_step, from.n_step, from.tap_step, from.taps, from.k,
                       std::min(quant.panel_width, from.n - j), data + j / quant.panel_width * packed.panel_bytes);
    }
    sum_columns(from, source, reinterpret_cast<int32_t*>(data + panels));
  });
  packed.column_sums = {reinterpret_cast<const int32_t*>(packed.buffer->data + panels), static_cast<size_t>(layout.n)};
  return packed;
}

}  // namespace serin::kernels::cpu
