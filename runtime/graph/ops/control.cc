// control.cc: shape rules of If, Loop, Scan and SequenceMap: the bodies are graphs of their own, whose inputs get the types of what the node
// hands in. What a body returns may have another shape in the next turn or the other branch, so little is said about results before a run.

#include <algorithm>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

/// A copy of the body with its inputs typed, inferred. Where nothing is known of an operand, the element type that the body declares stays;
/// its shape is a claim that nobody checks.
Result<std::shared_ptr<const Graph>> infer_body(Context& c, const Graph& body, const std::vector<Type>& types) {
  auto copy = std::make_shared<Graph>(body);
  for (size_t i = 0; i < types.size() && i < copy->inputs().size(); ++i) {
    Type& type = copy->value(copy->inputs()[i]).type;
    if (types[i].dtype != DType::kUndefined)
      type = types[i];
    else
      type.shape.reset();
  }
  if (auto status = infer_shapes(*copy); !status) return c.fail("in its body: {}", status.error().message);
  return std::shared_ptr<const Graph>(std::move(copy));
}

/// What can be said of a shape that is one of two.
std::optional<Dims> join(Context& c, const std::optional<Dims>& a, const std::optional<Dims>& b) {
  if (!a || !b || a->size() != b->size()) return std::nullopt;
  Dims joined;
  for (size_t axis = 0; axis < a->size(); ++axis) {
    const Dim &x = (*a)[axis], &y = (*b)[axis];
    joined.push_back(x == y ? x : c.unknown_dim(max(x, y)));
  }
  return joined;
}

/// A value of that type whose dimensions may be others by the next turn.
Type loosened(Context& c, Type type) {
  if (type.shape) type.shape = c.unknown_dims(type.shape->size());
  return type;
}

/// One more dimension, wherever it is.
Type stacked(Context& c, const Type& slice) {
  const bool known = slice.shape && Shape::fits(slice.shape->size() + 1);
  return {ValueKind::kTensor, slice.dtype, known ? std::optional(c.unknown_dims(slice.shape->size() + 1)) : std::nullopt};
}

Type without_axis(Context& c, const Type& type) {
  const bool known = type.shape && !type.shape->empty();
  return {ValueKind::kTensor, type.dtype, known ? std::optional(c.unknown_dims(type.shape->size() - 1)) : std::nullopt};
}

const Type& result_of(const Graph& body, size_t i) { return body.value(body.outputs()[i]).type; }

/// Whether a dimension of the body means the same outside of it: its symbols are not sizes that only this turn has.
bool outlives_a_turn(const Dim& dim) {
  return std::ranges::none_of(dim.symbols(), [](const std::string& symbol) { return symbol.starts_with('?'); });
}

bool has_loop(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return node.op == Op::kLoop || std::ranges::any_of(node.bodies, [](const auto& body) { return has_loop(*body); });
  });
}

/// Dimensions of `before` that a turn has changed become unknown, unless they are (`open`); all of the shape if it is of another rank. Nothing if the value
/// has another type after the turn.
std::optional<bool> open_what_changed(Context& c, Type& before, const Type& turn, std::vector<bool>& open) {
  if (before.kind != turn.kind || before.dtype != turn.dtype) return std::nullopt;
  if (!before.shape) return false;
  if (!turn.shape || before.shape->size() != turn.shape->size()) {
    before.shape.reset();
    open.clear();
    return true;
  }
  open.resize(before.shape->size());
  bool changed = false;
  for (size_t axis = 0; axis < open.size(); ++axis) {
    if (open[axis] || (*before.shape)[axis] == (*turn.shape)[axis]) continue;
    (*before.shape)[axis] = c.unknown_dim();
    open[axis] = changed = true;
  }
  return changed;
}

/// The body of a loop whose carried values have a shape that is the same in each turn, but for dimensions that turns change: there `types` has unknown ones
/// then, and `open` is true. Null where that is not found in a few tries, and for bodies with loops, where tries would multiply at each level.
std::shared_ptr<const Graph> body_that_keeps_types(Context& c, std::vector<Type>& types, std::vector<std::vector<bool>>& open) {
  constexpr int kMostTries = 4;
  const Graph& body = *c.node().bodies[0];
  if (body.outputs().size() != c.results() + 1 || types.size() != body.inputs().size() || has_loop(body)) return nullptr;
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto inferred = infer_body(c, body, types);
    if (!inferred) return nullptr;
    bool changed = false;
    for (size_t i = 0; i < open.size(); ++i) {
      const auto opened = open_what_changed(c, types[i + 2], result_of(**inferred, i + 1), open[i]);
      if (!opened) return nullptr;
      changed = changed || *opened;
    }
    if (!changed) return *inferred;
  }
  return nullptr;
}

/// The type of a carried value after the loop: what is unknown of a turn is another dimension there.
Type after_all_turns(Context& c, Type type, const std::vector<bool>& open) {
  for (size_t axis = 0; axis < open.size(); ++axis)
    if (open[axis]) (*type.shape)[axis] = c.unknown_dim();
  return type;
}

/// How many turns a loop takes, if its body never ends it.
std::optional<Dim> turns_of(const Context& c, const Graph& body) {
  const Dims* const count = c.elements(0);
  ValueId go_on = body.outputs()[0];
  for (NodeId id = body.producer(go_on); body.is(id, Op::kIdentity); id = body.producer(go_on)) go_on = body.input(id, 0);
  const ConstantPtr constant = body.constant(go_on);
  const bool always =
      go_on == body.inputs()[1] || (constant && constant->dtype == DType::kBool && integers_of(*constant) == std::vector<int64_t>{1});
  if (c.has(1) || !always || !count || count->size() != 1 || !count->front().nonnegative()) return std::nullopt;
  return count->front();
}

Status one_body(const Context& c) {
  if (c.node().bodies.size() != 1) return c.fail("has {} bodies, needs 1", c.node().bodies.size());
  return {};
}

/// A count that the importer gave as an attribute, at most `limit`.
Result<size_t> count(const Context& c, std::string_view attribute, size_t limit) {
  const int64_t given = c.node().integer(attribute, 0);
  if (given < 0 || static_cast<uint64_t>(given) > limit)
    return c.fail("{} is {} with {} operands and {} results", attribute, given, c.operands(), c.results());
  return static_cast<size_t>(given);
}

}  // namespace

Status infer_identity(Context& c) { return c.set(0, c.type(0)); }

Status infer_if(Context& c) {
  if (c.dtype(0) != DType::kBool && c.dtype(0) != DType::kUndefined)
    return c.fail("the condition is {}, it must be bool", dtype_name(c.dtype(0)));
  if (c.node().bodies.size() != 2) return c.fail("has {} bodies, needs 2", c.node().bodies.size());
  std::vector<Type> types;
  for (size_t i = 1; i < c.operands(); ++i) types.push_back(c.type(i));
  // Shapes that contradict each other in one branch are why there is another.
  const auto yes = infer_body(c, *c.node().bodies[0], types), no = infer_body(c, *c.node().bodies[1], types);
  if (!yes && !no) return yes.error();
  if (yes) c.graph().node(c.id()).bodies[0] = *yes;
  if (no) c.graph().node(c.id()).bodies[1] = *no;
  for (size_t i = 0; i < c.results(); ++i) {
    const Type &a = result_of(yes ? **yes : **no, i), &b = result_of(no ? **no : **yes, i);
    const bool known = a.dtype != DType::kUndefined && b.dtype != DType::kUndefined;
    if (known && a.dtype != b.dtype)
      return c.fail("result {} is {} in one branch, {} in the other", i, dtype_name(a.dtype), dtype_name(b.dtype));
    if (known && a.kind != b.kind) return c.fail("result {} is {} in one branch, {} in the other", i, print(a), print(b));
    const Type& told = a.dtype != DType::kUndefined ? a : b;
    SERIN_CHECK(c.set(i, Type{told.kind, told.dtype, join(c, a.shape, b.shape)}));
  }
  return {};
}

Status infer_loop(Context& c) {
  SERIN_CHECK(one_body(c));
  if (c.operands() < 2) return c.fail("has {} operands, needs 2", c.operands());
  SERIN_TRY(const size_t carried, count(c, "carried", std::min(c.operands() - 2, c.results())));
  std::vector<Type> types{Type::tensor(DType::kInt64, {}), Type::tensor(DType::kBool, {})};
  for (size_t i = 2; i < c.operands(); ++i) types.push_back(c.type(i));
  std::vector<Type> kept = types;
  std::vector<std::vector<bool>> open(carried);
  if (auto body = body_that_keeps_types(c, kept, open)) {
    c.graph().node(c.id()).bodies[0] = std::move(body);
    const std::optional<Dim> turns = turns_of(c, *c.node().bodies[0]);
    for (size_t i = 0; i < c.results(); ++i) {
      if (i < carried) {
        SERIN_CHECK(c.set(i, after_all_turns(c, kept[i + 2], open[i])));
        continue;
      }
      const Type& turn = result_of(*c.node().bodies[0], i + 1);
      Type type = stacked(c, turn);
      for (size_t axis = 0; type.shape && axis < turn.shape->size(); ++axis)
        if (outlives_a_turn((*turn.shape)[axis])) (*type.shape)[axis + 1] = (*turn.shape)[axis];
      if (type.shape && turns) type.shape->front() = *turns;
      SERIN_CHECK(c.set(i, std::move(type)));
    }
    return {};
  }
  for (size_t i = 2; i < 2 + carried; ++i) types[i] = loosened(c, types[i]);
  SERIN_TRY(c.graph().node(c.id()).bodies[0], infer_body(c, *c.node().bodies[0], types));
  const Graph& body = *c.node().bodies[0];
  for (size_t i = 0; i < c.results(); ++i) {
    const Type& turn = result_of(body, i + 1);
    SERIN_CHECK(c.set(i, i < carried ? loosened(c, turn) : stacked(c, turn)));
  }
  return {};
}

Status infer_scan(Context& c) {
  SERIN_CHECK(one_body(c));
  const bool batched = c.node().integer("batched", 0) != 0;
  const size_t first = batched ? 1 : 0;
  if (c.operands() < first) return c.fail("has no operands");
  SERIN_TRY(const size_t carried, count(c, "carried", std::min(c.operands() - first, c.results())));
  SERIN_TRY(const size_t scanned, count(c, "scanned", c.operands() - first - carried));
  std::vector<Type> types;
  for (size_t i = first; i < c.operands(); ++i) {
    const bool is_carried = i < first + carried, is_scanned = !is_carried && i < first + carried + scanned;
    Type type = is_carried ? loosened(c, c.type(i)) : c.type(i);
    if (is_scanned) type = without_axis(c, type);
    if (batched && (is_carried || is_scanned)) type = without_axis(c, type);
    types.push_back(std::move(type));
  }
  SERIN_TRY(c.graph().node(c.id()).bodies[0], infer_body(c, *c.node().bodies[0], types));
  for (size_t i = 0; i < c.results(); ++i) {
    const Type& turn = result_of(*c.node().bodies[0], i);
    Type result = i < carried ? loosened(c, turn) : stacked(c, turn);
    if (batched) result = stacked(c, result);
    SERIN_CHECK(c.set(i, std::move(result)));
  }
  return {};
}

Status infer_sequence_map(Context& c) {
  SERIN_CHECK(one_body(c));
  SERIN_TRY(const size_t mapped, count(c, "mapped", c.operands()));
  std::vector<Type> types;
  for (size_t i = 0; i < c.operands(); ++i) {
    types.push_back(c.type(i));
    if (i < mapped && types.back().kind == ValueKind::kSequence) types.back().kind = ValueKind::kTensor;
  }
  SERIN_TRY(c.graph().node(c.id()).bodies[0], infer_body(c, *c.node().bodies[0], types));
  for (size_t i = 0; i < c.results(); ++i) {
    Type result = loosened(c, result_of(*c.node().bodies[0], i));
    result.kind = ValueKind::kSequence;
    SERIN_CHECK(c.set(i, std::move(result)));
  }
  return {};
}

}  // namespace serin::graph
