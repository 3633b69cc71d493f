// microsoft_quant.cc: the quantised operators of com.microsoft, in the terms of ONNX.
//
//   QLinearX(x, x scale, x zero, y scale, y zero)  =  QuantizeLinear(X(DequantizeLinear(x)))
//
// which is how they are defined, and what the passes for quantised graphs look for: one form is left, whichever tool wrote the model. Products of
// integers that end in a float keep the integer product, whose sums are exact.

#include <fmt/format.h>

#include "runtime/formats/onnx/operators.h"
#include "runtime/formats/onnx/quant.h"

namespace serin::formats::onnx {

using graph::kNone;
using graph::Op;
using graph::ValueId;

namespace {

/// Operands that may not be left out although some before them may.
bool has_all(NodeImport& node, std::initializer_list<size_t> operands) {
  for (const size_t i : operands) {
    if (node.input(i) == kNone) node.corrupt(fmt::format("input {} is missing", i));
  }
  return !node.error();
}

DType dtype_of_value(NodeImport& node, ValueId id) { return id == kNone ? DType::kUndefined : node.graph().value(id).type.dtype; }

/// Operand i is quantised with the scale and zero point that follow it.
ValueId dequantised(NodeImport& node, size_t i, std::string_view step, int64_t axis = 1) {
  return node.step(Op::kDequantizeLinear, step, {node.input(i), node.input(i + 1), node.input(i + 2)},
                   {{"axis", axis}, {"block_size", int64_t{0}}});
}

/// The node's result: `real`, quantised with operands i and i + 1. Without a zero point it has the type of operand `like`.
void emit_quantised(NodeImport& node, ValueId real, size_t i, size_t like = 0) {
  graph::Attributes attributes{{"axis", int64_t{1}}, {"block_size", int64_t{0}}};
  if (node.input(i + 1) == kNone) {
    const DType dtype = dtype_of_value(node, node.input(like));
    if (dtype == DType::kUndefined) return node.unsupported("has no zero point that shows the type of the result");
    attributes.emplace("output_dtype", std::string(dtype_name(dtype)));
  }
  node.emit(Op::kQuantizeLinear, {real, node.input(i), node.input(i + 1)}, std::move(attributes));
}

/// QLinearAdd, QLinearMul: a, b, y with a scale and a zero point each.
void import_qlinear_binary(NodeImport& node, Op op) {
  if (!has_all(node, {3, 4, 6})) return;
  const ValueId a = dequantised(node, 0, "a"), b = dequantised(node, 3, "b");
  emit_quantised(node, node.step(op, "y", {a, b}), 6);
}

void import_qlinear_unary(NodeImport& node, Op op) {
  if (!has_all(node, {3})) return;
  graph::Attributes attributes;
  if (op == Op::kLeakyRelu) attributes.emplace("alpha", node.number("alpha", 0.01F));
  const ValueId x = dequantised(node, 0, "x");
  emit_quantised(node, node.step(op, "y", {x}, std::move(attributes)), 3);
}

/// Until opset 13 (of the operator that was quantised) Softmax joined all axes from `axis` on.
void import_qlinear_softmax(NodeImport& node, Op) {
  if (!has_all(node, {3})) return;
  const int64_t axis = node.integer("axis", -1), opset = node.integer("opset", 13);
  const ValueId x = dequantised(node, 0, "x");
  if (opset >= 13 || axis == -1) return emit_quantised(node, node.step(Op::kSoftmax, "y", {x}, {{"axis", axis}}), 3);
  const ValueId rows = node.step(Op::kFlatten, "rows", {x}, {{"axis", axis}});
  const ValueId softmax = node.step(Op::kSoftmax, "softmax", {rows}, {{"axis", int64_t{-1}}});
  const ValueId y = node.step(Op::kReshape, "y", {softmax, node.step(Op::kShape, "shape", {x})}, {{"allowzero", int64_t{1}}});
  emit_quantised(node, y, 3);
}

void import_qlinear_concat(NodeImport& node, Op) {
  if (node.input_count() % 3 != 2)
    return node.corrupt(fmt::format("has {} inputs: a scale and a zero point, then three for each part", node.input_count()));
  for (size_t i = 2; i < node.input_count(); i += 3) {
    if (!has_all(node, {i, i + 1})) return;
  }
  std::vector<ValueId> parts;
  for (size_t i = 2; i < node.input_count(); i += 3) parts.push_back(dequantised(node, i, fmt::format("part{}", i / 3)));
  const ValueId joined = node.step(Op::kConcat, "y", std::move(parts), {{"axis", node.required_integer("axis")}});
  emit_quantised(node, joined, 0, 2);
}

/// With channels_last the pool stands between two transpositions.
class ChannelsFirst {
 public:
  explicit ChannelsFirst(NodeImport& node) : node_(node), needed_(node.flag("channels_last", false)), rank_(node.rank(0).value_or(0)) {
    if (needed_ && rank_ < 3) node.unsupported("channels_last, and the rank of the input is not known");
  }
  ValueId enter(ValueId x) { return needed_ && rank_ > 2 ? transposed(x, "channels_first", false) : x; }
  ValueId leave(ValueId y) { return needed_ && rank_ > 2 ? transposed(y, "channels_last", true) : y; }

 private:
  ValueId transposed(ValueId value, std::string_view step, bool last) {
    const auto rank = static_cast<int64_t>(rank_);
    std::vector<int64_t> perm{0};
    if (!last) perm.push_back(rank - 1);
    for (int64_t axis = last ? 2 : 1; axis < (last ? rank : rank - 1); ++axis) perm.push_back(axis);
    if (last) perm.push_back(1);
    return node_.step(Op::kTranspose, step, {value}, {{"perm", std::move(perm)}});
  }

  NodeImport& node_;
  const bool needed_;
  const size_t rank_;
};

void import_qlinear_average_pool(NodeImport& node, Op op) {
  if (!has_all(node, {3})) return;
  ChannelsFirst layout(node);
  graph::Attributes attributes = op == Op::kAveragePool ? pool_attributes(node, op) : graph::Attributes{};
  const ValueId x = layout.enter(dequantised(node, 0, "x"));
  emit_quantised(node, layout.leave(node.step(op, "y", {x}, std::move(attributes))), 3);
}

void import_qlinear_reduce_mean(NodeImport& node, Op op) {
  if (!has_all(node, {3})) return;
  graph::Attributes attributes{{"keepdims", node.integer("keepdims", 1)}};
  if (auto axes = node.integers("axes")) attributes.emplace("axes", std::move(*axes));
  const ValueId x = dequantised(node, 0, "x");
  emit_quantised(node, node.step(op, "y", {x}, std::move(attributes)), 3);
}

void import_qlinear_where(NodeImport& node, Op) {
  if (!has_all(node, {4, 5, 7})) return;
  const ValueId x = dequantised(node, 1, "x"), y = dequantised(node, 4, "y");
  emit_quantised(node, node.step(Op::kWhere, "z", {node.input(0), x, y}), 7, 1);
}

ValueId product_of_scales(NodeImport& node, size_t a, size_t b) { return node.step(Op::kMul, "scale", {node.input(a), node.input(b)}); }

/// y = alpha (a b + c), where c is i32 and has the scale of the product. Without a scale of y the result is a float.
void import_qgemm(NodeImport& node, Op) {
  if (!has_all(node, {3, 4})) return;
  const double alpha = node.number("alpha", 1);
  const bool trans_b = node.flag("transB", false);
  const ValueId a = dequantised(node, 0, "a"), b = dequantised(node, 3, "b", trans_b ? 0 : 1);
  ValueId c = kNone;
  if (node.input(6) != kNone) {
    const ValueId wide = node.step(Op::kCast, "wide", {node.input(6)}, {{"to", std::string("f32")}});
    c = node.step(Op::kMul, "c", {wide, product_of_scales(node, 1, 4)});
  }
  graph::Attributes attributes{{"alpha", alpha}, {"beta", alpha}, {"transA", node.integer("transA", 0)}, {"transB", int64_t{trans_b}}};
  std::vector<ValueId> operands{a, b};
  if (c != kNone) operands.push_back(c);
  if (node.input(7) == kNone) {
    node.emit(Op::kGemm, std::move(operands), std::move(attributes));
    return;
  }
  emit_quantised(node, node.step(Op::kGemm, "y", std::move(operands), std::move(attributes)), 7);
}

/// a, b, a scale, b scale, a zero, b zero, bias.
void import_matmul_integer_to_float(NodeImport& node, Op) {
  const ValueId whole = node.step(Op::kMatMulInteger, "product", {node.input(0), node.input(1), node.input(4), node.input(5)});
  const ValueId real = node.step(Op::kCast, "real", {whole}, {{"to", std::string("f32")}});
  const ValueId scale = product_of_scales(node, 2, 3);
  if (node.input(6) == kNone) {
    node.emit(Op::kMul, {real, scale});
    return;
  }
  node.emit(Op::kAdd, {node.step(Op::kMul, "scaled", {real, scale}), node.input(6)});
}

void import_matmul_nbits(NodeImport& node, Op op) {
  graph::Attributes attributes{{"bits", node.integer("bits", 4)}, {"accuracy_level", node.integer("accuracy_level", 0)}};
  for (const char* key : {"K", "N", "block_size"}) attributes.emplace(key, node.required_integer(key));
  node.emit(op, node.inputs(), std::move(attributes));
}

/// Weights [directions, k, 4 hidden] of bytes -> [directions, 4 hidden, k] of floats. A scale and a zero point for each direction, or for each column of each.
ValueId recurrent_weight(NodeImport& node, size_t operand, size_t scale, std::string_view name) {
  const auto rank = node.constant(scale) ? std::optional(node.constant(scale)->shape.rank()) : node.rank(scale);
  if (!rank) {
    node.unsupported("does not say whether its weights have one scale or one for each column");
    return kNone;
  }
  const std::vector<int64_t> added = *rank == 1 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1};
  const auto named = [&](const char* step) { return fmt::format("{}_{}", name, step); };
  const auto real = [&](const char* step, ValueId value) {
    return node.step(Op::kCast, named(step), {value}, {{"to", std::string("f32")}});
  };
  const auto column = [&](const char* step, ValueId value) { return node.step(Op::kUnsqueeze, named(step), {value}, {{"axes", added}}); };
  const ValueId zero = real("zero", column("zeros", node.input(scale + 1)));
  const ValueId centred = node.step(Op::kSub, named("centred"), {real("real", node.input(operand)), zero});
  const ValueId scaled = node.step(Op::kMul, named("scaled"), {centred, column("scales", node.input(scale))});
  return node.step(Op::kTranspose, named("rows"), {scaled}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
}

/// An LSTM whose weights are bytes. ONNX Runtime rounds x and the hidden state of each turn to bytes, too; here they stay floats, which is nearer to what
/// was quantised.
void import_dynamic_quantize_lstm(NodeImport& node, Op op) {
  constexpr size_t kWeight = 1, kRecurrence = 2, kOperands = 8, kWeightScale = 8, kRecurrenceScale = 10;
  if (!has_all(node, {0, kWeight, kRecurrence, kWeightScale, 9, kRecurrenceScale, 11})) return;
  std::vector<ValueId> operands(node.inputs().begin(), node.inputs().begin() + kOperands);
  operands[kWeight] = recurrent_weight(node, kWeight, kWeightScale, "w");
  operands[kRecurrence] = recurrent_weight(node, kRecurrence, kRecurrenceScale, "r");
  if (!node.error()) node.emit(op, std::move(operands), node.copied_attributes());
}

constexpr OperatorRow kMicrosoftQuantOperators[] = {
    {"DequantizeLinear", 1, 2, 3, 1, import_dequantize_linear, Op::kDequantizeLinear},
    {"DynamicQuantizeLSTM", 1, 3, 12, 3, import_dynamic_quantize_lstm, Op::kLSTM,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget"},
    {"DynamicQuantizeMatMul", 1, 3, 5, 1, import_plain, Op::kDynamicQuantizeMatMul},
    {"MatMulIntegerToFloat", 1, 4, 7, 1, import_matmul_integer_to_float, Op::kMul},
    {"MatMulNBits", 1, 3, 6, 1, import_matmul_nbits, Op::kMatMulNBits},
    {"QGemm", 1, 2, 9, 1, import_qgemm, Op::kGemm},
    {"QLinearAdd", 1, 2, 8, 1, import_qlinear_binary, Op::kAdd},
    {"QLinearAveragePool", 1, 2, 5, 1, import_qlinear_average_pool, Op::kAveragePool},
    {"QLinearConcat", 1, 1, -1, 1, import_qlinear_concat, Op::kConcat},
    {"QLinearGlobalAveragePool", 1, 2, 5, 1, import_qlinear_average_pool, Op::kGlobalAveragePool},
    {"QLinearLeakyRelu", 1, 2, 5, 1, import_qlinear_unary, Op::kLeakyRelu},
    {"QLinearMul", 1, 2, 8, 1, import_qlinear_binary, Op::kMul},
    {"QLinearReduceMean", 1, 2, 5, 1, import_qlinear_reduce_mean, Op::kReduceMean},
    {"QLinearSigmoid", 1, 2, 5, 1, import_qlinear_unary, Op::kSigmoid},
    {"QLinearSoftmax", 1, 2, 5, 1, import_qlinear_softmax, Op::kSoftmax},
    {"QLinearWhere", 1, 3, 9, 1, import_qlinear_where, Op::kWhere},
    {"QuantizeLinear", 1, 2, 3, 1, import_quantize_linear, Op::kQuantizeLinear},
};

}  // namespace

OperatorFamily microsoft_quant_operators() { return {"com.microsoft", kMicrosoftQuantOperators}; }

}  // namespace serin::formats::onnx
