// bounds.h: gives a plan an upper bound and a cheap formula for sizes that depend on the data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// The data-dependent symbols of one graph. A dimension is usable if it equals fixed + sum(factor * symbol) with bounded symbols.
class Bounds {
 public:
  explicit Bounds(const graph::Graph& graph);

  /// Fills shape, storage and bounded of `tensor` from its type. kUnsupported if a dimension has no bound or no such formula.
  Status apply(const graph::Dims& dims, Tensor& tensor);

  std::vector<std::string> take_symbols() { return std::move(symbols_); }  ///< in the order of BoundedDim::terms

 private:
  std::optional<int64_t> bound_of(const std::string& symbol, int depth) const;
  std::optional<BoundedDim> formula(const graph::Dim& dim);
  int number_of(const std::string& symbol);

  std::map<std::string, graph::Dim, std::less<>> declared_;
  std::vector<std::string> symbols_;
};

}  // namespace serin::engine
