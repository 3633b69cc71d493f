// quant_matmul.cc: products of a quantised matrix with a weight: QuantizedMatMul, and DynamicQuantizeMatMul, which quantises its left operand first: as a
// whole, or each row by itself.
//
// The zero point of a and the column sums of b are one more bias. b is packed without its own zero point, in two or three parts where that takes more than a
// signed byte (quant.h): older quantisers write weights of u8 around any number.

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/quant.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kRowsOfBlock = 192;

/// b is one matrix of bytes that is known at load, with a scale and a zero point for all or for each column.
bool is_weight(const OpDesc& desc, size_t b, size_t scale, size_t zero, std::string& why) {
  const TensorDesc& weight = desc.inputs[b];
  if (weight.shape.rank() != 2 || !is_byte(weight.dtype) || !weight.constant || weight.shape.elements() == 0) {
    why = "b is not one matrix that is known at load";
    return false;
  }
  const TensorDesc& scales = desc.inputs[scale];
  if (scales.dtype != DType::kFloat32 || !scales.constant || (scales.shape.elements() != 1 && scales.shape.elements() != weight.shape[1])) {
    why = "the scale of b is not known at load";
    return false;
  }
  if (known_zeros(desc, b, zero, weight.shape[1])) return true;
  why = "the zero point of b is not known at load";
  return false;
}

std::vector<float> scales_of(const TensorDesc& scale, int64_t n) {
  const auto* values = scale.constant.as<float>();
  std::vector<float> scales(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) scales[static_cast<size_t>(j)] = values[scale.shape.elements() == 1 ? 0 : j];
  return scales;
}

/// What both kinds share: the blocks of the product.
class QuantProduct {
 public:
  /// b's zero point comes two operands behind it.
  QuantProduct(const Quant& quant, const OpDesc& desc, size_t b, PrepareContext& context)
      : quant_(quant), k_(desc.inputs[b].shape[0]), n_(desc.inputs[b].shape[1]) {
    const std::vector<int32_t> zeros = *known_zeros(desc, b, b + 2, n_);
    const int64_t parts = parts_of(desc.inputs[b].dtype, zeros);
    weight_ = pack_weight(quant, {1, k_, n_, 0, n_, 1}, desc.inputs[b], zeros, parts, context);
    for (int64_t i = 0; parts > 1 && i < parts * kRowsOfBlock; ++i) offsets_.push_back(static_cast<int32_t>(i % kRowsOfBlock * padded_k()));
  }

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  /// Bytes between rows of a where they are in scratch: whole groups.
  int64_t padded_k() const { return weight_.steps * quant_.group; }
  std::span<const int32_t> column_sums() const { return weight_.column_sums; }

  /// `a`: [rows, padded_k()]. Calls finish(gemm, row, column) for each block of rows and panel of columns; gemm.y is to be set.
  template <class F>
  void each_block(const Stream& stream, const uint8_t* a, int64_t rows, bool flip, const QuantColumns& columns, F&& finish) const {
    const int64_t blocks = (rows + kRowsOfBlock - 1) / kRowsOfBlock, panels = (n_ + quant_.panel_width - 1) / quant_.panel_width;
    parallel_for(stream, blocks * panels, [&](int64_t task, int) {
      const int64_t row = task / panels * kRowsOfBlock, column = task % panels * quant_.panel_width;
      QuantGemm gemm{.base = a + row * padded_k(),
                     .offsets = offsets_.empty() ? nullptr : offsets_.data(),
                     .offset_step = kRowsOfBlock,
                     .row_step = padded_k(),
                     .padding = nullptr,
                     .m = std::min(kRowsOfBlock, rows - row),
                     .n = std::min(quant_.panel_width, n_ - column),
                     .taps = weight_.taps,
                     .steps = weight_.steps,
                     .flip = flip,
                     .panel = weight_.panel(column, quant_.panel_width),
                     .columns = {columns.bias + column, columns.scale + column},
                     .y = nullptr,
                     .y_row = n_,
                     .next = nullptr,
                     .next_bytes = 0};
      if (const int64_t next = column + quant_.panel_width; next < n_) {
        gemm.next = weight_.panel(next, quant_.panel_width);
        gemm.next_bytes = weight_.bytes(next, quant_.panel_width);
      }
      finish(gemm, row, column);
    });
  }

 private:
  const Quant& quant_;
  int64_t k_, n_;
  PackedWeight weight_;
  std::vector<int32_t> offsets_;  // of a block's rows, for each part of the weight; none where there is one
};

class QuantMatMulKernel final : public Kernel {
 public:
  QuantMatMulKernel(const Quant& quant, const OpDesc& desc, PrepareContext& context)
      : quant_(quant),
        product_(quant, desc, 3, context),
        flip_(desc.inputs[0].dtype == DType::kInt8),
        real_(desc.outputs[0].dtype == DType::kFloat32) {
    const int32_t zero = *known_zero(desc, 2) + (flip_ ? 128 : 0);
    const bool relu = has_relu(desc, "activation");
    low_ = relu ? 0.f : -std::numeric_limits<float>::infinity();
    scale_ = scales_of(desc.inputs[4], product_.n());
    for (float& each : scale_) each *= *known_scale(desc, 1);
    if (!real_) {
      to_ = *known_target(desc, 8, desc.outputs[0].dtype, relu);
      for (float& each : scale_) each /= *known_scale(desc, 7);
    }
    const auto* bias = has_operand(desc, 6) ? desc.inputs[6].constant.as<int32_t>() : nullptr;
    for (int64_t j = 0; j < product_.n(); ++j)
      bias_.push_back((bias ? bias[j] : 0) - zero * product_.column_sums()[static_cast<size_t>(j)]);
    rows_bound_ = desc.inputs[0].shape.elements() / product_.k();
  }

  size_t scratch_bytes() const override { return copies() ? static_cast<size_t>(rows_bound_ * product_.padded_k()) : 0; }
  uint32_t packed_inputs() const override { return 1u << 3; }
  std::string_view name() const override { return quant_.name; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const int64_t k = product_.k(), rows = in[0].elements() / k, padded = product_.padded_k();
    const uint8_t* a = in[0].as<const uint8_t>();
    if (copies()) {
      auto* copy = reinterpret_cast<uint8_t*>(stream.scratch);
      std::memset(copy, 0, static_cast<size_t>(rows * padded));
      for (int64_t r = 0; r < rows; ++r) std::memcpy(copy + r * padded, a + r * k, static_cast<size_t>(k));
      a = copy;
    }
    product_.each_block(stream, a, rows, flip_, {bias_.data(), scale_.data()}, [&](QuantGemm& gemm, int64_t row, int64_t column) {
      const int64_t at = row * product_.n() + column;
      if (real_) {
        gemm.y = out[0].as<float>() + at;
        quant_.gemm_to_float(gemm, nullptr, low_);
      } else {
        gemm.y = out[0].as<uint8_t>() + at;
        quant_.gemm_to_bytes(gemm, to_, nullptr);
      }
    });
    return kOk;
  }

 private:
  /// A step must not read past the end of a row's last group.
  bool copies() const { return product_.padded_k() != product_.k(); }

  const Quant& quant_;
  const QuantProduct product_;
  const bool flip_, real_;
  float low_ = 0;
  QuantTo to_{};
  std::vector<int32_t> bias_;
  std::vector<float> scale_;
  int64_t rows_bound_ = 0;
};

class DynamicQuantMatMulKernel final : public Kernel {
 public:
  DynamicQuantMatMulKernel(const Quant& quant, const OpDesc& desc, PrepareContext& context)
      : quant_(quant), product_(quant, desc, 1, context), b_scale_(scales_of(desc.inputs[2], product_.n())) {
    low_ = has_relu(desc, "activation") ? 0.f : -std::numeric_limits<float>::infinity();
    if (has_operand(desc, 4)) {
      const auto* bias = desc.inputs[4].constant.as<float>();
      bias_.assign(bias, bias + product_.n());
    }
    rows_bound_ = desc.inputs[0].shape.elements() / product_.k();
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(rows_bound_ * product_.padded_k()) + kAlign +
           static_cast<size_t>(product_.n()) * (sizeof(int32_t) + sizeof(float));
  }
  uint32_t packed_inputs() const override { return 1u << 1; }
  std::string_view name() const override { return quant_.name; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const int64_t k = product_.k(), n = product_.n(), rows = in[0].elements() / k, padded = product_.padded_k();
    const float* x = in[0].as<const float>();
    float low = 0, high = 0;
    quant_.range(x, rows * k, &low, &high);
    const auto [scale, zero] = DynamicScale::of(low, high);
    const QuantTo to{zero, 0, 255};

    auto* columns_scale = reinterpret_cast<float*>(stream.scratch);
    auto* columns_bias = reinterpret_cast<int32_t*>(columns_scale + n);
    auto* a = reinterpret_cast<uint8_t*>(columns_bias + n);
    for (int64_t j = 0; j < n; ++j) {
      columns_scale[j] = scale * b_scale_[static_cast<size_t>(j)];
      columns_bias[j] = -zero * product_.column_sums()[static_cast<size_t>(j)];
    }
    if (padded == k) {
      quant_.quantise(x, a, rows * k, scale, to);
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        quant_.quantise(x + r * k, a + r * padded, k, scale, to);
        std::memset(a + r * padded + k, 0, static_cast<size_t>(padded - k));
      }
    }
    product_.each_block(stream, a, rows, false, {columns_bias, columns_scale}, [&](QuantGemm& gemm, int64_t row, int64_t column) {
      gemm.y = out[0].as<float>() + row * n + column;
      quant_.gemm_to_float(gemm, bias_.empty() ? nullptr : bias_.data() + column, low_);
    });
    return kOk;
  }

 private:
  static constexpr size_t kAlign = 64;

  const Quant& quant_;
  const QuantProduct product_;
  const std::vector<float> b_scale_;
  std::vector<float> bias_;
  float low_ = 0;
  int64_t rows_bound_ = 0;
};

/// As DynamicQuantMatMulKernel, with a scale and zero point for each row. Zero points that differ are taken out afterwards, in f32, but for the 128 that they
/// lie around: what is taken out is small then.
class RowQuantMatMulKernel final : public Kernel {
 public:
  RowQuantMatMulKernel(const Quant& quant, const OpDesc& desc, PrepareContext& context)
      : quant_(quant), product_(quant, desc, 1, context), b_scale_(scales_of(desc.inputs[2], product_.n())) {
    low_ = has_relu(desc, "activation") ? 0.f : -std::numeric_limits<float>::infinity();
    const auto* bias = has_operand(desc, 4) ? desc.inputs[4].constant.as<float>() : nullptr;
    for (int64_t j = 0; j < product_.n(); ++j) {
      const int32_t sum = product_.column_sums()[static_cast<size_t>(j)];
      middle_.push_back(-kMiddle * sum);
      b_sum_.push_back(b_scale_[static_cast<size_t>(j)] * static_cast<float>(sum));
      bias_.push_back(bias ? bias[j] : 0.f);
    }
    rows_bound_ = desc.inputs[0].shape.elements() / product_.k();
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(rows_bound_) * (static_cast<size_t>(product_.padded_k()) + sizeof(Row));
  }
  uint32_t packed_inputs() const override { return 1u << 1; }
  std::string_view name() const override { return quant_.name; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const int64_t k = product_.k(), n = product_.n(), rows = in[0].elements() / k, padded = product_.padded_k();
    auto* a = reinterpret_cast<uint8_t*>(stream.scratch);
    auto* of_rows = reinterpret_cast<Row*>(a + rows_bound_ * padded);
    const float* x = in[0].as<const float>();
    parallel_for(stream, rows, [&](int64_t r, int) { of_rows[r] = quantise_row(x + r * k, a + r * padded); });
    constexpr float kNoLimit = -std::numeric_limits<float>::infinity();
    product_.each_block(stream, a, rows, false, {middle_.data(), b_scale_.data()}, [&](QuantGemm& gemm, int64_t row, int64_t column) {
      auto* y = out[0].as<float>() + row * n + column;
      gemm.y = y;
      quant_.gemm_to_float(gemm, nullptr, kNoLimit);
      for (int64_t r = 0; r < gemm.m; ++r) {
        const Row& of_row = of_rows[row + r];
        quant_.rescale(y + r * n, gemm.n, b_sum_.data() + column, of_row.beyond_middle, of_row.scale, bias_.data() + column, low_);
      }
    });
    return kOk;
  }

 private:
  static constexpr int32_t kMiddle = 128;
  struct Row {
    float scale, beyond_middle;
  };

  Row quantise_row(const float* x, uint8_t* bytes) const {
    const int64_t k = product_.k();
    float low = 0, high = 0;
    quant_.range(x, k, &low, &high);
    const auto [scale, zero] = DynamicScale::of(low, high);
    quant_.quantise(x, bytes, k, scale, {zero, 0, 255});
    std::memset(bytes + k, 0, static_cast<size_t>(product_.padded_k() - k));
    return {scale, static_cast<float>(zero - kMiddle)};
  }

  const Quant& quant_;
  const QuantProduct product_;
  const std::vector<float> b_scale_;
  std::vector<int32_t> middle_;
  std::vector<float> b_sum_, bias_;
  float low_ = 0;
  int64_t rows_bound_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> quant_matmul(const Quant& loops, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const bool dynamic = std::get<Generic>(desc.op).name == "DynamicQuantizeMatMul";
  const size_t b = dynamic ? 1 : 3;
  if (desc.inputs.size() < (dynamic ? 3u : 5u) || desc.outputs.size() != 1) return refuse(why, "unexpected number of operands");
  if (!is_weight(desc, b, b + 1, b + 2, why)) return nullptr;
  const Quant& quant = loops_for(&loops, desc.inputs[b], *known_zeros(desc, b, b + 2, desc.inputs[b].shape[1]));
  const TensorDesc& a = desc.inputs[0];
  if (a.shape.rank() < 1 || a.shape.back() != desc.inputs[b].shape[0]) return refuse(why, "a does not fit b");
  const int64_t n = desc.inputs[b].shape[1];
  const size_t bias = dynamic ? 4 : 6;
  if (has_operand(desc, bias) && (!desc.inputs[bias].constant || desc.inputs[bias].shape.elements() != n ||
                                  desc.inputs[bias].dtype != (dynamic ? DType::kFloat32 : DType::kInt32)))
    return refuse(why, "the bias is not known at load");
  if (dynamic) {
    if (a.dtype != DType::kFloat32 || desc.outputs[0].dtype != DType::kFloat32) return refuse(why, "f32 only");
    if (attributes_of(desc).integer("by_row", 0) != 0) return std::make_unique<RowQuantMatMulKernel>(quant, desc, context);
    return std::make_unique<DynamicQuantMatMulKernel>(quant, desc, context);
  }
  const bool real = desc.outputs[0].dtype == DType::kFloat32;
  if (!is_byte(a.dtype) || (!real && !is_byte(desc.outputs[0].dtype))) return refuse(why, "bytes only");
  if (!known_scale(desc, 1) || !known_zero(desc, 2) || (!real && (!known_scale(desc, 7) || !known_zero(desc, 8))))
    return refuse(why, "a scale or zero point is not known at load");
  std::vector<float> factors = scales_of(desc.inputs[4], n);
  for (float& factor : factors) factor *= *known_scale(desc, 1) / (real ? 1.f : *known_scale(desc, 7));
  if (!real && !scales_fit(factors, desc.inputs[3].shape[0])) return refuse(why, "the scale of the result is very small");
  return std::make_unique<QuantMatMulKernel>(quant, desc, context);
}

}  // namespace serin::kernels::cpu
