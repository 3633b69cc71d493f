// paddable_tail.h: facts about the elements that padding adds to a value, and their combination by element-wise operators.
//
// paddable.cc explains their use.
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

/// Inputs that say which elements count, and the rows of them that apply to an element. Each single row has an element that counts; two
/// rows together need not have one.
struct Counted {
  PaddedInputs inputs;
  /// Positions of their other axes, in order, as numbers of axes before the last one; nothing: unknown.
  std::optional<std::vector<size_t>> rows{std::in_place};
  bool apart = false;  ///< an element combines different rows of them

  Counted& operator|=(const Counted& other);
};

struct Tail {
  enum class Kind {
    kNumber,    ///< `behind`, or `where_one` if the inputs were 1 in the padding
    kFinite,    ///< as finite as any value of the model, or as such a value minus `lowered`
    kAnything,  ///< possibly NaN
  } kind = Kind::kFinite;
  double behind = 0, where_one = 0;
  Counted from;        ///< inputs that a number is computed from
  bool exact = true;   ///< both numbers are exact; otherwise one of them replaces, or is added to, any number that the model computes there
  double lowered = 0;  ///< for kFinite

  static Tail number(double value) { return {Kind::kNumber, value, value, {}}; }
  static Tail about(double value) { return {Kind::kNumber, value, value, {}, false}; }
  static Tail anything() { return {Kind::kAnything, 0, 0, {}}; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool is_zero() const { return is_number() && behind == 0; }
  /// The same after a move: the row that says which elements count is no longer known.
  Tail moved() const {
    Tail tail = *this;
    tail.from.rows.reset();
    return tail;
  }
  /// Its exp is 0 in every type, whatever score is added and whatever it is compared with; with inputs of 1 it differs.
  bool is_lowest() const { return is_number() && behind <= kLowest && where_one > kLowest; }
  /// Finite in every type.
  bool is_tame() const { return kind != Kind::kAnything && std::abs(is_number() ? behind : lowered) <= kMostTame; }
  /// Finite in f32, but possibly -inf in an f16.
  bool is_low() const { return is_number() ? behind < -kMostTame && behind > kLowest : kind == Kind::kFinite && lowered > kMostTame; }

  static constexpr double kLowest = -1e30;
  static constexpr double kMostTame = 65504. / 2;  ///< half of the f16 range; the other half is for the number that it is added to
};

/// The number as an element of `dtype`: rounded or truncated. NaN if unknown (too large for an integer type, or integers beyond 2^53).
double as_held(DType dtype, double number);
/// Computes the tail of an element-wise operator's result, of type `dtype`, from those of its operands. `keeps_finite`: finite operands give a
/// finite result.
Tail combine(Op op, DType dtype, std::span<const Tail> parts, bool keeps_finite);

}  // namespace serin::graph
