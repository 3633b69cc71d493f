// einsum_operator.cc: Einsum of two operands -> MatMul, in the form in which other exporters write layers and attention.
//
// Letters fall into four groups: in both operands and the result (batch), only in the first (rows), only in the second (columns), and summed.
// Then the result is a product of matrices [batch..., rows, summed] and [batch..., summed, columns], between Transposes and Reshapes that
// merge the letters of a group. Groups of several letters merge only where that needs no unknown sizes; other sums stay an Einsum.

#include "runtime/formats/tensorflow/einsum.h"

#include <algorithm>
#include <string>

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

struct Letters {
  std::string a, b, result;
  std::string batch, rows, columns, summed;
};

bool has_no_repeats(std::string letters) {
  std::ranges::sort(letters);
  return std::ranges::adjacent_find(letters) == letters.end() &&
         std::ranges::all_of(letters, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

std::optional<Letters> read_equation(std::string_view equation) {
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string_view::npos || arrow == std::string_view::npos || comma > arrow) return std::nullopt;
  Letters letters{std::string(equation.substr(0, comma)),
                  std::string(equation.substr(comma + 1, arrow - comma - 1)),
                  std::string(equation.substr(arrow + 2)),
                  {},
                  {},
                  {},
                  {}};
  if (!has_no_repeats(letters.a) || !has_no_repeats(letters.b) || !has_no_repeats(letters.result)) return std::nullopt;
  const auto in = [](const std::string& text, char c) { return text.find(c) != std::string::npos; };
  for (const char c : letters.a) {
    if (in(letters.b, c))
      (in(letters.result, c) ? letters.batch : letters.summed) += c;
    else if (in(letters.result, c))
      letters.rows += c;
    else
      return std::nullopt;
  }
  for (const char c : letters.b) {
    if (in(letters.a, c)) continue;
    if (!in(letters.result, c)) return std::nullopt;
    letters.columns += c;
  }
  if (letters.result.size() != letters.batch.size() + letters.rows.size() + letters.columns.size()) return std::nullopt;
  return letters;
}

ValueId ordered(NodeImport& n, ValueId id, const std::string& from, const std::string& to) {
  if (from == to) return id;
  List order;
  for (const char c : to) order.push_back(static_cast<int64_t>(from.find(c)));
  return n.scope().permuted(id, order);
}

/// The product of the sizes of letters; nothing if one is not known.
std::optional<int64_t> size_of(NodeImport& n, ValueId id, const std::string& of, const std::string& letters) {
  int64_t product = 1;
  for (const char c : letters) {
    const auto size = n.builder().size(id, of.find(c));
    if (!size || __builtin_mul_overflow(product, *size, &product)) return std::nullopt;
  }
  return product;
}

/// The last `count` axes as one, of `size` elements; the others stay.
ValueId merged_end(NodeImport& n, ValueId id, size_t kept, size_t count, int64_t size) {
  if (count == 1) return id;
  List shape(kept, 0);
  shape.push_back(size);
  if (const graph::ConstantPtr constant = n.scope().graph().constant(id)) {
    Shape made;
    for (size_t axis = 0; axis < kept; ++axis) made.push_back(constant->shape[axis]);
    made.push_back(size);
    return n.scope().reshaped(id, made);
  }
  return n.builder().reshape(id, shape);
}

}  // namespace

bool einsum_as_product(NodeImport& n, ValueId a, ValueId b, std::string_view equation) {
  const auto letters = read_equation(equation);
  graph::Builder& builder = n.builder();
  if (!letters || builder.rank(a) != letters->a.size() || builder.rank(b) != letters->b.size()) return false;
  const auto& [as, bs, result, batch, rows, columns, summed] = *letters;
  if (summed.empty() || columns.empty() || rows.empty() || (rows.size() > 1 && !batch.empty())) return false;
  const auto depth = size_of(n, b, bs, summed), width = size_of(n, b, bs, columns);
  if ((summed.size() > 1 && !depth) || (columns.size() > 1 && !width)) return false;
  ValueId left = ordered(n, a, as, batch + rows + summed);
  left = merged_end(n, left, batch.size() + rows.size(), summed.size(), depth.value_or(-1));
  ValueId right = ordered(n, b, bs, batch + summed + columns);
  if (summed.size() > 1) {  // without a batch: its axes go first
    if (!batch.empty() || columns.size() > 1 || !n.scope().graph().constant(right)) return false;
    right = n.scope().reshaped(right, Shape{*depth, *width});
  } else {
    right = merged_end(n, right, batch.size() + 1, columns.size(), width.value_or(-1));
  }
  const ValueId product = builder.add(Op::kMatMul, {left, right});
  ValueId shaped = product;
  if (columns.size() > 1) {
    List shape(batch.size() + rows.size(), 0), parts;
    for (const char c : columns) parts.push_back(*size_of(n, b, bs, std::string(1, c)));
    shape.insert(shape.end(), parts.begin(), parts.end());
    shaped = builder.reshape(product, shape);
    n.scope().split[shaped] = {product, parts};
  }
  n.out(ordered(n, shaped, batch + rows + columns, result));
  return true;
}

}  // namespace serin::formats::tf
