// quant.h: The loops over quantised tensors, as a table of plain functions for each instruction set (the interface: simd.h).
//
// Everything uses one instruction: four bytes of an unsigned operand times four of a signed one, summed into 32 bits (vpdpbusd).
// Activations are the unsigned operand, weights the signed one. Signed activations are made unsigned by flipping their top bit, which adds
// 128 to each; the zero point corrects that. Without that instruction (AVX2, portable) pairs of 16 bits are multiplied instead, which is
// equally exact. AVX2 has an instruction for bytes that saturates sums of two products at 16 bits. Weights between -64 and 64 cannot
// reach that, and quantisers write such for machines without VNNI ("reduce_range"), so they have loops of their own.
#pragma once

#include <cstdint>

namespace serin::kernels::cpu {

/// Processing of the sums of one column: y = (sum + bias) * scale.
struct QuantColumns {
  const int32_t* bias;
  const float* scale;
};

/// y, quantised: rounded, at least `low` (the zero point if a Relu follows) and within the type of y.
struct QuantTo {
  int32_t zero, low, high;
};

/// y + residual, quantised again: the residual's bytes are laid out as y's. Then perhaps a third time, for models that quantise before a
/// Relu and after it.
struct QuantSum {
  const void* residual;  ///< null: none
  bool residual_signed;
  int32_t residual_zero;
  float residual_scale, own_scale;  ///< relative to the scale of the sum
  QuantTo to;
  bool again;
  float again_scale;
  QuantTo again_to;
};

/// y[m, n] = rows * panel, for n <= Quant::panel_width columns.
///
/// Row r consists of `taps` pieces, each `steps` times the group of bytes that one multiplication takes. Piece t begins at base + offsets[t
/// * offset_step + r], or is `padding` if that offset is negative. So a convolution reads its input in place: a tap is a cell of the
/// window, a piece all channels of one pixel. Without offsets the rows are row_step apart, and in one piece.
struct QuantGemm {
  const uint8_t* base;
  const int32_t* offsets;
  int64_t offset_step, row_step;
  const uint8_t* padding;
  int64_t m, n, taps, steps;
  bool flip;  ///< the rows contain signed bytes
  const void* panel;
  QuantColumns columns;
  void* y;
  int64_t y_row;       ///< elements between the rows of y
  const void* next;    ///< the next panel, to be prefetched: null, or
  int64_t next_bytes;  ///< this number of bytes
};

struct Quant {
  const char* name;     ///< of kernels that use these loops; "": as their row is called
  const Quant* narrow;  ///< faster loops for weights that fit seven bits (-64 to 64), just as exact; null: none
  /// Bytes of a row in one step, and columns of a packed panel.
  int64_t group, panel_width, lanes;
  /// Packs columns [0, n) of a weight whose element (k, j) is at w[k * k_step + j * n_step]: `taps` pieces of k values each, padded to
  /// whole steps. The pieces are tap_step apart. Columns are padded to whole vectors of `lanes`; each step of such a vector takes 4 * lanes
  /// bytes.
  void (*pack_panel)(const int8_t* w, int64_t k_step, int64_t n_step, int64_t tap_step, int64_t taps, int64_t k, int64_t n, void* panel);
  void (*gemm_to_bytes)(const QuantGemm& gemm, const QuantTo& to, const QuantSum* sum);
  /// Includes bias and activation; `extra` is null or a value added in f32 to each column.
  void (*gemm_to_float)(const QuantGemm& gemm, const float* extra, float low);

  /// y[c] = finished sum over the taps t of piece t [c] * w[t, c]: a convolution with one filter for each channel, m pixels. w: [taps, n]
  /// of 32 bits.
  void (*depthwise)(const QuantGemm& gemm, const QuantTo& to);

  /// y = round(x / scale) + zero, within `to`; and (x - zero) * scale.
  void (*quantise)(const float* x, uint8_t* y, int64_t n, float scale, const QuantTo& to);
  void (*dequantise)(const uint8_t* x, bool is_signed, float* y, int64_t n, float scale, int32_t zero);
  void (*range)(const float* x, int64_t n, float* low, float* high);  ///< includes 0; NaN is ignored
  /// y = max((y - shift * sums) * scale + bias, low): the finish of a row of a product with its own zero point and scale.
  void (*rescale)(float* y, int64_t n, const float* sums, float shift, float scale, const float* bias, float low);
  void (*lookup)(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t n);  ///< y = table[x], of 256 bytes
  /// y = round(a * a_scale + b * b_scale) + zero, within `to`, of numbers less their zero points; a sum of bytes.
  void (*sum)(const uint8_t* a, const uint8_t* b, bool a_signed, bool b_signed, uint8_t* y, int64_t n, const QuantSum& of, int32_t a_zero);
  /// y = round(a * b * own_scale) + zero, likewise.
  void (*product)(const uint8_t* a, const uint8_t* b, bool a_signed, bool b_signed, uint8_t* y, int64_t n, const QuantSum& of,
                  int32_t a_zero);
  void (*maximum)(const uint8_t* const* rows, int64_t count, bool is_signed, uint8_t* y, int64_t n);  ///< over `count` rows
  void (*add_rows)(const uint8_t* x, bool is_signed, int64_t rows, int64_t row_step, int64_t n, int32_t* sums);
};

extern const Quant kQuantPortable;
extern const Quant kQuantAvx2;  // x86-64 only, as the next
extern const Quant kQuantAvx512Vnni;

}  // namespace serin::kernels::cpu
