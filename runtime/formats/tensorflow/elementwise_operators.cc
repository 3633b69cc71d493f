// elementwise_operators.cc: functions of elements at the same place.
//
// Operands are brought to one order of axes. If one has its channels first, then the others follow: a vector of channels gets axes of size
// 1 behind it, and a tensor of the same rank is converted.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/formats/tensorflow/elementwise.h"
#include "runtime/formats/tensorflow/import.h"
#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

/// A value of lower rank, for an operator whose other operand has `rank` axes, of which the channels come first.
ValueId aligned_to_first(NodeImport& n, size_t i, size_t rank) {
  const size_t own = *n.rank(i);
  const ValueId id = n.in(i);
  if (own == 0) return id;
  graph::Builder& b = n.builder();
  if (own > 1) {
    std::vector<int64_t> front;
    for (size_t axis = 0; axis + own < rank; ++axis) front.push_back(static_cast<int64_t>(axis));
    const ValuePtr widened = plain_value(b.unsqueeze(id, front));
    return n.scope().first(*widened);
  }
  if (b.size(id, 0) == 1) return id;
  if (const graph::ConstantPtr constant = n.scope().graph().constant(id); constant && constant->dtype != DType::kString) {
    Shape shape{constant->shape[0]};
    for (size_t axis = 2; axis < rank; ++axis) shape.push_back(1);
    return n.scope().reshaped(id, shape);
  }
  std::vector<int64_t> behind;
  for (size_t axis = 1; axis + 1 < rank; ++axis) behind.push_back(static_cast<int64_t>(axis));
  return b.unsqueeze(id, behind);
}

/// The operand as a vector of channels, if it is one: [c], or [1, 1, 1, c]. It depends on constants only.
ValueId channel_vector(NodeImport& n, size_t i) {
  const auto dims = n.dims(i);
  if (!dims || dims->empty() || !dims->back().known() || n.prefers_first(i)) return kNone;
  if (std::any_of(dims->begin(), dims->end() - 1, [](const graph::Dim& dim) { return dim.value() != 1; })) return kNone;
  const ValueId id = n.in(i);
  if (!n.scope().foldable(id)) return kNone;
  return dims->size() == 1 ? id : n.builder().reshape(id, {*dims->back().value()});
}

/// x * scale + shift of channels is what a normalisation became; convolutions take it up as such.
bool emit_scale_and_shift(NodeImport& n, size_t scaled, size_t shift) {
  if (!n.prefers_first(scaled) || n.dtype(scaled) != DType::kFloat32) return false;
  const auto found = n.scope().scaled.find(n.first(scaled));
  if (found == n.scope().scaled.end()) return false;
  const ValueId offset = channel_vector(n, shift);
  const auto channels = n.builder().size(offset, 0);
  if (!channels || channels != n.builder().size(found->second.scale, 0)) return false;
  const std::vector<float> zeros(static_cast<size_t>(*channels), 0.0F), ones(static_cast<size_t>(*channels), 1.0F);
  const auto vector = [&](const std::vector<float>& values) {
    return n.builder().constant(graph::make_constant(DType::kFloat32, Shape{*channels}, values.data()));
  };
  const ValueId mean = vector(zeros), variance = vector(ones);
  n.out_first(n.builder().add(Op::kBatchNormalization, {found->second.x, found->second.scale, offset, mean, variance}, {{"epsilon", 0.0}}));
  return true;
}

/// Remembers x * scale, for the sum that may follow.
void note_scale(NodeImport& n, ValueId product) {
  for (const size_t i : {0, 1}) {
    if (!n.prefers_first(i)) continue;
    const ValueId scale = channel_vector(n, 1 - i);
    if (scale != kNone) n.scope().scaled[product] = {n.first(i), scale};
  }
}

/// The bias of a product whose last axis was split into heads is added before that, where it is the bias of a layer.
bool add_before_split(NodeImport& n, size_t product, size_t bias) {
  if (n.prefers_first(product) || n.prefers_first(bias)) return false;
  const ValueId split = n.in(product);
  const auto found = n.scope().split.find(split);
  const graph::ConstantPtr constant = n.scope().graph().constant(n.in(bias));
  if (found == n.scope().split.end() || !constant || constant->dtype == DType::kString) return false;
  graph::Builder& b = n.builder();
  const std::vector<int64_t>& parts = found->second.parts;
  if (!std::ranges::equal(constant->shape.dims(), parts)) return false;
  const ValueId whole = b.add(Op::kAdd, {found->second.product, n.scope().reshaped(n.in(bias), Shape{constant->elements()})});
  std::vector<int64_t> shape(*b.rank(split) - parts.size(), 0);  // 0: as before
  shape.insert(shape.end(), parts.begin(), parts.end());
  n.out(b.reshape(whole, shape));
  return true;
}

/// x * 1: silu is written as x * sigmoid(beta * x).
bool drop_one(NodeImport& n, size_t x, size_t factor) {
  if (n.prefers_first(factor) || !n.value(x)->tensor() || n.rank(factor) != 0) return false;
  const graph::ConstantPtr constant = n.scope().graph().constant(n.in(factor));
  if (!constant || !is_float(constant->dtype) || graph::number_of(*constant) != 1.0) return false;
  n.out_value(n.value(x));
  return true;
}

/// x, where the operand is relu6(x + 3): a sixth of it is HardSigmoid.
ValueId shifted_operand(NodeImport& n, size_t i) {
  const graph::Graph& graph = n.scope().graph();
  const ValueId id = n.prefers_first(i) ? n.first(i) : n.in(i);
  const graph::NodeId clip = graph.producer(id);
  if (!graph.is(clip, Op::kClip) || graph.node(clip).number("min", -1) != 0 || graph.node(clip).number("max", -1) != 6) return kNone;
  const graph::NodeId sum = graph.producer(graph.input(clip, 0));
  if (!graph.is(sum, Op::kAdd)) return kNone;
  for (const size_t at : {0, 1}) {
    const graph::ConstantPtr three = graph.constant(graph.input(sum, at));
    if (three && three->elements() == 1 && graph::number_of(*three) == 3.0) return graph.input(sum, 1 - at);
  }
  return kNone;
}

bool emit_hard_sigmoid(NodeImport& n, Op op, size_t clipped, size_t factor) {
  if (n.prefers_first(factor) || n.rank(factor) != 0) return false;
  const graph::ConstantPtr constant = n.scope().graph().constant(n.in(factor));
  const auto number = constant ? graph::number_of(*constant) : std::nullopt;
  if (!number || std::abs((op == Op::kDiv ? 1 / *number : *number) - 1.0 / 6) > 1e-7) return false;
  const ValueId x = shifted_operand(n, clipped);
  if (x == kNone) return false;
  const bool first = n.prefers_first(clipped);
  const ValueId result = n.builder().add(Op::kHardSigmoid, {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
  first ? n.out_first(result) : n.out(result);
  return true;
}

/// The number a, of min(a, max(a, b)) or max(a, min(a, b)): counts are limited to a length and filled up to it so.
bool absorb(NodeImport& n, Op op) {
  if ((op != Op::kMin && op != Op::kMax) || n.inputs() != 2 || n.rank(0) != 0 || n.rank(1) != 0 || is_float(n.dtype(0))) return false;
  const graph::Graph& graph = n.scope().graph();
  const auto known = [&](ValueId id) {
    const graph::ConstantPtr constant = graph.constant(id);
    return constant ? graph::integers_of(*constant) : std::nullopt;
  };
  for (const size_t i : {0, 1}) {
    const ValueId a = n.in(i);
    const graph::NodeId inner = graph.producer(n.in(1 - i));
    if (!graph.is(inner, op == Op::kMin ? Op::kMax : Op::kMin)) continue;
    for (const size_t at : {0, 1}) {
      const ValueId other = graph.input(inner, at);
      if (other != a && !(known(a) && known(a) == known(other))) continue;
      n.out_value(n.value(i));
      return true;
    }
  }
  return false;
}

void import_unary(NodeImport& n, Op op) { n.out_like(0, n.builder().add(op, {n.any(0)})); }

void import_binary(NodeImport& n, Op op) {
  if (op == Op::kAdd && (emit_scale_and_shift(n, 0, 1) || emit_scale_and_shift(n, 1, 0))) return;
  if (op == Op::kAdd && (add_before_split(n, 0, 1) || add_before_split(n, 1, 0))) return;
  if (op == Op::kDiv && emit_hard_sigmoid(n, op, 0, 1)) return;
  if (op == Op::kMul && (emit_hard_sigmoid(n, op, 0, 1) || emit_hard_sigmoid(n, op, 1, 0))) return;
  if (op == Op::kMul && (drop_one(n, 0, 1) || drop_one(n, 1, 0))) return;
  if (absorb(n, op)) return;
  const Operands operands = broadcast_operands(n, 0, n.inputs());
  const ValueId result = n.builder().add(op, operands.ids);
  operands.first ? n.out_first(result) : n.out(result);
  if (op == Op::kMul && operands.first) note_scale(n, result);
}

void import_not_equal(NodeImport& n, Op) {
  const Operands operands = broadcast_operands(n, 0, 2);
  const ValueId result = n.builder().add(Op::kNot, {n.builder().add(Op::kEqual, operands.ids)});
  operands.first ? n.out_first(result) : n.out(result);
}

/// (a - b)^2
void import_squared_difference(NodeImport& n, Op) {
  const Operands operands = broadcast_operands(n, 0, 2);
  const ValueId difference = n.builder().add(Op::kSub, operands.ids);
  const ValueId result = n.builder().add(Op::kMul, {difference, difference});
  operands.first ? n.out_first(result) : n.out(result);
}

void import_square(NodeImport& n, Op) {
  const ValueId x = n.any(0);
  n.out_like(0, n.builder().add(Op::kMul, {x, x}));
}

void import_rsqrt(NodeImport& n, Op) {
  const ValueId root = n.builder().add(Op::kSqrt, {n.any(0)});
  n.out_like(0, n.builder().add(Op::kReciprocal, {root}));
}

/// 0 where the divisor is 0.
void import_div_no_nan(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const Operands operands = broadcast_operands(n, 0, 2);
  const ValueId zero = b.number(n.dtype(0), 0);
  const ValueId quotient = b.add(Op::kDiv, operands.ids);
  const ValueId result = b.add(Op::kWhere, {b.add(Op::kEqual, {operands.ids[1], zero}), zero, quotient});
  operands.first ? n.out_first(result) : n.out(result);
}

/// Rounds toward minus infinity; integers divide toward zero elsewhere.
void import_floor_div(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const Operands operands = broadcast_operands(n, 0, 2);
  ValueId result = kNone;
  if (is_float(n.dtype(0))) {
    result = b.add(Op::kFloor, {b.add(Op::kDiv, operands.ids)});
  } else {
    // (a - mod(a, b)) / b is exact, and the remainder has the sign of the divisor
    const ValueId rest = b.add(Op::kMod, operands.ids);
    result = b.add(Op::kDiv, {b.add(Op::kSub, {operands.ids[0], rest}), operands.ids[1]});
  }
  operands.first ? n.out_first(result) : n.out(result);
}

/// The remainder with the sign of the divisor.
void import_floor_mod(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const Operands operands = broadcast_operands(n, 0, 2);
  ValueId result = kNone;
  if (is_float(n.dtype(0))) {
    const ValueId whole = b.add(Op::kFloor, {b.add(Op::kDiv, operands.ids)});
    result = b.add(Op::kSub, {operands.ids[0], b.add(Op::kMul, {whole, operands.ids[1]})});
  } else {
    result = b.add(Op::kMod, operands.ids);
  }
  operands.first ? n.out_first(result) : n.out(result);
}

void import_bias_add(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  if (n.channels_first()) {
    const size_t rank = n.rank(0).value_or(0);
    if (rank < 3) return n.out(b.add(Op::kAdd, {n.in(0), n.in(1)}));
    const ValuePtr bias = n.value(1);
    std::vector<int64_t> behind;
    for (size_t axis = 1; axis + 1 < rank; ++axis) behind.push_back(static_cast<int64_t>(axis));
    return n.out(b.add(Op::kAdd, {n.in(0), b.unsqueeze(n.in(1), behind)}));
  }
  if (n.prefers_first(0)) {
    const ValueId x = n.first(0);
    const graph::NodeId producer = n.scope().graph().producer(x);
    const graph::Node* const node = producer == kNone ? nullptr : &n.scope().graph().node(producer);
    if (node && (node->op == Op::kConv || node->op == Op::kConvTranspose) && node->inputs.size() == 2 && n.scope().foldable(n.in(1))) {
      const Op op = node->op;
      const std::vector<ValueId> inputs = {node->inputs[0], node->inputs[1], n.in(1)};
      return n.out_first(b.add(op, inputs, graph::Attributes(node->attributes)));  // the first is dead without a reader
    }
  }
  import_binary(n, Op::kAdd);
}

void import_relu6(NodeImport& n, Op) { n.out_like(0, n.builder().add(Op::kClip, {n.any(0)}, {{"min", 0.0}, {"max", 6.0}})); }

void import_clip_by_value(NodeImport& n, Op) {
  const auto number_of_operand = [&](size_t i) -> std::optional<double> {
    const graph::ConstantPtr constant = n.scope().graph().constant(n.in(i));
    return constant && constant->elements() == 1 ? graph::number_of(*constant) : std::nullopt;
  };
  const auto low = number_of_operand(1), high = number_of_operand(2);
  if (low && high && n.dtype(0) == DType::kFloat32)
    return n.out_like(0, n.builder().add(Op::kClip, {n.any(0)}, {{"min", *low}, {"max", *high}}));
  const ValueId at_least = n.builder().add(Op::kMax, {n.in(0), n.in(1)});
  n.out(n.builder().add(Op::kMin, {at_least, n.in(2)}));
}

void import_leaky_relu(NodeImport& n, Op) {
  n.out_like(0, n.builder().add(Op::kLeakyRelu, {n.any(0)}, {{"alpha", n.number("alpha", 0.2F)}}));
}

void import_elu(NodeImport& n, Op) { n.out_like(0, n.builder().add(Op::kElu, {n.any(0)}, {{"alpha", 1.0}})); }

void import_selu(NodeImport& n, Op) {
  n.out_like(0, n.builder().add(Op::kSelu, {n.any(0)}, {{"alpha", 1.6732632423543772}, {"gamma", 1.0507009873554805}}));
}

/// -value without the sign, where `value` is a negation or a product with one; kNone otherwise.
ValueId without_sign(NodeImport& n, ValueId value) {
  const graph::Graph& graph = n.scope().graph();
  const graph::NodeId id = graph.producer(value);
  if (graph.is(id, Op::kNeg)) return graph.input(id, 0);
  if (!graph.is(id, Op::kMul)) return kNone;
  for (const size_t i : {0, 1}) {
    const graph::NodeId factor = graph.producer(graph.input(id, i));
    if (graph.is(factor, Op::kNeg)) return n.builder().add(Op::kMul, {graph.input(factor, 0), graph.input(id, 1 - i)});
  }
  return kNone;
}

/// 1 - erf(x); of -x it is 1 + erf(x), as Gelu is written elsewhere.
void import_erfc(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const ValueId x = n.any(0), positive = without_sign(n, x), one = b.number(n.dtype(0), 1);
  if (positive != kNone) return n.out_like(0, b.add(Op::kAdd, {b.add(Op::kErf, {positive}), one}));
  n.out_like(0, b.add(Op::kSub, {one, b.add(Op::kErf, {x})}));
}

void import_log1p(NodeImport& n, Op) {
  const ValueId sum = n.builder().add(Op::kAdd, {n.any(0), n.builder().number(n.dtype(0), 1)});
  n.out_like(0, n.builder().add(Op::kLog, {sum}));
}

void import_expm1(NodeImport& n, Op) {
  const ValueId power = n.builder().add(Op::kExp, {n.any(0)});
  n.out_like(0, n.builder().add(Op::kSub, {power, n.builder().number(n.dtype(0), 1)}));
}

void import_add_n(NodeImport& n, Op) {
  const Operands operands = broadcast_operands(n, 0, n.inputs());
  ValueId sum = operands.ids.front();
  for (size_t i = 1; i < operands.ids.size(); ++i) sum = n.builder().add(Op::kAdd, {sum, operands.ids[i]});
  operands.first ? n.out_first(sum) : n.out(sum);
}

/// Whether a condition is true everywhere, and as large as `dims` already.
bool is_all_true(NodeImport& n, ValueId condition, const graph::Dims& dims) {
  const graph::Graph& graph = n.scope().graph();
  const graph::NodeId expand = graph.producer(condition);
  const graph::ConstantPtr value = graph.is(expand, Op::kExpand) ? graph.constant(graph.input(expand, 0)) : nullptr;
  if (!value || value->dtype != DType::kBool || value->elements() != 1 || graph::integers_of(*value) != std::vector<int64_t>{1})
    return false;
  return n.builder().dims(condition) == dims;
}

/// Layers of attention join their masks with one that is true everywhere; it adds nothing to the shape of what is chosen.
ValueId without_all_true(NodeImport& n, ValueId condition, const graph::Dims& dims) {
  const graph::Graph& graph = n.scope().graph();
  const graph::NodeId both = graph.producer(condition);
  if (!graph.is(both, Op::kAnd)) return condition;
  for (const size_t i : {0, 1})
    if (is_all_true(n, graph.input(both, i), dims)) return graph.input(both, 1 - i);
  return condition;
}

void import_select(NodeImport& n, Op) {
  Operands operands = broadcast_operands(n, 0, 3);
  if (const auto& dims = n.builder().dims(operands.ids[1]); dims)
    operands.ids[0] = without_all_true(n, operands.ids[0], graph::Dims(*dims));
  const ValueId result = n.builder().add(Op::kWhere, operands.ids);
  operands.first ? n.out_first(result) : n.out(result);
}

/// Select of version 1: a condition of rank 1 chooses rows.
void import_select_rows(NodeImport& n, Op op) {
  const auto rank = n.rank(1);
  if (n.rank(0) != 1 || !rank || *rank < 2) return import_select(n, op);
  std::vector<int64_t> behind;
  for (size_t axis = 1; axis < *rank; ++axis) behind.push_back(static_cast<int64_t>(axis));
  n.out(n.builder().add(Op::kWhere, {n.builder().unsqueeze(n.in(0), behind), n.in(1), n.in(2)}));
}

void import_cast(NodeImport& n, Op) {
  const DType to = n.dtype_attr("DstT");
  n.out_like(0, n.builder().cast(n.any(0), to));
}

void import_is_finite(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const ValueId x = n.any(0);
  n.out_like(0, b.add(Op::kNot, {b.add(Op::kOr, {b.add(Op::kIsNaN, {x}), b.add(Op::kIsInf, {x})})}));
}

constexpr OperatorRow kElementwise[] = {
    {"Abs", 1, 1, import_unary, Op::kAbs},
    {"Acos", 1, 1, import_unary, Op::kAcos},
    {"Acosh", 1, 1, import_unary, Op::kAcosh},
    {"Add", 2, 2, import_binary, Op::kAdd},
    {"AddN", 1, -1, import_add_n},
    {"AddV2", 2, 2, import_binary, Op::kAdd},
    {"Asin", 1, 1, import_unary, Op::kAsin},
    {"Asinh", 1, 1, import_unary, Op::kAsinh},
    {"Atan", 1, 1, import_unary, Op::kAtan},
    {"Atanh", 1, 1, import_unary, Op::kAtanh},
    {"BiasAdd", 2, 2, import_bias_add},
    {"BiasAddV1", 2, 2, import_bias_add},
    {"BitwiseAnd", 2, 2, import_binary, Op::kBitwiseAnd},
    {"BitwiseOr", 2, 2, import_binary, Op::kBitwiseOr},
    {"BitwiseXor", 2, 2, import_binary, Op::kBitwiseXor},
    {"Cast", 1, 1, import_cast},
    {"Ceil", 1, 1, import_unary, Op::kCeil},
    {"ClipByValue", 3, 3, import_clip_by_value},
    {"Cos", 1, 1, import_unary, Op::kCos},
    {"Cosh", 1, 1, import_unary, Op::kCosh},
    {"Div", 2, 2, import_binary, Op::kDiv},
    {"DivNoNan", 2, 2, import_div_no_nan},
    {"Elu", 1, 1, import_elu},
    {"Equal", 2, 2, import_binary, Op::kEqual},
    {"Erf", 1, 1, import_unary, Op::kErf},
    {"Erfc", 1, 1, import_erfc},
    {"Exp", 1, 1, import_unary, Op::kExp},
    {"Expm1", 1, 1, import_expm1},
    {"Floor", 1, 1, import_unary, Op::kFloor},
    {"FloorDiv", 2, 2, import_floor_div},
    {"FloorMod", 2, 2, import_floor_mod},
    {"Greater", 2, 2, import_binary, Op::kGreater},
    {"GreaterEqual", 2, 2, import_binary, Op::kGreaterOrEqual},
    {"Inv", 1, 1, import_unary, Op::kReciprocal},
    {"IsFinite", 1, 1, import_is_finite},
    {"IsInf", 1, 1, import_unary, Op::kIsInf},
    {"IsNan", 1, 1, import_unary, Op::kIsNaN},
    {"LeakyRelu", 1, 1, import_leaky_relu},
    {"Less", 2, 2, import_binary, Op::kLess},
    {"LessEqual", 2, 2, import_binary, Op::kLessOrEqual},
    {"Log", 1, 1, import_unary, Op::kLog},
    {"Log1p", 1, 1, import_log1p},
    {"LogicalAnd", 2, 2, import_binary, Op::kAnd},
    {"LogicalNot", 1, 1, import_unary, Op::kNot},
    {"LogicalOr", 2, 2, import_binary, Op::kOr},
    {"Maximum", 2, 2, import_binary, Op::kMax},
    {"Minimum", 2, 2, import_binary, Op::kMin},
    {"Mod", 2, 2, import_floor_mod},
    {"Mul", 2, 2, import_binary, Op::kMul},
    {"Neg", 1, 1, import_unary, Op::kNeg},
    {"NotEqual", 2, 2, import_not_equal},
    {"Pow", 2, 2, import_binary, Op::kPow},
    {"RealDiv", 2, 2, import_binary, Op::kDiv},
    {"Reciprocal", 1, 1, import_unary, Op::kReciprocal},
    {"Relu", 1, 1, import_unary, Op::kRelu},
    {"Relu6", 1, 1, import_relu6},
    {"Rint", 1, 1, import_unary, Op::kRound},
    {"Round", 1, 1, import_unary, Op::kRound},
    {"Rsqrt", 1, 1, import_rsqrt},
    {"Select", 3, 3, import_select_rows},
    {"SelectV2", 3, 3, import_select},
    {"Selu", 1, 1, import_selu},
    {"Sigmoid", 1, 1, import_unary, Op::kSigmoid},
    {"Sign", 1, 1, import_unary, Op::kSign},
    {"Sin", 1, 1, import_unary, Op::kSin},
    {"Sinh", 1, 1, import_unary, Op::kSinh},
    {"Softplus", 1, 1, import_unary, Op::kSoftplus},
    {"Softsign", 1, 1, import_unary, Op::kSoftsign},
    {"Sqrt", 1, 1, import_unary, Op::kSqrt},
    {"Square", 1, 1, import_square},
    {"SquaredDifference", 2, 2, import_squared_difference},
    {"Sub", 2, 2, import_binary, Op::kSub},
    {"Tan", 1, 1, import_unary, Op::kTan},
    {"Tanh", 1, 1, import_unary, Op::kTanh},
    {"TruncateDiv", 2, 2, import_binary, Op::kDiv},
};

void note_equal_sizes(NodeImport& n, size_t begin, size_t end) {
  const auto first = n.dims(begin);
  for (size_t i = begin + 1; first && i < end; ++i) {
    const auto other = n.dims(i);
    if (!other) continue;
    for (size_t back = 1; back <= std::min(first->size(), other->size()); ++back)
      n.importer().note_equal((*first)[first->size() - back], (*other)[other->size() - back]);
  }
}

}  // namespace

Operands broadcast_operands(NodeImport& n, size_t begin, size_t end) {
  note_equal_sizes(n, begin, end);
  Operands operands;
  std::optional<size_t> rank;
  bool all_known = true;
  for (size_t i = begin; i < end; ++i) {
    if (n.prefers_first(i)) rank = std::max(rank.value_or(0), *n.rank(i));
    all_known &= n.value(i)->tensor() && n.rank(i).has_value();
  }
  for (size_t i = begin; all_known && i < end; ++i)
    if (rank && *n.rank(i) > *rank) rank.reset();
  operands.first = rank && all_known;
  for (size_t i = begin; i < end; ++i) {
    if (!operands.first)
      operands.ids.push_back(n.in(i));
    else
      operands.ids.push_back(n.rank(i) == rank ? n.first(i) : aligned_to_first(n, i, *rank));
  }
  return operands;
}

std::span<const OperatorRow> elementwise_operators() { return kElementwise; }

}  // namespace serin::formats::tf
