// quant.h: The vector kernels of quantised tensors, by the name of the operator (kernels::Generic).
//
// Scales and zero points must be known at load, except in conversions from f32 to bytes and back. The reference kernels handle everything
// else (other types, computed weights).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/simd/quant.h"
#include "kernels/cpu/simd/simd.h"
#include "kernels/quantise.h"

namespace serin::kernels::cpu {

/// Weights of 4 and 8 bits in blocks, times f32.
std::unique_ptr<Kernel> matmul_nbits(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

/// Any of them: finds the rows below by name.
std::unique_ptr<Kernel> quantised(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);

using QuantPrepare = std::unique_ptr<Kernel> (*)(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> quant_conv(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> quant_matmul(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> quant_binary(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> quant_lookup(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> quant_global_average_pool(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> quant_max_pool(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> quantize_linear(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> dequantize_linear(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> dynamic_quantize_linear(const Quant& quant, const OpDesc& desc, PrepareContext& context, std::string& why);

// ---- shared parts ----

inline const Attributes& attributes_of(const OpDesc& desc) { return std::get<Generic>(desc.op).attributes; }

/// Known at load, and a single number.
std::optional<float> known_scale(const OpDesc& desc, size_t i);
std::optional<int32_t> known_zero(const OpDesc& desc, size_t i);  ///< 0 if the operand is absent
/// y's type and zero point; after a Relu nothing below it.
std::optional<QuantTo> known_target(const OpDesc& desc, size_t zero_operand, DType dtype, bool relu);
/// Whether sums of `products` products of bytes less their zero points, times one of the scales, stay far below the limit of 32 bits.
bool scales_fit(std::span<const float> scales, int64_t products);
inline bool has_relu(const OpDesc& desc, std::string_view key) { return attributes_of(desc).text(key, "") == "Relu"; }

/// The zero points of a weight's n columns, from an operand with one for all or one for each; nothing if it is not known at load.
std::optional<std::vector<int32_t>> known_zeros(const OpDesc& desc, size_t weight, size_t zero, int64_t n);

/// A weight packed for Quant::gemm_*: panels of Quant::panel_width columns, then the sums of the columns, which correct for the rows' zero
/// point.
///
/// Its elements are those of the operand less their zero points. If these do not fit a signed byte (u8 around another number than 128) they
/// are the sum of `parts` that do. Each tap is repeated for each part, and multiplied with the same piece of a row.
struct PackedWeight {
  std::shared_ptr<const PackedWeights::Buffer> buffer;
  int64_t n = 0, taps = 0, steps = 0;  ///< taps: of all parts
  int64_t panel_bytes = 0;             ///< of a whole panel
  std::span<const int32_t> column_sums;

  const void* panel(int64_t column, int64_t panel_width) const { return buffer->data + column / panel_width * panel_bytes; }
  /// Of the panel that begins at `column`.
  int64_t bytes(int64_t column, int64_t panel_width) const {
    const auto panels = static_cast<int64_t>(buffer->bytes - column_sums.size_bytes());
    return std::min(panel_bytes, panels - column / panel_width * panel_bytes);
  }
};
/// The address of element (tap, k, column) of a weight.
struct WeightLayout {
  int64_t taps, k, n;
  int64_t tap_step, k_step, n_step;
};
/// The loops for this weight: quant->narrow if all elements less their zero points fit it.
const Quant& loops_for(const Quant* quant, const TensorDesc& weight, std::span<const int32_t> zeros);
/// How many signed bytes add up to any element of that type less its zero point.
int64_t parts_of(DType dtype, std::span<const int32_t> zeros);
PackedWeight pack_weight(const Quant& quant, const WeightLayout& layout, const TensorDesc& weight, std::span<const int32_t> zeros,
                         int64_t parts, PrepareContext& context);

}  // namespace serin::kernels::cpu
