// elementwise.cc: operators that work element by element.

#include <array>
#include <cmath>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

bool is_integer(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kInt16 || dtype == DType::kInt8 || dtype == DType::kUInt8;
}

void import_unary(Node& node, Op op) { node.out("Out", node.unary(op, node.in("X"))); }

/// Functions of floats that also take integers.
void import_float_unary(Node& node, Op op) {
  const ValueId x = node.in("X");
  const DType dtype = node.b.dtype(x);
  node.out("Out", node.unary(op, is_integer(dtype) || dtype == DType::kBool ? node.b.cast(x, DType::kFloat32) : x));
}

/// Paddle multiplies and adds booleans as well.
void import_binary(Node& node, Op op) {
  const ValueId x = node.in("X"), y = node.in("Y");
  if (node.b.dtype(x) == DType::kBool && node.b.dtype(y) == DType::kBool) op = op == Op::kMul ? Op::kAnd : op == Op::kAdd ? Op::kOr : op;
  node.out("Out", node.binary(op, x, align(node, x, y, node.integer("axis", -1))));
}

/// Of booleans, they are logic.
void import_bitwise(Node& node, Op op) {
  const ValueId x = node.in("X");
  if (node.b.dtype(x) == DType::kBool)
    op = op == Op::kBitwiseAnd ? Op::kAnd : op == Op::kBitwiseOr ? Op::kOr : op == Op::kBitwiseXor ? Op::kXor : Op::kNot;
  if (op == Op::kNot || op == Op::kBitwiseNot) return node.out("Out", node.unary(op, x));
  node.out("Out", node.binary(op, x, node.in("Y")));
}

void import_not_equal(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  node.out("Out", node.unary(Op::kNot, node.binary(Op::kEqual, x, align(node, x, node.in("Y"), node.integer("axis", -1)))));
}

/// Both have the sign of the divisor; Mod of floats is ONNX's fmod, which has that of the dividend.
void import_remainder(Node& node, Op /*op*/) {
  const ValueId x = node.in("X"), y = align(node, x, node.in("Y"), node.integer("axis", -1));
  if (is_integer(node.b.dtype(x))) return node.out("Out", node.binary(Op::kMod, x, y));
  const ValueId whole = node.unary(Op::kFloor, node.binary(Op::kDiv, x, y));
  node.out("Out", node.binary(Op::kSub, x, node.binary(Op::kMul, whole, y)));
}

void import_floor_divide(Node& node, Op /*op*/) {
  const ValueId x = node.in("X"), y = align(node, x, node.in("Y"), node.integer("axis", -1));
  if (!is_integer(node.b.dtype(x))) return node.out("Out", node.unary(Op::kFloor, node.binary(Op::kDiv, x, y)));
  if (const auto known = node.b.known_integers(y); known && !known->empty() && std::ranges::all_of(*known, [](int64_t v) { return v > 0; }))
    if (node.b.elements(x)) return node.out("Out", node.binary(Op::kDiv, x, y));  // sizes: not negative, and known as polynomials
  node.out("Out", node.binary(Op::kDiv, node.binary(Op::kSub, x, node.binary(Op::kMod, x, y)), y));
}

void import_scale(Node& node, Op /*op*/) {
  ValueId x = node.in("X");
  const DType dtype = node.b.dtype(x);
  const auto factor = node.known_number("scale", "ScaleTensor", 1);
  const double bias = node.number("bias", 0);
  const bool after = node.flag("bias_after_scale", true);
  if (!after && bias != 0) x = node.with_number(Op::kAdd, x, bias);
  if (!factor || *factor != 1) x = node.binary(Op::kMul, x, node.scalar("scale", "ScaleTensor", dtype, 1));
  if (after && bias != 0) x = node.with_number(Op::kAdd, x, bias);
  node.out("Out", x);
}

void import_cast(Node& node, Op /*op*/) { node.out("Out", node.b.cast(node.in("X"), node.dtype("out_dtype|dtype", DType::kFloat32))); }

void import_same(Node& node, Op /*op*/) { node.out("Out", node.in(node.all("In").empty() ? "X" : "In")); }

void import_clip(Node& node, Op op) {
  const ValueId x = node.in("X");
  const auto low = node.known_number("min", "Min", 0), high = node.known_number("max", "Max", 0);
  if (low && high && node.b.dtype(x) == DType::kFloat32) return node.out("Out", node.unary(op, x, {{"min", *low}, {"max", *high}}));
  const DType dtype = node.b.dtype(x);
  node.out("Out", node.b.add(op, {x, node.scalar("min", "Min", dtype, 0), node.scalar("max", "Max", dtype, 0)}));
}

void import_relu6(Node& node, Op op) {
  node.out("Out", node.unary(op, node.in("X"), {{"min", 0.0}, {"max", node.number("threshold", 6)}}));
}

void import_hard_tanh(Node& node, Op op) {
  node.out("Out", node.unary(op, node.in("X"), {{"min", node.number("t_min|min", -1)}, {"max", node.number("t_max|max", 1)}}));
}

void import_with_alpha(Node& node, Op op) {
  node.out("Out",
           node.unary(op, node.in("X"), {{"alpha", node.number("alpha|negative_slope|threshold", op == Op::kLeakyRelu ? 0.02 : 1)}}));
}

void import_selu(Node& node, Op op) {
  node.out("Out", node.unary(op, node.in("X"),
                             {{"alpha", node.number("alpha", 1.6732632423543772)}, {"gamma", node.number("scale", 1.0507009873554805)}}));
}

void import_swish(Node& node, Op op) { node.out("Out", node.unary(op, node.in("X"), {{"alpha", node.number("beta", 1)}})); }

void import_gelu(Node& node, Op op) {
  node.out("Out", node.unary(op, node.in("X"), {{"approximate", std::string(node.flag("approximate") ? "tanh" : "none")}}));
}

void import_hard_sigmoid(Node& node, Op op) {
  node.out("Out", node.unary(op, node.in("X"), {{"alpha", node.number("slope", 0.2)}, {"beta", node.number("offset", 0.5)}}));
}

/// x * min(max(x + offset, 0), threshold) / scale
void import_hard_swish(Node& node, Op op) {
  const double threshold = node.number("threshold", 6), scale = node.number("scale", 6), offset = node.number("offset", 3);
  const ValueId x = node.in("X");
  if (threshold == 6 && scale == 6 && offset == 3) return node.out("Out", node.unary(op, x));
  const ValueId gate = node.unary(Op::kClip, node.with_number(Op::kAdd, x, offset), {{"min", 0.0}, {"max", threshold}});
  node.out("Out", node.with_number(Op::kDiv, node.binary(Op::kMul, x, gate), scale));
}

/// Above a threshold of 20 and more, Softplus is its argument in f32.
void import_softplus(Node& node, Op op) {
  const double beta = node.number("beta", 1), threshold = node.number("threshold", 20);
  const ValueId x = node.in("X"), scaled = beta == 1 ? x : node.with_number(Op::kMul, x, beta);
  ValueId y = node.unary(op, scaled);
  if (beta != 1) y = node.with_number(Op::kDiv, y, beta);
  if (threshold < 18) y = node.b.add(Op::kWhere, {node.with_number(Op::kGreater, scaled, threshold), x, y});
  node.out("Out", y);
}

void import_shrink(Node& node, Op op) {
  const bool soft = node.source().type == "softshrink";
  const double bound = node.number("threshold|lambda", 0.5);
  node.out("Out", node.unary(op, node.in("X"), {{"lambd", bound}, {"bias", soft ? bound : 0.0}}));
}

void import_stanh(Node& node, Op op) {
  const ValueId inner = node.with_number(Op::kMul, node.in("X"), node.number("scale_a", 0.67));
  node.out("Out", node.with_number(Op::kMul, node.unary(op, inner), node.number("scale_b", 1.7159)));
}

/// Functions that are two steps, by the name of the operator.
void import_two_steps(Node& node, Op op) {
  const ValueId x = node.in("X");
  const std::string& type = node.source().type;
  ValueId y = x;
  if (type == "rsqrt") y = node.unary(Op::kReciprocal, node.unary(op, x));
  if (type == "square") y = node.binary(op, x, x);
  if (type == "log1p") y = node.unary(op, node.with_number(Op::kAdd, x, 1));
  if (type == "expm1") y = node.with_number(Op::kSub, node.unary(op, x), 1);
  if (type == "log2") y = node.with_number(Op::kMul, node.unary(op, x), 1 / std::log(2.0));
  if (type == "log10") y = node.with_number(Op::kMul, node.unary(op, x), 1 / std::log(10.0));
  if (type == "logsigmoid") y = node.unary(Op::kNeg, node.unary(op, node.unary(Op::kNeg, x)));
  if (type == "tanh_shrink") y = node.binary(Op::kSub, x, node.unary(op, x));
  if (type == "trunc") y = node.binary(Op::kMul, node.unary(Op::kSign, x), node.unary(op, node.unary(Op::kAbs, x)));
  if (type == "isfinite" || type == "isfinite_v2")
    y = node.unary(Op::kNot, node.binary(Op::kOr, node.unary(Op::kIsNaN, x), node.unary(op, x)));
  node.out("Out", y);
}

void import_pow(Node& node, Op op) {
  const ValueId x = node.in("X");
  const auto factor = node.known_number("factor|y", "FactorTensor", 1);
  if (factor == 2.0) return node.out("Out", node.binary(Op::kMul, x, x));
  if (factor == 0.5) return node.out("Out", node.unary(Op::kSqrt, x));
  node.out("Out", node.binary(op, x, node.scalar("factor|y", "FactorTensor", node.b.dtype(x), 1)));
}

void import_prelu(Node& node, Op op) {
  const ValueId x = node.in("X");
  ValueId slope = node.in("Alpha");
  const std::string mode = node.text("mode", "all");
  const size_t rank = node.rank(x);
  if (node.text("data_format", "NCHW") != "NCHW") return node.refuse("prelu with channels last");
  if (mode == "all") slope = node.b.reshape(slope, {1});
  if (mode == "channel") {
    List shape(rank > 0 ? rank - 1 : 0, 1);
    if (!shape.empty()) shape[0] = -1;
    slope = node.b.reshape(slope, shape);
  }
  node.out("Out", node.binary(op, x, slope));
}

void import_where(Node& node, Op op) { node.out("Out", node.b.add(op, {node.in("Condition"), node.in("X"), node.in("Y")})); }

void import_masked_fill(Node& node, Op op) {
  const ValueId x = node.in("X");
  node.out("Out", node.b.add(op, {node.in("Mask"), node.scalar("value", "Value", node.b.dtype(x), 0), x}));
}

void import_lerp(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  node.out("Out", node.binary(Op::kAdd, x, node.binary(Op::kMul, node.in("Weight"), node.binary(Op::kSub, node.in("Y"), x))));
}

void import_add_n(Node& node, Op op) {
  const std::vector<ValueId>& x = node.all("X");
  if (x.empty()) return node.corrupt("a sum of nothing");
  ValueId sum = x[0];
  for (size_t i = 1; i < x.size(); ++i) sum = node.binary(op, sum, x[i]);
  node.out("Out", sum);
}

void import_increment(Node& node, Op op) { node.out("Out", node.with_number(op, node.in("X"), node.number("step|value", 1))); }

void import_dropout(Node& node, Op op) {
  const ValueId x = node.in("X");
  const bool scaled = node.text("dropout_implementation|mode", "downgrade_in_infer") != "upscale_in_train";
  const auto part = node.known_number("dropout_prob|p", "P", 0);
  if (!part) return node.refuse("dropout with a part that is computed");
  node.out("Out", scaled && *part != 0 ? node.with_number(op, x, 1 - *part) : x);
}

void import_swiglu(Node& node, Op op) {
  ValueId x = node.in("X"), gate = node.maybe("Y");
  if (gate == kNone) {
    const auto halves = node.b.add_with_results(Op::kSplit, 2, {x}, {{"axis", int64_t{-1}}});
    x = halves[0], gate = halves[1];
  }
  node.out("Out", node.binary(Op::kMul, node.unary(op, x), gate));
}

constexpr OperatorRow kElementwiseRows[] = {
    {"abs", "abs", "X", "Out", import_unary, Op::kAbs},
    {"acos", "acos", "X", "Out", import_unary, Op::kAcos},
    {"acosh", "acosh", "X", "Out", import_unary, Op::kAcosh},
    {"asin", "asin", "X", "Out", import_unary, Op::kAsin},
    {"asinh", "asinh", "X", "Out", import_unary, Op::kAsinh},
    {"assign share_data memcpy print", "assign assign_out share_data memcpy memcpy_h2d memcpy_d2h print", "X", "Out", import_same},
    {"atan", "atan", "X", "Out", import_unary, Op::kAtan},
    {"atanh", "atanh", "X", "Out", import_unary, Op::kAtanh},
    {"bitwise_and", "bitwise_and", "X Y", "Out", import_bitwise, Op::kBitwiseAnd},
    {"bitwise_not", "bitwise_not", "X", "Out", import_bitwise, Op::kBitwiseNot},
    {"bitwise_or", "bitwise_or", "X Y", "Out", import_bitwise, Op::kBitwiseOr},
    {"bitwise_xor", "bitwise_xor", "X Y", "Out", import_bitwise, Op::kBitwiseXor},
    {"brelu hard_tanh", "hardtanh", "X", "Out", import_hard_tanh, Op::kClip},
    {"cast", "cast", "X", "Out", import_cast},
    {"ceil", "ceil", "X", "Out", import_unary, Op::kCeil},
    {"celu", "celu", "X", "Out", import_with_alpha, Op::kCelu},
    {"clip", "clip", "X Min Max", "Out", import_clip, Op::kClip},
    {"cos", "cos", "X", "Out", import_unary, Op::kCos},
    {"cosh", "cosh", "X", "Out", import_unary, Op::kCosh},
    {"dropout", "dropout", "X Seed P", "Out Mask", import_dropout, Op::kMul},
    {"elementwise_add", "add", "X Y", "Out", import_binary, Op::kAdd},
    {"elementwise_div", "divide", "X Y", "Out", import_binary, Op::kDiv},
    {"elementwise_floordiv", "floor_divide", "X Y", "Out", import_floor_divide},
    {"elementwise_fmax elementwise_max", "fmax maximum", "X Y", "Out", import_binary, Op::kMax},
    {"elementwise_fmin elementwise_min", "fmin minimum", "X Y", "Out", import_binary, Op::kMin},
    {"elementwise_mod", "remainder", "X Y", "Out", import_remainder},
    {"elementwise_mul", "multiply", "X Y", "Out", import_binary, Op::kMul},
    {"elementwise_pow", "elementwise_pow", "X Y", "Out", import_binary, Op::kPow},
    {"elementwise_sub", "subtract", "X Y", "Out", import_binary, Op::kSub},
    {"elu", "elu", "X", "Out", import_with_alpha, Op::kElu},
    {"equal", "equal", "X Y", "Out", import_binary, Op::kEqual},
    {"erf", "erf", "X", "Out", import_unary, Op::kErf},
    {"exp", "exp", "X", "Out", import_float_unary, Op::kExp},
    {"expm1", "expm1", "X", "Out", import_two_steps, Op::kExp},
    {"floor", "floor", "X", "Out", import_unary, Op::kFloor},
    {"gelu", "gelu", "X", "Out", import_gelu, Op::kGelu},
    {"greater_equal", "greater_equal", "X Y", "Out", import_binary, Op::kGreaterOrEqual},
    {"greater_than", "greater_than", "X Y", "Out", import_binary, Op::kGreater},
    {"hard_shrink", "hardshrink", "X", "Out", import_shrink, Op::kShrink},
    {"hard_sigmoid", "hardsigmoid", "X", "Out", import_hard_sigmoid, Op::kHardSigmoid},
    {"hard_swish", "hardswish", "X", "Out", import_hard_swish, Op::kHardSwish},
    {"increment", "increment", "X", "Out", import_increment, Op::kAdd},
    {"isfinite_v2", "isfinite", "X", "Out", import_two_steps, Op::kIsInf},
    {"isinf_v2", "isinf", "X", "Out", import_unary, Op::kIsInf},
    {"isnan_v2", "isnan", "X", "Out", import_unary, Op::kIsNaN},
    {"leaky_relu", "leaky_relu", "X", "Out", import_with_alpha, Op::kLeakyRelu},
    {"lerp", "lerp", "X Y Weight", "Out", import_lerp},
    {"less_equal", "less_equal", "X Y", "Out", import_binary, Op::kLessOrEqual},
    {"less_than", "less_than", "X Y", "Out", import_binary, Op::kLess},
    {"log", "log", "X", "Out", import_float_unary, Op::kLog},
    {"log10", "log10", "X", "Out", import_two_steps, Op::kLog},
    {"log1p", "log1p", "X", "Out", import_two_steps, Op::kLog},
    {"log2", "log2", "X", "Out", import_two_steps, Op::kLog},
    {"logical_and", "logical_and", "X Y", "Out", import_binary, Op::kAnd},
    {"logical_not", "logical_not", "X", "Out", import_unary, Op::kNot},
    {"logical_or", "logical_or", "X Y", "Out", import_binary, Op::kOr},
    {"logical_xor", "logical_xor", "X Y", "Out", import_binary, Op::kXor},
    {"logsigmoid", "logsigmoid", "X", "Out", import_two_steps, Op::kSoftplus},
    {"masked_fill", "masked_fill", "X Mask Value", "Out", import_masked_fill, Op::kWhere},
    {"mish", "mish", "X", "Out", import_unary, Op::kMish},
    {"not_equal", "not_equal", "X Y", "Out", import_not_equal},
    {"pow", "pow", "X FactorTensor", "Out", import_pow, Op::kPow},
    {"prelu", "prelu", "X Alpha", "Out", import_prelu, Op::kPRelu},
    {"reciprocal", "reciprocal", "X", "Out", import_unary, Op::kReciprocal},
    {"relu", "relu", "X", "Out", import_unary, Op::kRelu},
    {"relu6", "relu6", "X", "Out", import_relu6, Op::kClip},
    {"round", "round", "X", "Out", import_unary, Op::kRound},
    {"rsqrt", "rsqrt", "X", "Out", import_two_steps, Op::kSqrt},
    {"scale", "scale", "X ScaleTensor", "Out", import_scale},
    {"selu", "selu", "X", "Out", import_selu, Op::kSelu},
    {"sigmoid", "sigmoid", "X", "Out", import_float_unary, Op::kSigmoid},
    {"sign", "sign", "X", "Out", import_unary, Op::kSign},
    {"silu", "silu", "X", "Out", import_swish, Op::kSwish},
    {"sin", "sin", "X", "Out", import_unary, Op::kSin},
    {"sinh", "sinh", "X", "Out", import_unary, Op::kSinh},
    {"softplus", "softplus", "X", "Out", import_softplus, Op::kSoftplus},
    {"softshrink", "softshrink", "X", "Out", import_shrink, Op::kShrink},
    {"softsign", "softsign", "X", "Out", import_unary, Op::kSoftsign},
    {"sqrt", "sqrt", "X", "Out", import_float_unary, Op::kSqrt},
    {"square", "square", "X", "Out", import_two_steps, Op::kMul},
    {"stanh", "stanh", "X", "Out", import_stanh, Op::kTanh},
    {"sum", "add_n", "X", "Out", import_add_n, Op::kAdd},
    {"swiglu", "swiglu", "X Y", "Out", import_swiglu, Op::kSwish},
    {"swish", "swish", "X", "Out", import_swish, Op::kSwish},
    {"tan", "tan", "X", "Out", import_unary, Op::kTan},
    {"tanh", "tanh", "X", "Out", import_float_unary, Op::kTanh},
    {"tanh_shrink", "tanh_shrink", "X", "Out", import_two_steps, Op::kTanh},
    {"thresholded_relu", "thresholded_relu", "X", "Out", import_with_alpha, Op::kThresholdedRelu},
    {"trunc", "trunc", "X", "Out", import_two_steps, Op::kFloor},
    {"where", "where", "Condition X Y", "Out", import_where, Op::kWhere},
};

}  // namespace

std::span<const OperatorRow> elementwise_operators() { return kElementwiseRows; }

ValueId align(Node& node, ValueId x, ValueId y, int64_t axis) {
  const auto wide = node.b.rank(x), narrow = node.b.rank(y);
  if (axis < 0 || !wide || !narrow || *narrow == 0 || *narrow >= *wide) return y;
  const size_t behind = *wide - *narrow - std::min(*wide - *narrow, static_cast<size_t>(axis));
  if (behind == 0) return y;
  List axes;
  for (size_t i = 0; i < behind; ++i) axes.push_back(static_cast<int64_t>(*narrow + i));
  return node.b.unsqueeze(y, axes);
}

ValueId activate(Node& node, std::string_view name, ValueId x) {
  struct Row {
    std::string_view name;
    Op op;
  };
  constexpr Row kActivations[] = {
      {"relu", Op::kRelu},   {"sigmoid", Op::kSigmoid}, {"tanh", Op::kTanh}, {"gelu", Op::kGelu}, {"hard_swish", Op::kHardSwish},
      {"swish", Op::kSwish}, {"silu", Op::kSwish},      {"mish", Op::kMish}};
  if (name.empty() || name == "identity") return x;
  if (name == "relu6") return node.unary(Op::kClip, x, {{"min", 0.0}, {"max", 6.0}});
  for (const Row& row : kActivations)
    if (row.name == name) return node.unary(row.op, x);
  node.refuse("activation '" + std::string(name) + "'");
  return x;
}

}  // namespace serin::formats::paddle
