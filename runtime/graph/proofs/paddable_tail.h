// paddable_tail.h: what is known of the elements that padding adds to a value (paddable.cc says what it is for), and what an element-wise operator makes of it.
#pragma once

#include <bitset>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

inline constexpr size_t kMostPaddedInputs = 64;
using PaddedInputs = std::bitset<kMostPaddedInputs>;

/// Inputs that say what counts, and which of their rows say it of an element. That each row of them has an element that counts says nothing of two rows together.
struct Counted {
  PaddedInputs inputs;
  /// How many axes before the last one their other axes are now, in order; nothing: not known.
  std::optional<std::vector<size_t>> rows{std::in_place};
  bool apart = false;  ///< different rows of them meet in an element

  Counted& operator|=(const Counted& other);
};

struct Tail {
  enum class Kind {
    kNumber,    ///< `behind`, and it would be `where_one` behind inputs of 1
    kFinite,    ///< as finite as any value of the model, or as that with `lowered` taken from it
    kAnything,  ///< NaN, perhaps
  } kind = Kind::kFinite;
  double behind = 0, where_one = 0;
  Counted from;        ///< inputs that a number was computed from
  bool exact = true;   ///< both are what is computed; else one of them stands for whatever the model computes there, or has it added
  double lowered = 0;  ///< of kFinite

  static Tail number(double value) { return {Kind::kNumber, value, value, {}}; }
  static Tail about(double value) { return {Kind::kNumber, value, value, {}, false}; }
  static Tail anything() { return {Kind::kAnything, 0, 0, {}}; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool is_zero() const { return is_number() && behind == 0; }
  /// The same, elsewhere: nobody knows any more which row says what counts.
  Tail moved() const {
    Tail tail = *this;
    tail.from.rows.reset();
    return tail;
  }
  /// exp of it is 0, in every type, whatever score is added to it and whatever else it is compared with; and inputs of 1 make it another.
  bool is_lowest() const { return is_number() && behind <= kLowest && where_one > kLowest; }
  /// Finite in every type.
  bool is_tame() const { return kind != Kind::kAnything && std::abs(is_number() ? behind : lowered) <= kMostTame; }
  /// Finite in f32, and perhaps -inf in an f16.
  bool is_low() const { return is_number() ? behind < -kMostTame && behind > kLowest : kind == Kind::kFinite && lowered > kMostTame; }

  static constexpr double kLowest = -1e30;
  static constexpr double kMostTame = 65504. / 2;  ///< half of what an f16 holds; the other half is for what it is added to
};

/// Whether a result's element depends on the operands' elements at its own place alone.
bool is_elementwise(Op op);
/// A number as elements of `dtype` hold it: rounded, truncated; NaN where that is not known (what does not fit an integer, integers beyond 2^53).
double as_held(DType dtype, double number);
/// Of an element-wise operator's result, of type `dtype`, from those of its operands.
Tail combine(Op op, DType dtype, std::span<const Tail> parts);

}  // namespace serin::graph
