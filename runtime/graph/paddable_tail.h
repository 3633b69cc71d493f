// paddable_tail.h: what is known of the elements that padding adds to a value (paddable.cc says what it is for), and what an element-wise operator makes of it.
#pragma once

#include <bitset>
#include <cmath>
#include <span>

#include "runtime/graph/graph.h"

namespace serin::graph {

inline constexpr size_t kMostPaddedInputs = 64;
using PaddedInputs = std::bitset<kMostPaddedInputs>;

struct Tail {
  enum class Kind {
    kNumber,    ///< `behind`, and it would be `where_one` behind inputs of 1
    kFinite,    ///< as finite as any value of the model
    kAnything,  ///< NaN, perhaps
  } kind = Kind::kFinite;
  double behind = 0, where_one = 0;
  PaddedInputs from;  ///< inputs that a number was computed from
  bool exact = true;  ///< both are what is computed; else one of them stands for whatever the model computes there, or has it added

  static Tail number(double value) { return {Kind::kNumber, value, value, {}}; }
  static Tail about(double value) { return {Kind::kNumber, value, value, {}, false}; }
  static Tail anything() { return {Kind::kAnything, 0, 0, {}}; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool is_zero() const { return is_number() && behind == 0; }
  /// exp of it is 0, in every type, whatever score is added to it and whatever else it is compared with; and inputs of 1 make it another.
  bool is_lowest() const { return is_number() && behind <= kLowest && where_one > kLowest; }
  bool is_tame() const { return kind == Kind::kFinite || (is_number() && std::abs(behind) < -kLowest); }

  static constexpr double kLowest = -1e30;
};

/// Whether a result's element depends on the operands' elements at its own place alone.
bool is_elementwise(Op op);
/// A number as elements of `dtype` hold it: rounded, truncated; NaN where that is not known (what does not fit an integer, integers beyond 2^53).
double as_held(DType dtype, double number);
/// Of an element-wise operator's result, of type `dtype`, from those of its operands.
Tail combine(Op op, DType dtype, std::span<const Tail> parts);

}  // namespace serin::graph
