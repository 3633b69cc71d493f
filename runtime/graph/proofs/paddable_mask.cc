// paddable_mask.cc
//
// A softmax takes e^(logit - largest logit). A logit is a sum of scores, which the model computes, and of masks, which are numbers (paddable_tail.h): some behind the
// end, and others where an element counts, of which each row has one. So what is behind the end leaves exactly 0 where
//
//   scores + mask behind the end  <=  -scores + mask where elements count  -  kGone
//
// for scores as large as they can get (magnitudes.h). e^-104 is 0 in f32 and in what is narrower, e^-746 in f64; -10000 hides scores of up to 4,600 or so. A mask of
// the lowest float hides whatever it is added to. Where elements count the usual mask is 0, and scores are what they are without it.
//
// Sums may be rounded to 16 bits, and an f16 ends at 65504.

#include "runtime/graph/proofs/paddable_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/proofs/magnitudes_product.h"

namespace serin::graph {
namespace {

constexpr double kGone = 110, kGoneInDouble = 750;
constexpr double kMostInHalf = 65504;
constexpr int kMostSteps = 1000;  // of a walk backwards, which meets what is read twice twice

/// Logits are at most mask + reach behind the end, and at least counted - counted_reach where elements count.
struct Logits {
  double mask = 0, reach = 0;
  double counted = 0, counted_reach = 0;
  Counted from;
  double roundings = 2;  ///< of the mask and of the whole

  static Logits scores(double reach) { return {0, reach, 0, reach, {}}; }
  static Logits number(double behind, double where_one, const Counted& from) {
    if (std::isnan(behind) || std::isnan(where_one)) return scores(Magnitudes::kUnknown);
    return {std::max(behind, -kMostInHalf), 0, std::min(where_one, kMostInHalf), 0, from};
  }
  friend Logits operator+(const Logits& a, const Logits& b) {
    Counted from = a.from;
    from |= b.from;
    return {std::max(a.mask + b.mask, -kMostInHalf),
            a.reach + b.reach,
            std::min(a.counted + b.counted, kMostInHalf),
            a.counted_reach + b.counted_reach,
            from,
            a.roundings + b.roundings + 1};
  }

  double most_reach() const { return std::max(reach, counted_reach); }
  bool hides(double gone) const {
    const double rounded = roundings * kRounded * (std::abs(mask) + std::abs(counted) + most_reach());
    return mask + reach + rounded + gone <= counted - counted_reach - rounded;
  }
};

const Tail* tail_of(const PadFacts& facts, ValueId id, size_t from_end) {
  const auto& shape = facts.graph.value(id).type.shape;
  return shape && from_end < shape->size() ? facts.states[static_cast<size_t>(id)].tail(shape->size() - 1 - from_end) : nullptr;
}

class MaskedLogits {
 public:
  MaskedLogits(const PadFacts& facts, size_t from_end) : facts_(facts), from_end_(from_end) {}

  const Tail* tail_of(ValueId id) const { return graph::tail_of(facts_, id, from_end_); }

  Logits of(ValueId id) {
    if (const auto number = known_number(facts_.graph, id)) return Logits::number(*number, *number, {});
    const Tail* const tail = tail_of(id);
    const NodeId maker = facts_.graph.producer(id);
    if (tail && maker != kNone && steps_-- > 0) {
      const Node& node = facts_.graph.node(maker);
      if (node.op == Op::kAdd) return of(node.inputs[0]) + of(node.inputs[1]);
      if (node.op == Op::kWhere) {
        const Tail* const condition = tail_of(node.inputs[0]);
        if (condition && condition->is_number() && condition->exact) return chosen(node, *condition);
      }
    }
    if (tail && tail->is_number() && tail->exact) return Logits::number(tail->behind, tail->where_one, tail->from);
    return Logits::scores(facts_.magnitudes.of(id));
  }

 private:
  Logits chosen(const Node& where, const Tail& condition) {
    const auto side = [&](double chooses) { return of(where.inputs[chooses != 0 ? 1 : 2]); };
    const Logits behind = side(condition.behind), counted = side(condition.where_one);
    Counted from = condition.from;
    from |= behind.from;
    from |= counted.from;
    return {behind.mask, behind.reach, counted.counted, counted.counted_reach, from, std::max(behind.roundings, counted.roundings)};
  }

  const PadFacts& facts_;
  const size_t from_end_;
  int steps_ = kMostSteps;
};

/// Of attention, before they are masked.
double scores_of(const PadFacts& facts, const Node& attention) {
  const auto head = facts.graph.value(attention.inputs[0]).type.shape->back().value();
  if (!head || *head < 1) return Magnitudes::kUnknown;
  const double scale = std::abs(attention.number("scale", 1 / std::sqrt(static_cast<double>(*head))));
  const Piece row{3, *head};
  // A soft cap only makes them smaller. Both operands may be rounded once more, and each of the sums.
  return scale * facts.magnitudes.of(attention.inputs[0], row) * facts.magnitudes.of(attention.inputs[1], row) * (1 + 4 * kRounded);
}

/// Along the axis that is `from_end` axes before the last one: where all keys that each of the others sees are seen behind the end, too, how much may be taken from
/// them there. Infinity: there may be none.
double taken_from_seen(const PadFacts& facts, ValueId id, size_t from_end, int& steps) {
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const Tail* const tail = tail_of(facts, id, from_end);
  if (!tail) return 0;  // what it says does not know the query
  const bool is_bool = facts.graph.value(id).type.dtype == DType::kBool;
  const PadInterval& interval = facts.states[static_cast<size_t>(id)].interval;
  if (is_bool && interval.is_number()) return interval.least != 0 ? 0 : kAll;
  if (is_bool && tail->is_number()) return tail->exact && tail->behind != 0 ? 0 : kAll;
  if (tail->is_number()) return std::abs(tail->behind);
  const NodeId maker = facts.graph.producer(id);
  if (maker != kNone && steps-- > 0) {
    const Node& node = facts.graph.node(maker);
    const auto operand = [&](size_t i) { return taken_from_seen(facts, node.inputs[i], from_end, steps); };
    if (node.op == Op::kIdentity) return operand(0);
    if (node.op == Op::kAnd || (node.op == Op::kAdd && !is_bool)) return operand(0) + operand(1);
    if (node.op == Op::kWhere) {
      const auto otherwise = known_number(facts.graph, node.inputs[2]);
      if (otherwise && *otherwise <= 0) return operand(0) + operand(1);
    }
  }
  return !is_bool && tail->is_tame() ? tail->lowered : kAll;
}

bool knows_queries(const PadFacts& facts, ValueId mask, size_t from_end, int& steps) {
  const NodeId maker = facts.graph.producer(mask);
  if (maker == kNone || steps-- <= 0) return false;
  const Node& node = facts.graph.node(maker);
  if (facts.graph.value(mask).type.dtype == DType::kBool) {
    const Tail* const keys = tail_of(facts, mask, from_end);
    const size_t others = facts.states[static_cast<size_t>(mask)].axes.size() - (keys ? 1 : 0);
    return others > 0 && !(keys && keys->is_number() && keys->exact);
  }
  if (node.op != Op::kAdd && node.op != Op::kWhere) return false;
  return std::ranges::any_of(node.inputs, [&](ValueId id) { return knows_queries(facts, id, from_end, steps); });
}

}  // namespace

bool knows_queries(const PadFacts& facts, ValueId mask, size_t from_end) {
  int steps = kMostSteps;
  return knows_queries(facts, mask, from_end, steps);
}

bool leaves_something(const PadFacts& facts, ValueId mask) {
  const size_t rank = facts.graph.value(mask).type.shape->size();
  for (size_t from_end = 1; from_end < rank; ++from_end) {
    int steps = kMostSteps;
    if (!(taken_from_seen(facts, mask, from_end, steps) <= Tail::kMostTame)) return false;
  }
  return true;
}

Result<Counted> hidden_by_mask(const PadFacts& facts, ValueId logits, size_t from_end, const Node* attention) {
  const auto refuse = [](std::string why) { return Error{Code::kFailedPrecondition, std::move(why)}; };
  MaskedLogits masked(facts, from_end);
  const Tail* const tail = masked.tail_of(logits);
  if (tail && tail->is_lowest()) return tail->from;
  if (!tail || !(tail->is_tame() || tail->is_low()))
    return refuse(std::string(knows_queries(facts, logits, from_end) ? kKnowsQueries : "nothing masks it"));
  Logits all = masked.of(logits);
  if (all.from.inputs.none() || !(all.mask < all.counted)) return refuse("nothing masks it");
  if (attention) all = all + Logits::scores(scores_of(facts, *attention));
  const bool in_double = facts.graph.value(logits).type.dtype == DType::kFloat64;
  if (all.hides(in_double ? kGoneInDouble : kGone)) return all.from;
  const double mask = all.mask - all.counted;
  if (all.most_reach() == 0) return refuse("nothing masks it");
  if (!std::isfinite(all.most_reach())) return refuse(fmt::format("scores may be of any size, the mask is {:.5g}", mask));
  return refuse(fmt::format("scores may reach {:.5g}, the mask is {:.5g}", all.most_reach(), mask));
}

}  // namespace serin::graph
