// binary.cc: functions of two tensors or of a tensor and a number. torch computes in the wider type of both.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Op;
using graph::ValueId;

/// 0: bool, 1: integer, 2: floating-point.
int category(DType dtype) {
  if (dtype == DType::kBool) return 0;
  return is_float(dtype) ? 2 : 1;
}

DType wider(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (category(a) == 2 && dtype_size(a) == dtype_size(b)) return DType::kFloat32;  // f16 and bf16
  if (category(a) == 1 && dtype_size(a) == dtype_size(b)) return DType::kInt16;    // u8 and i8
  return dtype_size(a) > dtype_size(b) ? a : b;
}

std::string_view second(const NodeImport& node) { return node.has("other") || !node.has("exponent") ? "other" : "exponent"; }

void import_arithmetic(NodeImport& node, Op op) {
  const DType dtype = node.result_dtype();
  const ValueId a = node.operand("self", dtype), b = node.operand(second(node), dtype);
  if (dtype == DType::kBool) return node.give(node.b.add(op == Op::kMul ? Op::kAnd : Op::kOr, {a, b}));
  node.give(node.b.add(op, {a, b}));
}

/// add, sub: self + alpha * other; rsub: other - alpha * self.
void import_sum(NodeImport& node, Op op) {
  const double alpha = node.number("alpha", 1);
  const bool reversed = node.node().target.find("rsub") != std::string::npos;
  const auto other = node.node().arguments.find("other");
  const bool nothing = other != node.node().arguments.end() && other->second.kind == "as_int" && other->second.value.integer() == 0;
  if (nothing && !reversed && node.is_tensor("self")) return node.give(node.operand("self", node.result_dtype()));
  if (alpha == 1 && !reversed) return import_arithmetic(node, op);
  const DType dtype = node.result_dtype();
  ValueId a = node.operand("self", dtype), b = node.operand("other", dtype);
  if (reversed) std::swap(a, b);
  if (alpha != 1) b = node.b.add(Op::kMul, {b, node.b.number(dtype, alpha)});
  node.give(node.b.add(op, {a, b}));
}

/// The quotient of integers, rounded down; Div rounds toward zero.
ValueId floor_quotient(NodeImport& node, ValueId a, ValueId b) {
  const DType dtype = node.b.dtype(a);
  const ValueId quotient = node.b.add(Op::kDiv, {a, b}), zero = node.b.number(dtype, 0);
  const ValueId rest = node.b.add(Op::kSub, {a, node.b.add(Op::kMul, {quotient, b})});
  const ValueId signs = node.b.add(Op::kXor, {node.b.add(Op::kLess, {rest, zero}), node.b.add(Op::kLess, {b, zero})});
  const ValueId inexact = node.b.add(Op::kAnd, {node.b.add(Op::kNot, {node.b.add(Op::kEqual, {rest, zero})}), signs});
  return node.b.add(Op::kSub, {quotient, node.b.cast(inexact, dtype)});
}

void import_division(NodeImport& node, Op op) {
  const bool floors = node.node().target.find("floor_divide") != std::string::npos;
  const std::string mode = floors ? "floor" : node.text("rounding_mode", "");
  const DType dtype = node.result_dtype();
  const ValueId a = node.operand("self", dtype), b = node.operand("other", dtype);
  if (mode.empty()) return node.give(node.b.add(op, {a, b}));
  if (mode != "floor" && mode != "trunc") return node.unsupported(fmt::format("rounding_mode is '{}'", mode));
  if (!is_float(dtype)) return node.give(mode == "floor" ? floor_quotient(node, a, b) : node.b.add(op, {a, b}));
  const ValueId quotient = node.b.add(op, {a, b});
  if (mode == "floor") return node.give(node.b.add(Op::kFloor, {quotient}));
  node.give(node.b.add(Op::kMul, {node.b.add(Op::kSign, {quotient}), node.b.add(Op::kFloor, {node.b.add(Op::kAbs, {quotient})})}));
}

/// The rest has the sign of the divisor (remainder) or of the dividend (fmod).
void import_remainder(NodeImport& node, Op op) {
  const DType dtype = node.result_dtype();
  const ValueId a = node.operand("self", dtype), b = node.operand("other", dtype);
  if (node.node().target.find("fmod") != std::string::npos) return node.give(node.b.add(op, {a, b}, {{"fmod", int64_t{1}}}));
  if (!is_float(dtype)) return node.give(node.b.add(op, {a, b}));
  const ValueId whole = node.b.add(Op::kFloor, {node.b.add(Op::kDiv, {a, b})});
  node.give(node.b.add(Op::kSub, {a, node.b.add(Op::kMul, {whole, b})}));
}

void import_comparison(NodeImport& node, Op op) {
  const DType dtype = promoted(node, "self", "other");
  const bool bools = dtype == DType::kBool && op != Op::kEqual;
  const DType as = bools ? DType::kInt32 : dtype;
  node.give(node.b.add(op, {node.operand("self", as), node.operand("other", as)}));
}

void import_differs(NodeImport& node, Op) {
  const DType dtype = promoted(node, "self", "other");
  node.give(node.b.add(Op::kNot, {node.b.add(Op::kEqual, {node.operand("self", dtype), node.operand("other", dtype)})}));
}

void import_logical(NodeImport& node, Op op) {
  node.give(node.b.add(op, {node.operand("self", DType::kBool), node.operand("other", DType::kBool)}));
}

/// and, or, xor of bits; of bools the logical ones.
void import_bits(NodeImport& node, Op op) {
  const DType dtype = node.result_dtype();
  if (dtype == DType::kBool) op = op == Op::kBitwiseAnd ? Op::kAnd : op == Op::kBitwiseOr ? Op::kOr : Op::kXor;
  node.give(node.b.add(op, {node.operand("self", dtype), node.operand("other", dtype)}));
}

void import_where(NodeImport& node, Op op) {
  const ValueId condition = node.b.cast(node.tensor("condition"), DType::kBool);
  if (!node.has("self")) return node.unsupported("gives indices, whose number depends on the data");
  const DType dtype = node.result_dtype();
  node.give(node.b.add(op, {condition, node.operand("self", dtype), node.operand("other", dtype)}));
}

void import_masked_fill(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId mask = node.b.cast(node.tensor("mask"), DType::kBool);
  node.give(node.b.add(Op::kWhere, {mask, node.operand("value", dtype), node.operand("self", dtype)}));
}

/// self + value * tensor1 * tensor2, or / tensor2.
void import_added_elements(NodeImport& node, Op op) {
  const DType dtype = node.result_dtype();
  ValueId product = node.b.add(op, {node.operand("tensor1", dtype), node.operand("tensor2", dtype)});
  if (const double value = node.number("value", 1); value != 1) product = node.b.add(Op::kMul, {product, node.b.number(dtype, value)});
  node.give(node.b.add(Op::kAdd, {node.operand("self", dtype), product}));
}

/// self + weight * (end - self).
void import_lerp(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId begin = node.operand("self", dtype), end = node.operand("end", dtype);
  const ValueId step = node.b.add(Op::kMul, {node.operand("weight", dtype), node.b.add(Op::kSub, {end, begin})});
  node.give(node.b.add(Op::kAdd, {begin, step}));
}

/// The difference of each element and the one before it; of bools, whether they differ.
void import_diff(NodeImport& node, Op) {
  std::vector<ValueId> parts;
  for (const char* part : {"prepend", "self", "append"})
    if (node.has(part)) parts.push_back(node.tensor(part));
  const int64_t axis = node.axis(node.integer("dim", -1), node.rank(node.tensor("self")));
  if (node.integer("n", 1) != 1) return node.unsupported("differences of differences");
  const ValueId x = parts.size() == 1 ? parts[0] : node.b.add(Op::kConcat, parts, {{"axis", axis}});
  const ValueId later = sliced(node.b, x, axis, 1, kEnd), earlier = sliced(node.b, x, axis, 0, -1);
  if (node.b.dtype(x) == DType::kBool) return node.give(node.b.add(Op::kXor, {later, earlier}));
  node.give(node.b.add(Op::kSub, {later, earlier}));
}

/// log(exp(a) + exp(b)) without overflow.
void import_logaddexp(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId a = node.operand("self", dtype), b = node.operand("other", dtype);
  const ValueId most = node.b.add(Op::kMax, {a, b});
  const ValueId sum = node.b.add(
      Op::kAdd, {node.b.add(Op::kExp, {node.b.add(Op::kSub, {a, most})}), node.b.add(Op::kExp, {node.b.add(Op::kSub, {b, most})})});
  node.give(node.b.add(Op::kAdd, {most, node.b.add(Op::kLog, {sum})}));
}

void import_atan2(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  node.give(angle_of(node, node.operand("self", dtype), node.operand("other", dtype)));
}

/// Of real numbers: 0, or half a turn below 0.
void import_real_angle(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId x = node.operand("self", dtype), zero = node.b.number(dtype, 0);
  const ValueId turn = node.b.add(Op::kWhere, {node.b.add(Op::kLess, {x, zero}), node.b.number(dtype, std::numbers::pi), zero});
  node.give(is_float(dtype) ? node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {x}), x, turn}) : turn);
}

/// sqrt(a^2 + b^2), scaled by the larger so that squares do not overflow.
void import_hypot(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId a = node.b.add(Op::kAbs, {node.operand("self", dtype)}), b = node.b.add(Op::kAbs, {node.operand("other", dtype)});
  const ValueId most = node.b.add(Op::kMax, {a, b}), least = node.b.add(Op::kMin, {a, b}), one = node.b.number(dtype, 1);
  const ValueId none = node.b.add(Op::kEqual, {most, node.b.number(dtype, 0)});
  const ValueId share = node.b.add(Op::kDiv, {least, node.b.add(Op::kWhere, {none, one, most})});
  const ValueId root = node.b.add(Op::kSqrt, {node.b.add(Op::kAdd, {node.b.add(Op::kMul, {share, share}), one})});
  const ValueId infinite = node.b.add(Op::kEqual, {most, node.b.number(dtype, std::numeric_limits<double>::infinity())});
  node.give(node.b.add(Op::kWhere, {infinite, most, node.b.add(Op::kMul, {most, root})}));
}

/// self * log(other), and 0 where self is 0 and other no NaN.
void import_xlogy(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId x = node.operand("self", dtype), zero = node.b.number(dtype, 0);
  const ValueId other = node.operand("other", dtype), product = node.b.add(Op::kMul, {x, node.b.add(Op::kLog, {other})});
  const ValueId zero_or_nan = node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {other}), other, zero});
  node.give(node.b.add(Op::kWhere, {node.b.add(Op::kEqual, {x, zero}), zero_or_nan, product}));
}

/// fmax, fmin: the other one, where one is no number.
void import_number_of_two(NodeImport& node, Op op) {
  const DType dtype = node.result_dtype();
  const ValueId a = node.operand("self", dtype), b = node.operand("other", dtype), most = node.b.add(op, {a, b});
  if (!is_float(dtype)) return node.give(most);
  const ValueId other = node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {a}), b, most});
  node.give(node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {b}), a, other}));
}

/// 0 below 0, `values` at 0, 1 above.
void import_step(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId x = node.operand("self", dtype), zero = node.b.number(dtype, 0);
  const ValueId above = node.b.cast(node.b.add(Op::kGreater, {x, zero}), dtype);
  node.give(node.b.add(Op::kWhere, {node.b.add(Op::kEqual, {x, zero}), node.operand("values", dtype), above}));
}

/// Whether x is below 0 or -0, of which 1 / x tells.
ValueId has_sign(NodeImport& node, ValueId x) {
  const ValueId zero = node.b.number(node.b.dtype(x), 0), below = node.b.add(Op::kLess, {x, zero});
  if (!is_float(node.b.dtype(x))) return below;
  const ValueId inverse = node.b.add(Op::kLess, {node.b.add(Op::kReciprocal, {x}), zero});
  return node.b.add(Op::kOr, {below, node.b.add(Op::kAnd, {node.b.add(Op::kEqual, {x, zero}), inverse})});
}

void import_sign_bit(NodeImport& node, Op) { node.give(has_sign(node, node.tensor("self"))); }

/// The size of self with the sign of other.
void import_copied_sign(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId size = node.b.add(Op::kAbs, {node.operand("self", dtype)});
  node.give(node.b.add(Op::kWhere, {has_sign(node, node.operand("other", dtype)), node.b.add(Op::kNeg, {size}), size}));
}

/// isposinf, isneginf.
void import_is_infinite(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  const DType dtype = is_float(node.b.dtype(x)) ? node.b.dtype(x) : DType::kFloat32;
  const double infinity = std::numeric_limits<double>::infinity();
  const bool below = node.node().target.find("isneginf") != std::string::npos;
  node.give(node.b.add(op, {node.b.cast(x, dtype), node.b.number(dtype, below ? -infinity : infinity)}));
}

/// Whether each element is one of test_elements.
void import_isin(NodeImport& node, Op) {
  const bool one = !node.is_tensor("test_elements") && node.has("test_element");
  const DType dtype = promoted(node, node.is_tensor("elements") ? "elements" : "element", one ? "test_element" : "test_elements");
  const ValueId x = node.operand(node.is_tensor("elements") ? "elements" : "element", dtype);
  ValueId same = graph::kNone;
  if (one) {
    same = node.b.add(Op::kEqual, {x, node.operand("test_element", dtype)});
  } else {
    const ValueId tests = node.b.reshape(node.operand("test_elements", dtype), {-1});
    const ValueId equal = node.b.add(Op::kEqual, {node.b.unsqueeze(x, {-1}), tests});
    const ValueId any =
        node.b.add(Op::kReduceMax, {node.b.cast(equal, DType::kInt32)}, {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{0}}});
    same = node.b.cast(any, DType::kBool);
  }
  node.give(node.flag("invert", false) ? node.b.add(Op::kNot, {same}) : same);
}

void import_prelu(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  ValueId slope = node.tensor("weight");
  const size_t rank = node.rank(x);
  if (node.b.size(slope, 0) != 1 && rank > 2 && node.rank(slope) == 1) {
    std::vector<int64_t> shape(rank - 1, 1);
    shape[0] = -1;
    slope = node.b.reshape(slope, shape);
  }
  node.give(node.b.add(op, {x, slope}));
}

constexpr OperatorRow kBinary[] = {
    {"aten.__and__", import_bits, Op::kBitwiseAnd},
    {"aten.__or__", import_bits, Op::kBitwiseOr},
    {"aten.__xor__", import_bits, Op::kBitwiseXor},
    {"aten._prelu_kernel", import_prelu, Op::kPRelu},
    {"aten.add", import_sum, Op::kAdd},
    {"aten.addcdiv", import_added_elements, Op::kDiv},
    {"aten.addcmul", import_added_elements, Op::kMul},
    {"aten.angle", import_real_angle},
    {"aten.arctan2", import_atan2},
    {"aten.atan2", import_atan2},
    {"aten.bitwise_and", import_bits, Op::kBitwiseAnd},
    {"aten.bitwise_or", import_bits, Op::kBitwiseOr},
    {"aten.bitwise_xor", import_bits, Op::kBitwiseXor},
    {"aten.copysign", import_copied_sign},
    {"aten.diff", import_diff},
    {"aten.div", import_division, Op::kDiv},
    {"aten.eq", import_comparison, Op::kEqual},
    {"aten.float_power", import_arithmetic, Op::kPow},
    {"aten.floor_divide", import_division, Op::kDiv},
    {"aten.fmax", import_number_of_two, Op::kMax},
    {"aten.fmin", import_number_of_two, Op::kMin},
    {"aten.fmod", import_remainder, Op::kMod},
    {"aten.ge", import_comparison, Op::kGreaterOrEqual},
    {"aten.gt", import_comparison, Op::kGreater},
    {"aten.heaviside", import_step},
    {"aten.hypot", import_hypot},
    {"aten.isin", import_isin},
    {"aten.isneginf", import_is_infinite, Op::kEqual},
    {"aten.isposinf", import_is_infinite, Op::kEqual},
    {"aten.le", import_comparison, Op::kLessOrEqual},
    {"aten.lerp", import_lerp},
    {"aten.logaddexp", import_logaddexp},
    {"aten.logical_and", import_logical, Op::kAnd},
    {"aten.logical_or", import_logical, Op::kOr},
    {"aten.logical_xor", import_logical, Op::kXor},
    {"aten.lt", import_comparison, Op::kLess},
    {"aten.masked_fill", import_masked_fill},
    {"aten.max.other", import_arithmetic, Op::kMax},
    {"aten.maximum", import_arithmetic, Op::kMax},
    {"aten.min.other", import_arithmetic, Op::kMin},
    {"aten.minimum", import_arithmetic, Op::kMin},
    {"aten.mul", import_arithmetic, Op::kMul},
    {"aten.ne", import_differs},
    {"aten.pow", import_arithmetic, Op::kPow},
    {"aten.prelu", import_prelu, Op::kPRelu},
    {"aten.remainder", import_remainder, Op::kMod},
    {"aten.rsub", import_sum, Op::kSub},
    {"aten.signbit", import_sign_bit},
    {"aten.sub", import_sum, Op::kSub},
    {"aten.true_divide", import_division, Op::kDiv},
    {"aten.where", import_where, Op::kWhere},
    {"aten.xlogy", import_xlogy},
};

}  // namespace

DType promoted(NodeImport& node, std::string_view a, std::string_view b) {
  struct Side {
    DType dtype = DType::kBool;
    int priority = 0;  ///< tensors before tensors of rank 0 before numbers
  };
  const auto side = [&node](std::string_view name) -> Side {
    if (node.is_tensor(name)) {
      const ValueId x = node.tensor(name);
      return {node.b.dtype(x), node.b.rank(x) == 0 ? 1 : 2};
    }
    const auto found = node.node().arguments.find(name);
    if (found == node.node().arguments.end()) return {};
    const std::string& kind = found->second.kind;
    return {kind == "as_bool" ? DType::kBool : kind == "as_float" ? DType::kFloat32 : DType::kInt64, 0};
  };
  const Side left = side(a), right = side(b);
  if (left.priority == right.priority) return wider(left.dtype, right.dtype);
  const Side& high = left.priority > right.priority ? left : right;
  const Side& low = left.priority > right.priority ? right : left;
  return category(low.dtype) > category(high.dtype) ? (low.priority == 0 && low.dtype == DType::kFloat64 ? DType::kFloat32 : low.dtype)
                                                    : high.dtype;
}

/// atan of the quotient in the right half-plane, moved by a half turn in the left one.
ValueId angle_of(NodeImport& node, ValueId y, ValueId x) {
  const DType dtype = node.b.dtype(x);
  const auto number = [&](double value) { return node.b.number(dtype, value); };
  const ValueId zero = number(0), on_axis = node.b.add(Op::kEqual, {x, zero});
  const ValueId angle = node.b.add(Op::kAtan, {node.b.add(Op::kDiv, {y, node.b.add(Op::kWhere, {on_axis, number(1), x})})});
  const ValueId below = node.b.add(Op::kLess, {y, zero});
  const ValueId turn = node.b.add(Op::kWhere, {below, number(-std::numbers::pi), number(std::numbers::pi)});
  const ValueId turned = node.b.add(Op::kWhere, {node.b.add(Op::kLess, {x, zero}), node.b.add(Op::kAdd, {angle, turn}), angle});
  const ValueId upright = node.b.add(Op::kMul, {node.b.add(Op::kSign, {y}), number(std::numbers::pi / 2)});
  return node.b.add(Op::kWhere, {on_axis, upright, turned});
}

std::span<const OperatorRow> binary_operators() { return kBinary; }

}  // namespace serin::formats::torch
