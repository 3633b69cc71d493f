// same.cc: both graphs are walked side by side in topological order; values correspond if their producers do.

#include "runtime/graph/same.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace serin::graph {
namespace {

/// Weights that both read with the same SharedConstants are one object. Others are compared where they are in memory.
bool same_constant(const ConstantPtr& a, const ConstantPtr& b) {
  if (a == b) return true;
  if (!a || !b || a->dtype != b->dtype || a->shape != b->shape || a->strings != b->strings) return false;
  if (a->bytes() == 0) return true;
  return a->resident && b->resident && std::memcmp(a->resident.get(), b->resident.get(), a->bytes()) == 0;
}

bool same_type(const Type& a, const Type& b) { return a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape; }

bool same_attribute(const Attribute& a, const Attribute& b) {
  const ConstantPtr* const constant = std::get_if<ConstantPtr>(&a);
  if (constant && std::holds_alternative<ConstantPtr>(b)) return same_constant(*constant, std::get<ConstantPtr>(b));
  return a == b;
}

class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  bool run() {
    if (a_.inputs().size() != b_.inputs().size() || a_.outputs().size() != b_.outputs().size()) return false;
    if (!std::ranges::equal(a_.output_names(), b_.output_names())) return false;
    for (size_t i = 0; i < a_.inputs().size(); ++i) {
      const Value &x = a_.value(a_.inputs()[i]), &y = b_.value(b_.inputs()[i]);
      if (x.name != y.name || !same_type(x.type, y.type)) return false;
      pairs_.emplace(a_.inputs()[i], b_.inputs()[i]);
    }
    const auto first = a_.topological_order(), second = b_.topological_order();
    if (!first || !second || first->size() != second->size()) return false;
    for (size_t i = 0; i < first->size(); ++i)
      if (!same_node(a_.node((*first)[i]), b_.node((*second)[i]))) return false;
    return std::ranges::equal(a_.outputs(), b_.outputs(), [this](ValueId x, ValueId y) { return same_value(x, y); });
  }

 private:
  bool same_value(ValueId x, ValueId y) const {
    if (x == kNone || y == kNone) return x == y;
    if (a_.constant(x) || b_.constant(y)) return same_constant(a_.constant(x), b_.constant(y));
    const auto known = pairs_.find(x);
    return known != pairs_.end() && known->second == y;
  }

  bool same_node(const Node& x, const Node& y) {
    if (x.op != y.op || x.outputs.size() != y.outputs.size() || x.bodies.size() != y.bodies.size()) return false;
    if (!std::ranges::equal(x.inputs, y.inputs, [this](ValueId p, ValueId q) { return same_value(p, q); })) return false;
    const auto same = [](const auto& p, const auto& q) { return p.first == q.first && same_attribute(p.second, q.second); };
    if (!std::ranges::equal(x.attributes, y.attributes, same)) return false;
    for (size_t i = 0; i < x.bodies.size(); ++i)
      if (!same_graph(*x.bodies[i], *y.bodies[i])) return false;
    for (size_t i = 0; i < x.outputs.size(); ++i) {
      if ((x.outputs[i] == kNone) != (y.outputs[i] == kNone)) return false;
      if (x.outputs[i] != kNone) pairs_.emplace(x.outputs[i], y.outputs[i]);
    }
    return true;
  }

  const Graph &a_, &b_;
  std::map<ValueId, ValueId> pairs_;  // of a -> of b
};

}  // namespace

bool same_graph(const Graph& a, const Graph& b) { return Comparison(a, b).run(); }

}  // namespace serin::graph
