// bounds.cc: converts symbolic dimensions to numbers.
//
// Shape inference says how the sizes that follow from a NonZero depend on its count: "?nz", "?nz + 2", "3*?nz". Nearly all of them are
// affine in the counts, so a run needs a multiplication and an addition for each such axis, and no symbolic algebra. Coefficients are found
// by evaluating at 0 and at the unit points and believed after a check at other points; what is not affine (a floor division, a product of
// two counts) is refused by name.

#include "runtime/engine/program/bounds.h"

#include <algorithm>

namespace serin::engine {

namespace {

int64_t evaluate(const graph::Dim& dim, const std::vector<std::string>& symbols, const std::vector<int64_t>& values) {
  graph::Bindings bindings;
  for (size_t i = 0; i < symbols.size(); ++i) bindings[symbols[i]] = values[i];
  return dim.bind(bindings).value().value_or(-1);
}

}  // namespace

Bounds::Bounds(const graph::Graph& graph) : declared_(graph.data_dims) {}

std::optional<int64_t> Bounds::bound_of(const std::string& symbol, int depth) const {
  constexpr int kMaxDepth = 16;  // a bound may name another symbol; a chain longer than this goes in circles
  const auto found = declared_.find(symbol);
  if (found == declared_.end() || depth > kMaxDepth) return std::nullopt;
  graph::Bindings inner;
  for (const std::string& name : found->second.symbols()) {
    const auto bound = bound_of(name, depth + 1);
    if (!bound) return std::nullopt;
    inner[name] = *bound;
  }
  return found->second.bind(inner).value();
}

int Bounds::number_of(const std::string& symbol) {
  const auto found = std::find(symbols_.begin(), symbols_.end(), symbol);
  if (found != symbols_.end()) return static_cast<int>(found - symbols_.begin());
  symbols_.push_back(symbol);
  return static_cast<int>(symbols_.size() - 1);
}

std::optional<BoundedDim> Bounds::formula(const graph::Dim& dim) {
  const std::vector<std::string> symbols = dim.symbols();
  std::vector<int64_t> point(symbols.size(), 0);
  BoundedDim result;
  result.fixed = evaluate(dim, symbols, point);
  std::vector<int64_t> factors(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) {
    point[i] = 1;
    factors[i] = evaluate(dim, symbols, point) - result.fixed;
    point[i] = 0;
  }
  for (const int64_t probe : {2, 3, 7, 64, 1009}) {
    int64_t expected = result.fixed;
    for (size_t i = 0; i < symbols.size(); ++i) {
      point[i] = probe + static_cast<int64_t>(i);
      expected += factors[i] * point[i];
    }
    if (evaluate(dim, symbols, point) != expected) return std::nullopt;
  }
  for (size_t i = 0; i < symbols.size(); ++i) result.terms.emplace_back(number_of(symbols[i]), factors[i]);
  return result;
}

Status Bounds::apply(const graph::Dims& dims, Tensor& tensor) {
  if (!Shape::fits(dims.size())) {
    return Error{Code::kUnsupported, "'" + tensor.name + "' has " + std::to_string(dims.size()) + " dimensions; at most " +
                                         std::to_string(Shape::kMaxRank) + " are supported"};
  }
  tensor.shape = Shape();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (const auto value = dims[axis].value()) {
      tensor.shape.push_back(*value);
      continue;
    }
    auto dim = formula(dims[axis]);
    int64_t upper = dim ? dim->fixed : 0;
    for (size_t i = 0; dim && i < dim->terms.size(); ++i) {
      const auto [symbol, factor] = dim->terms[i];
      const auto bound = bound_of(symbols_[static_cast<size_t>(symbol)], 0);
      if (!bound)
        dim.reset();
      else
        upper += std::max<int64_t>(factor, 0) * *bound;
    }
    if (!dim) {
      tensor.storage = Storage::kDynamic;
      return Error{Code::kUnsupported,
                   "the size of '" + tensor.name + "' " + graph::print(dims) + " depends on the data without a known bound"};
    }
    dim->axis = axis;
    tensor.storage = Storage::kBounded;
    tensor.bounded.push_back(std::move(*dim));
    tensor.shape.push_back(std::max<int64_t>(upper, 0));
  }
  if (!tensor.shape.checked_elements())
    return Error{Code::kTooLarge, "'" + tensor.name + "' " + tensor.shape.str() + " has too many elements"};
  return {};
}

}  // namespace serin::engine
