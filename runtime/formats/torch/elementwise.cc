// elementwise.cc: functions of single elements. Integers become floats first where the program declares a result of floats.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Op;
using graph::ValueId;

ValueId converted_self(NodeImport& node) { return node.b.cast(node.tensor("self"), node.result_dtype()); }
ValueId number_like_result(NodeImport& node, double value) { return node.b.number(node.result_dtype(), value); }
bool is_integer(DType dtype) { return !is_float(dtype); }

void import_unary(NodeImport& node, Op op) { node.give(node.b.add(op, {converted_self(node)})); }

/// floor, ceil and round of integers change nothing.
void import_rounding(NodeImport& node, Op op) {
  if (node.integer("decimals", 0) != 0) return node.unsupported("rounds to decimals");
  const ValueId x = converted_self(node);
  node.give(is_integer(node.result_dtype()) ? x : node.b.add(op, {x}));
}

void import_trunc(NodeImport& node, Op) {
  const ValueId x = converted_self(node);
  if (is_integer(node.result_dtype())) return node.give(x);
  node.give(node.b.add(Op::kMul, {node.b.add(Op::kSign, {x}), node.b.add(Op::kFloor, {node.b.add(Op::kAbs, {x})})}));
}

void import_predicate(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  const bool integer = is_integer(node.b.dtype(x));
  node.give(node.b.add(op, {integer ? node.b.cast(x, DType::kFloat32) : x}));
}

void import_not(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  if (node.b.dtype(x) == DType::kBool) return node.give(node.b.add(Op::kNot, {x}));
  if (node.node().target.find("bitwise") != std::string::npos) return node.give(node.b.add(Op::kBitwiseNot, {x}));
  node.give(node.b.add(Op::kEqual, {x, node.b.number(node.b.dtype(x), 0)}));
}

void import_gelu(NodeImport& node, Op op) {
  const std::string approximate = node.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") return node.unsupported(fmt::format("approximate is '{}'", approximate));
  node.give(node.b.add(op, {converted_self(node)}, {{"approximate", approximate}}));
}

/// x / 6 + 1/2, between 0 and 1.
void import_hard_sigmoid(NodeImport& node, Op op) {
  node.give(node.b.add(op, {converted_self(node)}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

void import_leaky_relu(NodeImport& node, Op op) {
  node.give(node.b.add(op, {converted_self(node)}, {{"alpha", node.number("negative_slope", 0.01)}}));
}

/// With a scale it is the SELU of other constants.
void import_elu(NodeImport& node, Op op) {
  const double alpha = node.number("alpha", 1), scale = node.number("scale", 1);
  if (node.number("input_scale", 1) != 1) return node.unsupported("an Elu with a scale of its input");
  if (scale == 1) return node.give(node.b.add(op, {converted_self(node)}, {{"alpha", alpha}}));
  node.give(node.b.add(Op::kSelu, {converted_self(node)}, {{"alpha", alpha}, {"gamma", scale}}));
}

void import_celu(NodeImport& node, Op op) { node.give(node.b.add(op, {converted_self(node)}, {{"alpha", node.number("alpha", 1)}})); }

void import_selu(NodeImport& node, Op op) {
  node.give(node.b.add(op, {converted_self(node)}, {{"alpha", 1.6732632423543772}, {"gamma", 1.0507009873554805}}));
}

/// log(1 + exp(beta x)) / beta; x itself above the threshold.
void import_softplus(NodeImport& node, Op op) {
  const double beta = node.number("beta", 1);
  if (beta == 1) return node.give(node.b.add(op, {converted_self(node)}));
  const ValueId factor = number_like_result(node, beta);
  node.give(node.b.add(Op::kDiv, {node.b.add(op, {node.b.add(Op::kMul, {converted_self(node), factor})}), factor}));
}

void import_threshold(NodeImport& node, Op) {
  const ValueId x = converted_self(node);
  const ValueId above = node.b.add(Op::kGreater, {x, number_like_result(node, node.number("threshold", 0))});
  node.give(node.b.add(Op::kWhere, {above, x, number_like_result(node, node.number("value", 0))}));
}

void import_relu6(NodeImport& node, Op op) { node.give(node.b.add(op, {converted_self(node)}, {{"min", 0.0}, {"max", 6.0}})); }

void import_hardtanh(NodeImport& node, Op op) {
  node.give(node.b.add(op, {converted_self(node)}, {{"min", node.number("min_val", -1)}, {"max", node.number("max_val", 1)}}));
}

/// clamp, clamp_min, clamp_max, clip: bounds are numbers or tensors.
void import_clamp(NodeImport& node, Op op) {
  ValueId x = converted_self(node);
  if (!node.is_tensor("min") && !node.is_tensor("max")) {
    graph::Attributes bounds;
    for (const char* bound : {"min", "max"})
      if (const auto number = node.optional_number(bound)) bounds.insert_or_assign(bound, *number);
    return node.give(node.b.add(op, {x}, bounds));
  }
  if (node.has("min")) x = node.b.add(Op::kMax, {x, node.operand("min", node.result_dtype())});
  if (node.has("max")) x = node.b.add(Op::kMin, {x, node.operand("max", node.result_dtype())});
  node.give(x);
}

void import_rsqrt(NodeImport& node, Op) { node.give(node.b.add(Op::kReciprocal, {node.b.add(Op::kSqrt, {converted_self(node)})})); }

void import_square(NodeImport& node, Op op) {
  const ValueId x = converted_self(node);
  node.give(node.b.add(op, {x, x}));
}

void import_log1p(NodeImport& node, Op op) {
  node.give(node.b.add(op, {node.b.add(Op::kAdd, {converted_self(node), number_like_result(node, 1)})}));
}
void import_expm1(NodeImport& node, Op op) {
  node.give(node.b.add(Op::kSub, {node.b.add(op, {converted_self(node)}), number_like_result(node, 1)}));
}

/// log2 and log10: the natural logarithm, scaled.
void import_log_of_base(NodeImport& node, Op) {
  const double base = node.node().target.find("log2") != std::string::npos ? std::numbers::ln2 : std::numbers::ln10;
  node.give(node.b.add(Op::kMul, {node.b.add(Op::kLog, {converted_self(node)}), number_like_result(node, 1 / base)}));
}

void import_erfc(NodeImport& node, Op) {
  node.give(node.b.add(Op::kSub, {number_like_result(node, 1), node.b.add(Op::kErf, {converted_self(node)})}));
}

void import_exp2(NodeImport& node, Op) { node.give(node.b.add(Op::kPow, {number_like_result(node, 2), converted_self(node)})); }

void import_log_sigmoid(NodeImport& node, Op) {
  node.give(node.b.add(Op::kNeg, {node.b.add(Op::kSoftplus, {node.b.add(Op::kNeg, {converted_self(node)})})}));
}

/// x * sigmoid(x) along the halves of an axis: a * sigmoid(b).
void import_glu(NodeImport& node, Op) {
  const ValueId x = converted_self(node);
  const int64_t axis = node.axis(node.integer("dim", -1), node.rank(x));
  const auto halves = node.b.add_with_results(Op::kSplit, 2, {x}, {{"axis", axis}});
  node.give(node.b.add(Op::kMul, {halves[0], node.b.add(Op::kSigmoid, {halves[1]})}));
}

void import_nan_to_num(NodeImport& node, Op) {
  const ValueId x = converted_self(node);
  if (is_integer(node.result_dtype())) return node.give(x);
  const double largest = node.result_dtype() == DType::kFloat64   ? std::numeric_limits<double>::max()
                         : node.result_dtype() == DType::kFloat16 ? 65504.0
                                                                  : static_cast<double>(std::numeric_limits<float>::max());
  const ValueId finite = node.b.add(Op::kClip, {x}, {{"min", node.number("neginf", -largest)}, {"max", node.number("posinf", largest)}});
  node.give(node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {x}), number_like_result(node, node.number("nan", 0)), finite}));
}

/// log(x / (1 - x)); with `eps`, of x between eps and 1 - eps.
void import_logit(NodeImport& node, Op) {
  ValueId x = converted_self(node);
  if (const auto eps = node.optional_number("eps")) x = node.b.add(Op::kClip, {x}, {{"min", *eps}, {"max", 1 - *eps}});
  node.give(node.b.add(Op::kLog, {node.b.add(Op::kDiv, {x, node.b.add(Op::kSub, {number_like_result(node, 1), x})})}));
}

/// The part behind the point, with the sign of x.
void import_frac(NodeImport& node, Op) {
  const ValueId x = converted_self(node);
  const ValueId whole = node.b.add(Op::kMul, {node.b.add(Op::kSign, {x}), node.b.add(Op::kFloor, {node.b.add(Op::kAbs, {x})})});
  node.give(node.b.add(Op::kSub, {x, whole}));
}

/// hardshrink keeps elements beyond lambda; softshrink moves them by lambda towards zero. Others become zero.
void import_shrink(NodeImport& node, Op op) {
  const double lambda = node.number("lambd", 0.5);
  const bool soft = node.node().target.find("softshrink") != std::string::npos;
  node.give(node.b.add(op, {converted_self(node)}, {{"lambd", lambda}, {"bias", soft ? lambda : 0.0}}));
}

void import_tanhshrink(NodeImport& node, Op) {
  const ValueId x = converted_self(node);
  node.give(node.b.add(Op::kSub, {x, node.b.add(Op::kTanh, {x})}));
}

void import_isfinite(NodeImport& node, Op) {
  const ValueId x =
      node.b.cast(node.tensor("self"), is_integer(node.b.dtype(node.tensor("self"))) ? DType::kFloat32 : node.b.dtype(node.tensor("self")));
  node.give(node.b.add(Op::kNot, {node.b.add(Op::kOr, {node.b.add(Op::kIsInf, {x}), node.b.add(Op::kIsNaN, {x})})}));
}

/// Degrees of radians, or radians of degrees.
void import_angle(NodeImport& node, Op op) {
  const bool to_degrees = node.node().target.find("rad2deg") != std::string::npos;
  node.give(node.b.add(op, {converted_self(node), number_like_result(node, to_degrees ? 180 / std::numbers::pi : std::numbers::pi / 180)}));
}

/// sin(pi x) / (pi x), and 1 at 0.
void import_sinc(NodeImport& node, Op) {
  const ValueId scaled = node.b.add(Op::kMul, {converted_self(node), number_like_result(node, std::numbers::pi)});
  const ValueId at_zero = node.b.add(Op::kEqual, {scaled, number_like_result(node, 0)}), one = number_like_result(node, 1);
  const ValueId divisor = node.b.add(Op::kWhere, {at_zero, one, scaled});
  node.give(node.b.add(Op::kWhere, {at_zero, one, node.b.add(Op::kDiv, {node.b.add(Op::kSin, {scaled}), divisor})}));
}

/// Dropout and similar do nothing in an inference; a program in training mode is refused.
void import_dropout(NodeImport& node, Op) {
  if (node.flag("train", false) || node.flag("training", false))
    return node.unsupported("is in training mode: call model.eval() before the export");
  node.give({node.has("self") ? node.tensor("self") : node.tensor("input"), graph::kNone});
}

constexpr OperatorRow kElementwise[] = {
    {"aten.abs", import_unary, Op::kAbs},
    {"aten.acos", import_unary, Op::kAcos},
    {"aten.acosh", import_unary, Op::kAcosh},
    {"aten.alpha_dropout", import_dropout, Op::kIdentity, Alias::kView},
    {"aten.asin", import_unary, Op::kAsin},
    {"aten.asinh", import_unary, Op::kAsinh},
    {"aten.atan", import_unary, Op::kAtan},
    {"aten.atanh", import_unary, Op::kAtanh},
    {"aten.bitwise_not", import_not},
    {"aten.ceil", import_rounding, Op::kCeil},
    {"aten.celu", import_celu, Op::kCelu},
    {"aten.clamp", import_clamp, Op::kClip},
    {"aten.clamp_max", import_clamp, Op::kClip},
    {"aten.clamp_min", import_clamp, Op::kClip},
    {"aten.clip", import_clamp, Op::kClip},
    {"aten.cos", import_unary, Op::kCos},
    {"aten.cosh", import_unary, Op::kCosh},
    {"aten.deg2rad", import_angle, Op::kMul},
    {"aten.dropout", import_dropout, Op::kIdentity, Alias::kView},
    {"aten.elu", import_elu, Op::kElu},
    {"aten.erf", import_unary, Op::kErf},
    {"aten.erfc", import_erfc},
    {"aten.exp", import_unary, Op::kExp},
    {"aten.exp2", import_exp2},
    {"aten.expm1", import_expm1, Op::kExp},
    {"aten.feature_dropout", import_dropout, Op::kIdentity, Alias::kView},
    {"aten.floor", import_rounding, Op::kFloor},
    {"aten.frac", import_frac},
    {"aten.gelu", import_gelu, Op::kGelu},
    {"aten.glu", import_glu},
    {"aten.hardshrink", import_shrink, Op::kShrink},
    {"aten.hardsigmoid", import_hard_sigmoid, Op::kHardSigmoid},
    {"aten.hardswish", import_unary, Op::kHardSwish},
    {"aten.hardtanh", import_hardtanh, Op::kClip},
    {"aten.isfinite", import_isfinite},
    {"aten.isinf", import_predicate, Op::kIsInf},
    {"aten.isnan", import_predicate, Op::kIsNaN},
    {"aten.leaky_relu", import_leaky_relu, Op::kLeakyRelu},
    {"aten.log", import_unary, Op::kLog},
    {"aten.log10", import_log_of_base},
    {"aten.log1p", import_log1p, Op::kLog},
    {"aten.log2", import_log_of_base},
    {"aten.log_sigmoid", import_log_sigmoid},
    {"aten.logical_not", import_not},
    {"aten.logit", import_logit},
    {"aten.mish", import_unary, Op::kMish},
    {"aten.nan_to_num", import_nan_to_num},
    {"aten.native_dropout", import_dropout},
    {"aten.neg", import_unary, Op::kNeg},
    {"aten.rad2deg", import_angle, Op::kMul},
    {"aten.reciprocal", import_unary, Op::kReciprocal},
    {"aten.relu", import_unary, Op::kRelu},
    {"aten.relu6", import_relu6, Op::kClip},
    {"aten.round", import_rounding, Op::kRound},
    {"aten.rsqrt", import_rsqrt},
    {"aten.selu", import_selu, Op::kSelu},
    {"aten.sgn", import_unary, Op::kSign},
    {"aten.sigmoid", import_unary, Op::kSigmoid},
    {"aten.sign", import_unary, Op::kSign},
    {"aten.silu", import_unary, Op::kSwish},
    {"aten.sin", import_unary, Op::kSin},
    {"aten.sinc", import_sinc},
    {"aten.sinh", import_unary, Op::kSinh},
    {"aten.softplus", import_softplus, Op::kSoftplus},
    {"aten.softshrink", import_shrink, Op::kShrink},
    {"aten.softsign", import_unary, Op::kSoftsign},
    {"aten.special_expit", import_unary, Op::kSigmoid},
    {"aten.special_logit", import_logit},
    {"aten.sqrt", import_unary, Op::kSqrt},
    {"aten.square", import_square, Op::kMul},
    {"aten.tan", import_unary, Op::kTan},
    {"aten.tanh", import_unary, Op::kTanh},
    {"aten.tanhshrink", import_tanhshrink},
    {"aten.threshold", import_threshold},
    {"aten.trunc", import_trunc},
};

}  // namespace

std::span<const OperatorRow> elementwise_operators() { return kElementwise; }

}  // namespace serin::formats::torch
