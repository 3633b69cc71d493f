// quant_operators.cc: lists the operators of this family that are read: quantisation and narrow types.

#include <fmt/format.h>

#include "kernels/narrow.h"
#include "runtime/formats/onnx/operands.h"
#include "runtime/formats/onnx/operators.h"
#include "runtime/formats/onnx/quant.h"

namespace serin::formats::onnx {

using graph::Op;

namespace {

/// `to` as the name that the graph has for it. The first versions of Cast had it as text.
Result<DType> target_dtype(NodeImport& node, std::string_view key) {
  const AttributeProto* const to = node.attribute(key);
  if (to && to->type == AttributeProto::Type::kString) return dtype_named(to->s);
  return dtype_from(node.required_integer(key));
}

/// What says how floats beyond the range of a narrow type convert.
void copy_rounding(NodeImport& node, graph::Attributes& attributes) {
  if (!node.flag("saturate", true)) attributes.emplace("saturate", int64_t{0});
  const std::string round_mode = node.text("round_mode", "up");
  if (!kernels::find_round_mode(round_mode)) node.corrupt(fmt::format("round_mode is '{}'; up, down and nearest are allowed", round_mode));
  if (round_mode != "up") attributes.emplace("round_mode", round_mode);
}

/// A dtype attribute that may be absent or 0: not said.
void copy_dtype(NodeImport& node, std::string_view key, graph::Attributes& attributes) {
  if (node.integer(key, 0) != 0) add_dtype(node, key, attributes);
}

void import_bit_cast(NodeImport& node, Op op) {
  const auto dtype = target_dtype(node, "to");
  if (!dtype) return node.fail(dtype.error().code, dtype.error().message);
  node.emit(op, {node.input(0)}, {{"to", std::string(dtype_name(*dtype))}});
}

void import_cast_like(NodeImport& node, Op op) {
  graph::Attributes attributes;
  copy_rounding(node, attributes);
  node.emit(op, node.inputs(), std::move(attributes));
}

constexpr OperatorRow kQuantOperators[] = {
    {"BitCast", 26, 1, 1, 1, import_bit_cast, Op::kBitCast},
    {"CastLike", 15, 2, 2, 1, import_cast_like, Op::kCastLike},
    {"ConvInteger", 10, 2, 4, 1, import_conv, Op::kConvInteger},
    {"DequantizeLinear", 10, 2, 3, 1, import_dequantize_linear, Op::kDequantizeLinear},
    {"DynamicQuantizeLinear", 11, 1, 1, 3, import_plain, Op::kDynamicQuantizeLinear},
    {"MatMulInteger", 10, 2, 4, 1, import_plain, Op::kMatMulInteger},
    {"QLinearConv", 10, 8, 9, 1, import_conv, Op::kQLinearConv},
    {"QLinearMatMul", 10, 8, 8, 1, import_plain, Op::kQLinearMatMul},
    {"QuantizeLinear", 10, 2, 3, 1, import_quantize_linear, Op::kQuantizeLinear},
};

}  // namespace

void import_cast(NodeImport& node, Op op) {
  const auto dtype = target_dtype(node, "to");
  if (!dtype) return node.fail(dtype.error().code, dtype.error().message);
  graph::Attributes attributes{{"to", std::string(dtype_name(*dtype))}};
  copy_rounding(node, attributes);
  node.emit(op, {node.input(0)}, std::move(attributes));
}

void import_quantize_linear(NodeImport& node, Op op) {
  graph::Attributes attributes{{"axis", node.integer("axis", 1)}, {"block_size", node.integer("block_size", 0)}};
  if (!node.flag("saturate", true)) attributes.emplace("saturate", int64_t{0});
  copy_dtype(node, "output_dtype", attributes);
  copy_dtype(node, "precision", attributes);
  node.emit(op, node.inputs(), std::move(attributes));
}

void import_dequantize_linear(NodeImport& node, Op op) {
  graph::Attributes attributes{{"axis", node.integer("axis", 1)}, {"block_size", node.integer("block_size", 0)}};
  copy_dtype(node, "output_dtype", attributes);
  node.emit(op, node.inputs(), std::move(attributes));
}

OperatorFamily quant_operators() { return {"", kQuantOperators}; }

}  // namespace serin::formats::onnx
