// complex.cc: arithmetic of complex numbers.

#include "runtime/formats/torch/complex.h"

#include <fmt/format.h>

#include <cmath>

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

// Arithmetic in which kNone is a tensor of zeros.
ValueId negative(NodeImport& node, ValueId a) { return a == kNone ? a : node.b.add(Op::kNeg, {a}); }
ValueId plus(NodeImport& node, ValueId a, ValueId b) { return a == kNone ? b : b == kNone ? a : node.b.add(Op::kAdd, {a, b}); }
ValueId minus(NodeImport& node, ValueId a, ValueId b) {
  return a == kNone ? negative(node, b) : b == kNone ? a : node.b.add(Op::kSub, {a, b});
}
ValueId times(NodeImport& node, ValueId a, ValueId b) { return a == kNone || b == kNone ? kNone : node.b.add(Op::kMul, {a, b}); }
ValueId over(NodeImport& node, ValueId a, ValueId b) { return a == kNone ? a : node.b.add(Op::kDiv, {a, b}); }

Parts multiplied_parts(NodeImport& node, Parts x, double factor) {
  for (ValueId* const part : {&x.real, &x.imaginary})
    if (*part != kNone) *part = multiplied(node, *part, factor);
  return x;
}

Parts product_of(NodeImport& node, Parts a, Parts b) {
  return {minus(node, times(node, a.real, b.real), times(node, a.imaginary, b.imaginary)),
          plus(node, times(node, a.real, b.imaginary), times(node, a.imaginary, b.real))};
}

/// a b* / |b|^2. Squares of sizes beyond 10^19 overflow, where torch scales them.
Parts quotient(NodeImport& node, Parts a, Parts b) {
  if (b.imaginary == kNone) return {over(node, a.real, b.real), over(node, a.imaginary, b.real)};
  const Parts above = product_of(node, a, {b.real, negative(node, b.imaginary)});
  const ValueId below = plus(node, times(node, b.real, b.real), times(node, b.imaginary, b.imaginary));
  return {over(node, above.real, below), over(node, above.imaginary, below)};
}

Parts from_angle(NodeImport& node, ValueId size, ValueId angle) {
  return {times(node, size, node.b.add(Op::kCos, {angle})), times(node, size, node.b.add(Op::kSin, {angle}))};
}

/// A tensor: real and imaginary part, zeros written out.
Parts self_of(NodeImport& node) {
  Parts x = complex_operand(node, "self");
  if (x.imaginary == kNone) x.imaginary = zeros_like(node, x.real);
  return x;
}

struct Polar {
  ValueId size, angle;
};

Polar polar_of(NodeImport& node) {
  const Parts x = self_of(node);
  const ValueId both = as_complex(node, x);
  return {node.b.add(Op::kReduceL2, {both}, {{"axes", List{-1}}, {"keepdims", int64_t{0}}}), angle_of(node, x.imaginary, x.real)};
}

void give(NodeImport& node, Parts parts) { node.give(as_complex(node, parts)); }

void import_complex_product(NodeImport& node, Op) {
  give(node, product_of(node, complex_operand(node, "self"), complex_operand(node, "other")));
}

void import_complex_square(NodeImport& node, Op) { give(node, product_of(node, self_of(node), self_of(node))); }

void import_quotient(NodeImport& node, Op) {
  if (node.has("rounding_mode")) return node.unsupported("rounds complex numbers");
  give(node, quotient(node, complex_operand(node, "self"), complex_operand(node, "other")));
}

void import_reciprocal(NodeImport& node, Op) {
  give(node, quotient(node, {node.b.number(node.result_dtype(), 1), kNone}, complex_operand(node, "self")));
}

/// add, sub: self + alpha * other; rsub: other - alpha * self.
void import_complex_sum(NodeImport& node, Op op) {
  Parts a = complex_operand(node, "self"), b = complex_operand(node, "other");
  if (node.node().target.find("rsub") != std::string::npos) std::swap(a, b);
  b = multiplied_parts(node, b, node.number("alpha", 1));
  const auto sum = op == Op::kSub ? minus : plus;
  give(node, {sum(node, a.real, b.real), sum(node, a.imaginary, b.imaginary)});
}

/// self + value * tensor1 * tensor2.
void import_complex_addcmul(NodeImport& node, Op) {
  const Parts a = complex_operand(node, "self"), x = product_of(node, complex_operand(node, "tensor1"), complex_operand(node, "tensor2"));
  const Parts b = multiplied_parts(node, x, node.number("value", 1));
  give(node, {plus(node, a.real, b.real), plus(node, a.imaginary, b.imaginary)});
}

void import_complex_size(NodeImport& node, Op op) {
  node.give(node.b.add(op, {node.b.cast(node.tensor("self"), node.result_dtype())}, {{"axes", List{-1}}, {"keepdims", int64_t{0}}}));
}

void import_complex_angle(NodeImport& node, Op) {
  const Parts x = self_of(node);
  node.give(angle_of(node, x.imaginary, x.real));
}

void import_part(NodeImport& node, Op) {
  const Parts x = complex_operand(node, "self");
  node.give(node.node().target.find("imag") != std::string::npos ? x.imaginary : x.real);
}

void import_conjugate(NodeImport& node, Op) {
  const Parts x = self_of(node);
  give(node, {x.real, negative(node, x.imaginary)});
}

/// view_as_real, view_as_complex, clone ...: the value itself.
void import_itself(NodeImport& node, Op) { node.give(node.tensor("self")); }

void import_complex(NodeImport& node, Op) { give(node, {node.tensor("real"), node.tensor("imag")}); }
void import_polar(NodeImport& node, Op) { give(node, from_angle(node, node.tensor("abs"), node.tensor("angle"))); }

void import_exp(NodeImport& node, Op op) {
  const Parts x = complex_operand(node, "self");
  give(node, from_angle(node, node.b.add(op, {x.real}), x.imaginary));
}

void import_log(NodeImport& node, Op op) {
  const Polar x = polar_of(node);
  give(node, {node.b.add(op, {x.size}), x.angle});
}

/// The power of a number: products for small whole ones, as torch does for 2; others by size and angle.
Parts power(NodeImport& node, double exponent) {
  const Parts x = self_of(node);
  if (exponent == 1 || exponent == 2 || exponent == 3) {
    Parts y = x;
    for (int i = 1; i < static_cast<int>(exponent); ++i) y = product_of(node, y, x);
    return y;
  }
  const Polar polar = polar_of(node);
  const ValueId factor = node.b.number(node.result_dtype(), exponent);
  return from_angle(node, node.b.add(Op::kPow, {polar.size, factor}), node.b.add(Op::kMul, {polar.angle, factor}));
}

void import_power(NodeImport& node, Op) {
  const auto exponent = node.node().arguments.find("exponent");
  const bool number = exponent != node.node().arguments.end() && (exponent->second.kind == "as_int" || exponent->second.kind == "as_float");
  if (!number || !node.is_complex("self")) return node.unsupported("a power of complex numbers that is no real number");
  give(node, power(node, node.number("exponent", 1)));
}

void import_sqrt(NodeImport& node, Op) { give(node, power(node, 0.5)); }

/// x / |x|, and 0 of 0.
void import_direction(NodeImport& node, Op) {
  const Parts x = self_of(node);
  const ValueId size = polar_of(node).size, dtype_zero = node.b.number(node.result_dtype(), 0);
  const ValueId divisor = node.b.add(Op::kWhere, {node.b.add(Op::kEqual, {size, dtype_zero}), node.b.number(node.result_dtype(), 1), size});
  give(node, {over(node, x.real, divisor), over(node, x.imaginary, divisor)});
}

constexpr OperatorRow kComplex[] = {
    {"aten._conj", import_conjugate, Op::kNeg, Alias::kView},
    {"aten._conj_physical", import_conjugate},
    {"aten.abs", import_complex_size, Op::kReduceL2},
    {"aten.add", import_complex_sum, Op::kAdd},
    {"aten.addcmul", import_complex_addcmul},
    {"aten.angle", import_complex_angle},
    {"aten.complex", import_complex},
    {"aten.conj", import_conjugate, Op::kNeg, Alias::kView},
    {"aten.conj_physical", import_conjugate},
    {"aten.div", import_quotient},
    {"aten.exp", import_exp, Op::kExp},
    {"aten.imag", import_part, Op::kConcat, Alias::kView},
    {"aten.log", import_log, Op::kLog},
    {"aten.mul", import_complex_product},
    {"aten.polar", import_polar},
    {"aten.pow", import_power},
    {"aten.real", import_part, Op::kConcat, Alias::kView},
    {"aten.reciprocal", import_reciprocal},
    {"aten.resolve_conj", import_itself},
    {"aten.resolve_neg", import_itself},
    {"aten.rsub", import_complex_sum, Op::kSub},
    {"aten.sgn", import_direction},
    {"aten.sqrt", import_sqrt},
    {"aten.square", import_complex_square},
    {"aten.sub", import_complex_sum, Op::kSub},
    {"aten.true_divide", import_quotient},
    {"aten.view_as_complex", import_itself, Op::kIdentity, Alias::kView},
    {"aten.view_as_real", import_itself, Op::kIdentity, Alias::kView},
};

}  // namespace

ValueId multiplied(NodeImport& node, ValueId x, double factor) {
  return factor == 1 ? x : node.b.add(Op::kMul, {x, node.b.number(node.b.dtype(x), factor)});
}

ValueId zeros_like(NodeImport& node, ValueId x) {
  const DType dtype = node.b.dtype(x);
  const ValueId zero = node.b.number(dtype, 0);
  return node.b.rank(x) == 0 ? zero : expanded(node, zero, node.b.add(Op::kShape, {x}));
}

Parts parts_of(NodeImport& node, ValueId both) {
  const auto [found, is_new] = node.scope().parts().try_emplace(both);
  if (is_new) {
    const auto part = [&](int64_t index) {
      return node.b.add(Op::kGather, {both, node.b.constant(graph::make_constant(DType::kInt64, Shape{}, &index))},
                        {{"axis", int64_t{-1}}});
    };
    found->second = {part(0), part(1)};
  }
  return found->second;
}

ValueId as_complex(NodeImport& node, Parts parts) {
  if (parts.real == kNone && parts.imaginary == kNone) parts.real = node.b.number(node.result_dtype(), 0);
  if (parts.real == kNone) parts.real = zeros_like(node, parts.imaginary);
  if (parts.imaginary == kNone) parts.imaginary = zeros_like(node, parts.real);
  if (node.b.dims(parts.real) != node.b.dims(parts.imaginary))  // z + x: only the real parts have the size of x
    parts.imaginary = expanded(node, parts.imaginary, node.b.add(Op::kShape, {parts.real}));
  const ValueId both =
      node.b.add(Op::kConcat, {node.b.unsqueeze(parts.real, {-1}), node.b.unsqueeze(parts.imaginary, {-1})}, {{"axis", int64_t{-1}}});
  node.scope().parts().insert_or_assign(both, parts);
  return both;
}

Parts complex_operand(NodeImport& node, std::string_view name) {
  const DType dtype = node.result_dtype();
  if (node.is_complex(name)) {
    const Parts parts = parts_of(node, node.tensor(name));
    return {node.b.cast(parts.real, dtype), node.b.cast(parts.imaginary, dtype)};
  }
  const auto found = node.node().arguments.find(name);
  if (found == node.node().arguments.end() || found->second.kind != "as_complex") return {node.operand(name, dtype), kNone};
  const auto part = [&](const char* which) {
    const Json value = found->second.value[which];
    const auto number = value.number();
    if (!number) node.unsupported(fmt::format("argument '{}' is a complex number whose part '{}' is no number", name, which));
    return number.value_or(0) == 0 ? kNone : node.b.number(dtype, *number);
  };
  return {part("real"), part("imag")};
}

std::span<const OperatorRow> complex_operators() { return kComplex; }

}  // namespace serin::formats::torch
