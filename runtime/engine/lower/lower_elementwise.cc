// lower_elementwise.cc: lowers operators on one element at a time. ONNX has fifty names for three kernels: Unary, Binary, Select.

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/function_names.h"
#include "kernels/indexing.h"
#include "runtime/engine/lower/lowering.h"
#include "runtime/graph/function.h"

namespace serin::engine {

namespace {

using graph::Op;
using kernels::BinaryFn;
using kernels::UnaryFn;

BinaryFn binary_fn(const graph::Node& node) {
  if (node.op == Op::kMod && node.integer("fmod", 0)) return BinaryFn::kFMod;
  return kernels::find_binary(op_name(node.op)).value_or(BinaryFn::kAdd);  // Sum, Mean
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

}  // namespace

Status lower_unary(Lowering& at) {
  const auto function = graph::unary_function_of(at.node());
  if (!function) return Lowering::refuse("is no function of one element");
  kernels::Unary unary{function->row->fn, static_cast<float>(function->alpha.value_or(0)), static_cast<float>(function->beta.value_or(0))};
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

namespace {

/// The operand of an And that is the result, once broadcast: the other one is known and true everywhere. Exporters of transformers write masks so.
std::optional<TensorId> only_operand(const Lowering& at) {
  if (at.op() != Op::kAnd) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const graph::ConstantPtr& constant = at.tensor(at.input(i)).constant;
    if (constant && constant->dtype == DType::kBool && std::ranges::all_of(constant->span<bool>(), [](bool value) { return value; }))
      return at.bounded(at.input(1 - i)) ? std::nullopt : std::optional(at.input(1 - i));
  }
  return std::nullopt;
}

}  // namespace

Status lower_binary(Lowering& at) {
  if (const auto operand = only_operand(at)) return at.broadcast(at.output(), *operand);
  return at.emit(kernels::Binary{binary_fn(at.node())}, {at.input(0), at.input(1)}, {at.output()});
}

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
