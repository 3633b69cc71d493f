// quant_table.cc: lists the operators of this family that have a reference kernel: quantisation and narrow types.

#include "kernels/ref/quant.h"

namespace serin::kernels::ref {

namespace {

constexpr GenericRow kRows[] = {
    {"BitCast", bit_cast},
    {"Cast", cast_by_name},
    {"ConvInteger", conv_integer},
    {"DequantizeLinear", dequantize_linear},
    {"DynamicQuantizeLinear", dynamic_quantize_linear},
    {"DynamicQuantizeMatMul", dynamic_quantize_matmul},
    {"MatMulInteger", matmul_integer},
    {"MatMulNBits", matmul_nbits},
    {"QLinearConv", qlinear_conv},
    {"QLinearMatMul", qlinear_matmul},
    {"QuantizeLinear", quantize_linear},
    {"QuantizedBinary", quantized_binary},
    {"QuantizedGlobalAveragePool", quantized_global_average_pool},
    {"QuantizedLookup", quantized_lookup},
    {"QuantizedMatMul", quantized_matmul},
    {"QuantizedMaxPool", quantized_max_pool},
};

}  // namespace

std::span<const GenericRow> quant_kernels() { return kRows; }

}  // namespace serin::kernels::ref
