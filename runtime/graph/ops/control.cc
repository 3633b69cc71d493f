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

bool same_shape(const Type& a, const Type& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.shape && b.shape && *a.shape == *b.shape;
}

/// The body of a loop, if each turn leaves every carried value in the shape that it had before: then they have it always. Null otherwise,
/// and for bodies with bodies, where one more try would double the work at each level.
std::shared_ptr<const Graph> body_that_keeps_types(Context& c, const std::vector<Type>& types, size_t carried) {
  const Graph& body = *c.node().bodies[0];
  if (body.outputs().size() != c.results() + 1 || types.size() != body.inputs().size()) return nullptr;
  for (const NodeId id : body.nodes())
    if (!body.node(id).bodies.empty()) return nullptr;
  auto inferred = infer_body(c, body, types);
  if (!inferred) return nullptr;
  for (size_t i = 0; i < carried; ++i)
    if (!same_shape(result_of(**inferred, i + 1), types[i + 2])) return nullptr;
  for (size_t i = carried; i < c.results(); ++i) {
    const Type& turn = result_of(**inferred, i + 1);
    if (!turn.shape || !std::ranges::all_of(*turn.shape, [](const Dim& dim) { return outlives_a_turn(dim); })) return nullptr;
  }
  return *inferred;
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
  if (auto body = body_that_keeps_types(c, types, carried)) {
    c.graph().node(c.id()).bodies[0] = std::move(body);
    const std::optional<Dim> turns = turns_of(c, *c.node().bodies[0]);
    for (size_t i = 0; i < c.results(); ++i) {
      const Type& turn = result_of(*c.node().bodies[0], i + 1);
      Type type = i < carried ? turn : stacked(c, turn);
      if (i >= carried && type.shape) std::copy(turn.shape->begin(), turn.shape->end(), type.shape->begin() + 1);
      if (i >= carried && type.shape && turns) type.shape->front() = *turns;
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
