// dim.h: one dimension of a shape, which may still be unknown.
//
// A Dim is a polynomial with integer coefficients over named symbols, plus opaque terms that polynomials cannot express (floor division,
// max):
//   batch        2*seq + 1        floor((height + 1) / 2)
//
// Two Dims are equal if they are the same polynomial; `bind` with values for the symbols gives the number. Symbols are sizes: >= 0. A
// symbol whose name starts with '?' is known only when the model runs (NonZero). Arithmetic saturates at the limits of int64, so that no
// attribute can make it wrap: shape inference refuses such sizes. A Dim is immutable and cheap to copy; a plain number allocates nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"

namespace serin::graph {

using Bindings = std::map<std::string, int64_t, std::less<>>;

class Dim {
 public:
  Dim(int64_t value = 0);  // NOLINT(google-explicit-constructor): a number is a dimension
  static Dim symbol(std::string name);

  std::optional<int64_t> value() const;  ///< the number, if no symbol is left
  bool known() const { return value().has_value(); }
  /// The name, if this is one bare symbol.
  std::optional<std::string> symbol_name() const;
  /// All symbols that occur.
  std::vector<std::string> symbols() const;

  /// True if proven for every value (>= 0) of the symbols; otherwise false.
  bool nonnegative() const;
  bool positive() const;

  /// Replaces the symbols in `bindings`; the others stay.
  Dim bind(const Bindings& bindings) const;
  std::string str() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);  ///< rounds toward minus infinity; exact if the division is; 0 if b is 0
  friend Dim max(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);

 private:
  friend struct DimParts;
  struct Poly;
  std::shared_ptr<const Poly> poly_;  // null: the number below
  int64_t number_ = 0;
};

/// Dimensions, outermost first; the rank is known.
using Dims = std::vector<Dim>;

std::string print(const Dims& dims);                 ///< "[batch,3,224,224]"
std::optional<Shape> known_shape(const Dims& dims);  ///< if every Dim is a number
Dims bind(const Dims& dims, const Bindings& bindings);
Dims dims_of(const Shape& shape);

}  // namespace serin::graph
