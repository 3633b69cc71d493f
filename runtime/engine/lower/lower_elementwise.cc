// lower_elementwise.cc: lowers operators on one element at a time. ONNX has fifty names for three kernels: Unary, Binary, Select.

#include <limits>
#include <optional>

#include "kernels/indexing.h"
#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

namespace {

using graph::Op;
using kernels::BinaryFn;
using kernels::UnaryFn;

UnaryFn unary_fn(Op op) {
  switch (op) {
    case Op::kAbs: return UnaryFn::kAbs;
    case Op::kAcos: return UnaryFn::kAcos;
    case Op::kAcosh: return UnaryFn::kAcosh;
    case Op::kAsin: return UnaryFn::kAsin;
    case Op::kAsinh: return UnaryFn::kAsinh;
    case Op::kAtan: return UnaryFn::kAtan;
    case Op::kAtanh: return UnaryFn::kAtanh;
    case Op::kCeil: return UnaryFn::kCeil;
    case Op::kCos: return UnaryFn::kCos;
    case Op::kCosh: return UnaryFn::kCosh;
    case Op::kErf: return UnaryFn::kErf;
    case Op::kExp: return UnaryFn::kExp;
    case Op::kFloor: return UnaryFn::kFloor;
    case Op::kHardSwish: return UnaryFn::kHardSwish;
    case Op::kIsInf: return UnaryFn::kIsInf;
    case Op::kIsNaN: return UnaryFn::kIsNaN;
    case Op::kLog: return UnaryFn::kLog;
    case Op::kMish: return UnaryFn::kMish;
    case Op::kNeg: return UnaryFn::kNeg;
    case Op::kNot: return UnaryFn::kNot;
    case Op::kReciprocal: return UnaryFn::kReciprocal;
    case Op::kRelu: return UnaryFn::kRelu;
    case Op::kRound: return UnaryFn::kRound;
    case Op::kSigmoid: return UnaryFn::kSigmoid;
    case Op::kSign: return UnaryFn::kSign;
    case Op::kSin: return UnaryFn::kSin;
    case Op::kSinh: return UnaryFn::kSinh;
    case Op::kSoftplus: return UnaryFn::kSoftplus;
    case Op::kSoftsign: return UnaryFn::kSoftsign;
    case Op::kSqrt: return UnaryFn::kSqrt;
    case Op::kTan: return UnaryFn::kTan;
    case Op::kTanh: return UnaryFn::kTanh;
    default: return UnaryFn::kIdentity;
  }
}

BinaryFn binary_fn(const graph::Node& node) {
  switch (node.op) {
    case Op::kSub: return BinaryFn::kSub;
    case Op::kMul: return BinaryFn::kMul;
    case Op::kDiv: return BinaryFn::kDiv;
    case Op::kPow: return BinaryFn::kPow;
    case Op::kMod: return node.integer("fmod", 0) ? BinaryFn::kFMod : BinaryFn::kMod;
    case Op::kMax: return BinaryFn::kMax;
    case Op::kMin: return BinaryFn::kMin;
    case Op::kEqual: return BinaryFn::kEqual;
    case Op::kLess: return BinaryFn::kLess;
    case Op::kLessOrEqual: return BinaryFn::kLessOrEqual;
    case Op::kGreater: return BinaryFn::kGreater;
    case Op::kGreaterOrEqual: return BinaryFn::kGreaterOrEqual;
    case Op::kAnd: return BinaryFn::kAnd;
    case Op::kOr: return BinaryFn::kOr;
    case Op::kXor: return BinaryFn::kXor;
    default: return BinaryFn::kAdd;  // Add, Sum, Mean
  }
}

bool is_integer(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUInt64; }

/// The shape that broadcasting gives; the graph has checked that it exists.
Shape broadcast(const Shape& a, const Shape& b) {
  Shape result = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const size_t missing = result.rank() - shorter.rank();
  for (size_t axis = 0; axis < shorter.rank(); ++axis) {
    if (result[axis + missing] == 1) result[axis + missing] = shorter[axis];
  }
  return result;
}

kernels::Unary activation(const graph::Node& node) {
  const auto number = [&](std::string_view key, double fallback) { return static_cast<float>(node.number(key, fallback)); };
  switch (node.op) {
    case Op::kCelu: return {UnaryFn::kCelu, number("alpha", 1)};
    case Op::kElu: return {UnaryFn::kElu, number("alpha", 1)};
    case Op::kSelu: return {UnaryFn::kSelu, number("alpha", 1.67326319217681884765625), number("gamma", 1.05070102214813232421875)};
    case Op::kThresholdedRelu: return {UnaryFn::kThresholdedRelu, number("alpha", 1)};
    case Op::kLeakyRelu: return {UnaryFn::kLeakyRelu, number("alpha", 0.01)};
    case Op::kHardSigmoid: return {UnaryFn::kHardSigmoid, number("alpha", 0.2), number("beta", 0.5)};
    case Op::kGelu: return {node.text("approximate", "none") == "tanh" ? UnaryFn::kGeluTanh : UnaryFn::kGelu};
    default: return {unary_fn(node.op)};
  }
}

}  // namespace

Status lower_unary(Lowering& at) {
  kernels::Unary unary = activation(at.node());
  if (at.op() == Op::kIsInf) {
    const bool positive = at.node().integer("detect_positive", 1) != 0, negative = at.node().integer("detect_negative", 1) != 0;
    if (!positive && !negative) return Lowering::refuse("detects neither sign");
    unary.alpha = positive == negative ? 0.f : positive ? 1.f : -1.f;
  }
  return at.emit(unary, {at.input(0)}, {at.output()});
}

Status lower_clip(Lowering& at) {
  const DType dtype = at.dtype(at.output());
  // A bound is an attribute or an operand; either way a tensor of one element, or nothing.
  const auto bound = [&](std::string_view attribute, size_t i) -> std::optional<TensorId> {
    if (at.has(i)) return at.input(i);
    if (!at.node().attributes.contains(attribute)) return std::nullopt;
    return at.number(dtype, at.node().number(attribute, 0));
  };
  const auto low = bound("min", 1), high = bound("max", 2);
  const auto as_float = [&](const std::optional<TensorId>& id, float absent) -> std::optional<float> {
    if (!id) return absent;
    const graph::ConstantPtr& constant = at.tensor(*id).constant;
    if (!constant || constant->dtype != DType::kFloat32 || constant->elements() != 1) return std::nullopt;
    return constant->span<float>()[0];
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto alpha = as_float(low, -kInfinity), beta = as_float(high, kInfinity);
  if (dtype == DType::kFloat32 && alpha && beta)
    return at.emit(kernels::Unary{UnaryFn::kClip, *alpha, *beta}, {at.input(0)}, {at.output()});

  // Bounds that are computed, and types that a float does not hold: min(max(x, low), high).
  if (!low && !high) return at.alias(at.output(), at.input(0));
  if (!high) return at.emit(kernels::Binary{BinaryFn::kMax}, {at.input(0), *low}, {at.output()});
  if (!low) return at.emit(kernels::Binary{BinaryFn::kMin}, {at.input(0), *high}, {at.output()});
  const TensorId raised = at.temporary_like(at.output());
  SERIN_CHECK(at.emit(kernels::Binary{BinaryFn::kMax}, {at.input(0), *low}, {raised}));
  return at.emit(kernels::Binary{BinaryFn::kMin}, {raised, *high}, {at.output()});
}

Status lower_swish(Lowering& at) {
  const double alpha = at.node().number("alpha", 1);
  if (alpha == 1) return at.emit(kernels::Unary{UnaryFn::kSilu}, {at.input(0)}, {at.output()});
  const TensorId scaled = at.temporary_like(at.output()), gate = at.temporary_like(at.output());
  const TensorId factor = at.number(at.dtype(at.output()), alpha);
  SERIN_CHECK(at.emit(kernels::Binary{BinaryFn::kMul}, {at.input(0), factor}, {scaled}));
  SERIN_CHECK(at.emit(kernels::Unary{UnaryFn::kSigmoid}, {scaled}, {gate}));
  return at.emit(kernels::Binary{BinaryFn::kMul}, {at.input(0), gate}, {at.output()});
}

Status lower_binary(Lowering& at) { return at.emit(kernels::Binary{binary_fn(at.node())}, {at.input(0), at.input(1)}, {at.output()}); }

/// The exponent, where it is 1, 2 or 3 for all elements: what is left of Pow in nearly every model is a square.
std::optional<int> whole_power(const Lowering& at) {
  const graph::ConstantPtr& constant = at.tensor(at.input(1)).constant;
  if (!constant || !(at.shape(at.input(0)) == at.shape(at.output()))) return std::nullopt;
  const auto value = graph::number_of(*constant);
  const DType dtype = at.dtype(at.input(0));
  const bool narrow = dtype == DType::kFloat16 || dtype == DType::kBFloat16;  // a cube would be rounded twice
  for (int power = 1; power <= (narrow ? 2 : 3); ++power) {
    if (value == static_cast<double>(power)) return power;
  }
  return std::nullopt;
}

/// Base and exponent may differ in type. The result has the base's; an integer base with a float exponent is raised as a float.
Status lower_pow(Lowering& at) {
  TensorId base = at.input(0), exponent = at.input(1), result = at.output();
  if (const auto power = whole_power(at)) {
    if (*power == 1) return at.alias(result, base);
    const TensorId square = *power == 2 ? result : at.temporary_like(result);
    SERIN_CHECK(at.emit(kernels::Binary{BinaryFn::kMul}, {base, base}, {square}));
    return *power == 2 ? Status{} : at.emit(kernels::Binary{BinaryFn::kMul}, {square, base}, {result});
  }
  if (at.dtype(base) == at.dtype(exponent)) return at.emit(kernels::Binary{BinaryFn::kPow}, {base, exponent}, {result});
  if (!is_integer(at.dtype(base)) || is_integer(at.dtype(exponent))) {
    const TensorId cast = at.temporary_like(exponent, at.dtype(base));
    SERIN_CHECK(at.emit(kernels::Cast{}, {exponent}, {cast}));
    return at.emit(kernels::Binary{BinaryFn::kPow}, {base, cast}, {result});
  }
  const TensorId wide = at.temporary_like(base, at.dtype(exponent)), power = at.temporary_like(result, at.dtype(exponent));
  SERIN_CHECK(at.emit(kernels::Cast{}, {base}, {wide}));
  SERIN_CHECK(at.emit(kernels::Binary{BinaryFn::kPow}, {wide, exponent}, {power}));
  return at.emit(kernels::Cast{}, {power}, {result});
}

/// f(f(f(a, b), c), d), and for Mean the sum divided by the number of operands.
Status lower_chain(Lowering& at) {
  const size_t operands = at.node().inputs.size();
  const bool mean = at.op() == Op::kMean;
  if (operands == 1) return at.alias(at.output(), at.input(0));
  TensorId sum = at.input(0);
  for (size_t i = 1; i < operands; ++i) {
    const bool last = i + 1 == operands;
    const TensorId next = at.input(i);
    if (!last && (at.bounded(sum) || at.bounded(next)))
      return Lowering::refuse("combines more than two operands whose size depends on the data");
    TensorId result = last ? at.output() : at.temporary(at.dtype(sum), broadcast(at.shape(sum), at.shape(next)));
    if (last && mean) result = at.temporary_like(at.output());
    SERIN_CHECK(at.emit(kernels::Binary{binary_fn(at.node())}, {sum, next}, {result}));
    sum = result;
  }
  if (!mean) return {};
  const TensorId count = at.number(at.dtype(at.output()), static_cast<double>(operands));
  return at.emit(kernels::Binary{BinaryFn::kDiv}, {sum, count}, {at.output()});
}

Status lower_where(Lowering& at) { return at.emit(kernels::Select{}, {at.input(0), at.input(1), at.input(2)}, {at.output()}); }

}  // namespace serin::engine
