// paddable_interval.cc: positions counted up, and what compares them with numbers. Everything else is unknown.

#include "runtime/graph/proofs/paddable_interval.h"

#include <algorithm>
#include <cmath>

#include "runtime/graph/passes/match.h"

namespace serin::graph {
namespace {

PadInterval interval_of_operand(const PadFacts& facts, ValueId id) {
  if (id == kNone) return {};
  const auto number = known_number(facts.graph, id);
  if (number && !std::isnan(*number)) return {*number, *number};
  return facts.states[static_cast<size_t>(id)].interval;
}

}  // namespace

PadInterval interval_of(const PadFacts& facts, const Node& node) {
  const auto operand = [&](size_t i) { return i < node.inputs.size() ? interval_of_operand(facts, node.inputs[i]) : PadInterval{}; };
  const auto truth = [](bool always, bool never) { return always ? PadInterval{1, 1} : never ? PadInterval{0, 0} : PadInterval{}; };
  const PadInterval a = operand(0), b = operand(1);
  switch (node.op) {
    case Op::kRange: return a.is_number() && operand(2).is_number() && operand(2).least > 0 ? PadInterval{a.least} : PadInterval{};
    case Op::kIdentity:
    case Op::kReshape:
    case Op::kFlatten:
    case Op::kSqueeze:
    case Op::kUnsqueeze:
    case Op::kTranspose:
    case Op::kExpand: return a;
    case Op::kGreaterOrEqual: return truth(a.least >= b.most, a.most < b.least);
    case Op::kGreater: return truth(a.least > b.most, a.most <= b.least);
    case Op::kLessOrEqual: return truth(a.most <= b.least, a.least > b.most);
    case Op::kLess: return truth(a.most < b.least, a.least >= b.most);
    case Op::kNot: return a.is_number() ? truth(a.least == 0, a.least != 0) : PadInterval{};
    case Op::kAnd: return truth(a.least == 1 && b.least == 1, a.most == 0 || b.most == 0);
    default: return {};
  }
}

}  // namespace serin::graph
