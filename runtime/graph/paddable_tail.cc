#include "runtime/graph/paddable_tail.h"

#include <algorithm>
#include <optional>

namespace serin::graph {
namespace {

/// Finite operands give a finite result.
constexpr Op kKeepFinite[] = {
    Op::kAbs,         Op::kAdd,       Op::kAnd,      Op::kCast,      Op::kCeil,  Op::kClip,        Op::kCos,
    Op::kElu,         Op::kEqual,     Op::kErf,      Op::kFloor,     Op::kGelu,  Op::kGreater,     Op::kGreaterOrEqual,
    Op::kHardSigmoid, Op::kHardSwish, Op::kIdentity, Op::kLeakyRelu, Op::kLess,  Op::kLessOrEqual, Op::kMax,
    Op::kMin,         Op::kMish,      Op::kMul,      Op::kNeg,       Op::kNot,   Op::kOr,          Op::kRelu,
    Op::kRound,       Op::kSelu,      Op::kSigmoid,  Op::kSign,      Op::kSin,   Op::kSoftplus,    Op::kSoftsign,
    Op::kSub,         Op::kSum,       Op::kSwish,    Op::kTanh,      Op::kWhere, Op::kXor};
/// What comes out of these may be NaN.
constexpr Op kMayBeNan[] = {Op::kDiv, Op::kExp, Op::kLog, Op::kMod, Op::kPow, Op::kReciprocal, Op::kSqrt, Op::kIsNaN, Op::kIsInf};

bool contains(std::span<const Op> list, Op op) { return std::ranges::find(list, op) != list.end(); }

std::optional<double> apply(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return b == 0 ? std::nullopt : std::optional(a / b);
    case Op::kMax: return std::max(a, b);
    case Op::kMin: return std::min(a, b);
    case Op::kAnd: return a != 0 && b != 0;
    case Op::kOr: return a != 0 || b != 0;
    case Op::kEqual: return a == b;
    case Op::kGreater: return a > b;
    case Op::kGreaterOrEqual: return a >= b;
    case Op::kLess: return a < b;
    case Op::kLessOrEqual: return a <= b;
    default: return std::nullopt;
  }
}

std::optional<double> apply(Op op, const Node& node, double a) {
  switch (op) {
    case Op::kIdentity: return a;
    case Op::kCast: return static_cast<DType>(node.integer("to", 0)) == DType::kBool ? static_cast<double>(a != 0) : a;
    case Op::kNeg: return -a;
    case Op::kAbs: return std::abs(a);
    case Op::kNot: return a == 0;
    default: return std::nullopt;
  }
}

}  // namespace

bool is_elementwise(Op op) { return contains(kKeepFinite, op) || contains(kMayBeNan, op); }

Tail combine(const Node& node, std::span<const Tail> parts) {
  const Op op = node.op;
  Tail result;
  for (const Tail& each : parts) result.from |= each.from;
  const auto number = [&](std::optional<double> behind, std::optional<double> where_one) {
    if (!behind || !where_one) return Tail::anything();
    result.kind = Tail::Kind::kNumber, result.behind = *behind, result.where_one = *where_one;
    return result;
  };
  if (op == Op::kWhere && parts[0].is_number()) {
    const Tail &then = parts[parts[0].behind != 0 ? 1 : 2], &one = parts[parts[0].where_one != 0 ? 1 : 2];
    if (!then.is_number()) return then;
    return number(then.behind, one.is_number() ? one.where_one : 0);
  }
  const bool all_numbers = std::ranges::all_of(parts, &Tail::is_number);
  if (all_numbers && parts.size() == 1 && apply(op, node, 0))
    return number(apply(op, node, parts[0].behind), apply(op, node, parts[0].where_one));
  if (all_numbers && parts.size() == 2 && apply(op, 1, 1))
    return number(apply(op, parts[0].behind, parts[1].behind), apply(op, parts[0].where_one, parts[1].where_one));
  if (parts.size() == 2 && op == Op::kMul && (parts[0].is_zero() || parts[1].is_zero()) && parts[0].is_tame() && parts[1].is_tame())
    return number(0, 0);
  if (parts.size() == 2 && op == Op::kAdd) {
    for (const size_t i : {0, 1})
      if (parts[i].is_lowest() && parts[1 - i].is_tame()) return number(parts[i].behind, 0);
  }
  const bool divides = op == Op::kDiv && parts[1].is_number() && parts[1].behind != 0 && parts[1].is_tame();
  const bool tame = std::ranges::all_of(parts, &Tail::is_tame);
  if (!tame || !(contains(kKeepFinite, op) || divides)) return Tail::anything();
  return {};
}

}  // namespace serin::graph
