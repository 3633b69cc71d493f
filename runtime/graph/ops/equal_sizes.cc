// equal_sizes.cc: looks at the operands of operators whose rule is that of broadcasting.

#include "runtime/graph/ops/equal_sizes.h"

#include <algorithm>
#include <vector>

#include "runtime/graph/ops/families.h"
#include "runtime/graph/ops/infer.h"

namespace serin::graph {

namespace {

bool broadcasts(Op op) {
  const InferRule rule = rules(op).infer;
  return rule == &infer_arithmetic || rule == &infer_pow || rule == &infer_comparison || rule == &infer_logic || rule == &infer_where;
}

/// In the order of the inputs' dimensions.
std::vector<std::string> symbols_of_inputs(const Graph& graph) {
  std::vector<std::string> symbols;
  for (const ValueId input : graph.inputs()) {
    const auto& shape = graph.value(input).type.shape;
    if (!shape) continue;
    for (const Dim& dim : *shape)
      if (auto name = dim.symbol_name(); name && *name != "batch" && std::ranges::find(symbols, *name) == symbols.end())
        symbols.push_back(*std::move(name));
  }
  return symbols;
}

class Finder {
 public:
  Finder(const Graph& graph, EqualSizes known) : symbols_(symbols_of_inputs(graph)), equal_(std::move(known)) {}

  void meet(const Dims& a, const Dims& b) {
    for (size_t back = 1; back <= std::min(a.size(), b.size()); ++back) meet(a[a.size() - back], b[b.size() - back]);
  }
  EqualSizes take() { return std::move(equal_); }

 private:
  void meet(const Dim& a, const Dim& b) {
    const auto first = a.symbol_name(), second = b.symbol_name();
    if (!first || !second) return;
    auto kept = place(*first), gone = place(*second);
    if (kept == symbols_.end() || gone == symbols_.end() || kept == gone) return;
    if (gone < kept) std::swap(kept, gone);
    for (auto& [symbol, stands_for] : equal_)
      if (stands_for == *gone) stands_for = *kept;
    equal_.insert_or_assign(*gone, *kept);
  }
  /// Of the symbol that stands for it.
  std::vector<std::string>::const_iterator place(const std::string& symbol) const {
    const auto other = equal_.find(symbol);
    return std::ranges::find(symbols_, other == equal_.end() ? symbol : other->second);
  }

  const std::vector<std::string> symbols_;
  EqualSizes equal_;
};

}  // namespace

EqualSizes find_equal_sizes(const Graph& graph, EqualSizes known) {
  Finder finder(graph, std::move(known));
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (!broadcasts(node.op)) continue;
    const Dims* first = nullptr;
    for (const ValueId input : node.inputs) {
      if (input == kNone) continue;
      const auto& shape = graph.value(input).type.shape;
      if (!shape) continue;
      if (first)
        finder.meet(*first, *shape);
      else
        first = &*shape;
    }
  }
  return finder.take();
}

}  // namespace serin::graph
