#include "runtime/graph/proofs/paddable_tail.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/float16.h"

namespace serin::graph {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// Before it is rounded to the result's type. Nothing: not computed here.
std::optional<double> apply(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return b == 0 ? kNoValue : a / b;
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

std::optional<double> apply(Op op, double a) {
  switch (op) {
    case Op::kIdentity:
    case Op::kCast: return a;
    case Op::kNeg: return -a;
    case Op::kAbs: return std::abs(a);
    case Op::kNot: return a == 0;
    default: return std::nullopt;
  }
}

template <class T>
double in_integers(double number) {
  constexpr double kExact = 0x1p53;  // beyond, a double is not every integer
  const double whole = std::trunc(number);
  const bool holds = std::abs(whole) <= kExact && whole >= static_cast<double>(std::numeric_limits<T>::min()) &&
                     whole <= static_cast<double>(std::numeric_limits<T>::max());
  return holds ? whole : kNoValue;
}

/// A sum of, or a choice between, what the model computes and numbers: so much may have been taken from it. Kernels add in f32 and round to what they store; in an f16
/// all that is lower than -65504 is -inf.
std::optional<double> lowered(Op op, std::span<const Tail> parts) {
  if (op != Op::kAdd && op != Op::kSum && op != Op::kWhere) return std::nullopt;
  double all = 0;
  bool raises = false;
  for (const Tail& each : op == Op::kWhere ? parts.subspan(1) : parts) {
    if (!each.is_tame() && !each.is_low()) return std::nullopt;
    all += each.is_number() ? std::abs(each.behind) : each.lowered;
    raises |= each.is_number() && each.behind > 0;
  }
  return all > Tail::kMostTame && raises ? std::nullopt : std::optional(all);
}

}  // namespace

Counted& Counted::operator|=(const Counted& other) {
  if (other.inputs.none()) return *this;
  if (inputs.none()) return *this = other;
  const bool alike = rows && other.rows && *rows == *other.rows;
  apart = apart || other.apart || !alike;
  if (!alike) rows.reset();
  inputs |= other.inputs;
  return *this;
}

double as_held(DType dtype, double number) {
  switch (dtype) {
    case DType::kFloat64: return number;
    case DType::kFloat32: return static_cast<float>(number);
    case DType::kFloat16: return kernels::to_float(kernels::to_half(number));
    case DType::kBFloat16: return kernels::to_float(kernels::to_bfloat16(number));
    case DType::kBool: return number != 0;
    case DType::kInt8: return in_integers<int8_t>(number);
    case DType::kInt16: return in_integers<int16_t>(number);
    case DType::kInt32: return in_integers<int32_t>(number);
    case DType::kInt64: return in_integers<int64_t>(number);
    case DType::kUInt8: return in_integers<uint8_t>(number);
    case DType::kUInt16: return in_integers<uint16_t>(number);
    case DType::kUInt32: return in_integers<uint32_t>(number);
    case DType::kUInt64: return in_integers<uint64_t>(number);
    default: return kNoValue;
  }
}

Tail combine(Op op, DType dtype, std::span<const Tail> parts, bool keeps_finite) {
  Tail result;
  for (const Tail& each : parts) result.from |= each.from;
  const auto number = [&](double behind, double where_one, bool exact) {
    behind = as_held(dtype, behind), where_one = as_held(dtype, where_one);
    if (std::isnan(behind) || std::isnan(where_one)) return is_float(dtype) ? Tail::anything() : Tail{};
    result.kind = Tail::Kind::kNumber, result.behind = behind, result.where_one = where_one, result.exact = exact;
    return result;
  };
  if (op == Op::kWhere && parts[0].is_number() && parts[0].exact) {
    const Tail &then = parts[parts[0].behind != 0 ? 1 : 2], &one = parts[parts[0].where_one != 0 ? 1 : 2];
    if (!then.is_number()) return then;
    const bool is_known = one.is_number() || one.is_tame();  // else it may be as low as what is behind the end
    const double where_one = one.is_number() ? one.where_one : is_known ? 0 : then.behind;
    return number(then.behind, where_one, then.exact && one.is_number() && one.exact);
  }
  const bool all_numbers = std::ranges::all_of(parts, &Tail::is_number), all_exact = std::ranges::all_of(parts, &Tail::exact);
  if (all_numbers && parts.size() == 1) {
    const auto behind = apply(op, parts[0].behind), where_one = apply(op, parts[0].where_one);
    if (behind && where_one) return number(*behind, *where_one, all_exact);
  }
  if (all_numbers && parts.size() == 2) {
    const auto behind = apply(op, parts[0].behind, parts[1].behind), where_one = apply(op, parts[0].where_one, parts[1].where_one);
    if (behind && where_one) return number(*behind, *where_one, all_exact);
  }
  if (parts.size() == 2 && op == Op::kMul && (parts[0].is_zero() || parts[1].is_zero()) && parts[0].is_tame() && parts[1].is_tame())
    return number(0, 0, false);
  if (parts.size() == 2 && op == Op::kAdd) {
    for (const size_t i : {0, 1})
      if (parts[i].is_lowest() && parts[1 - i].is_tame()) return number(parts[i].behind, 0, false);
  }
  const bool divides = op == Op::kDiv && parts[1].is_number() && parts[1].behind != 0 && parts[1].is_tame();
  const bool tame = std::ranges::all_of(parts, &Tail::is_tame);
  if (!is_float(dtype)) return {};
  if (const auto low = lowered(op, parts)) return {.lowered = *low};
  return tame && (keeps_finite || divides) ? Tail{} : Tail::anything();
}

}  // namespace serin::graph
