// Shape rules of If and Loop: the bodies are graphs of their own, whose inputs get the types of what the node hands in.

#include <algorithm>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

/// A copy of the body with its inputs typed, inferred. A known operand is a known value in the body, too.
Result<std::shared_ptr<const Graph>> infer_body(Context& c, const Graph& body, const std::vector<Type>& types) {
  auto copy = std::make_shared<Graph>(body);
  for (size_t i = 0; i < types.size(); ++i) copy->value(copy->inputs()[i]).type = types[i];
  if (auto status = infer_shapes(*copy); !status) return c.fail("in its body: {}", status.error().message);
  return std::shared_ptr<const Graph>(std::move(copy));
}

Type operand_type(Context& c, size_t i) {
  const ValueId id = c.graph().input(c.id(), i);
  return id == kNone ? Type{} : c.graph().value(id).type;
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

}  // namespace

Status infer_if(Context& c) {
  if (c.dtype(0) != DType::kBool && c.dtype(0) != DType::kUndefined)
    return c.fail("the condition is {}, it must be bool", dtype_name(c.dtype(0)));
  if (c.node().bodies.size() != 2) return c.fail("has {} bodies, needs 2", c.node().bodies.size());
  std::vector<Type> types;
  for (size_t i = 1; i < c.operands(); ++i) types.push_back(operand_type(c, i));
  for (size_t i = 0; i < 2; ++i) {
    SERIN_TRY(c.graph().node(c.id()).bodies[i], infer_body(c, *c.node().bodies[i], types));
  }
  const Graph& yes = *c.node().bodies[0];
  const Graph& no = *c.node().bodies[1];
  for (size_t i = 0; i < c.results(); ++i) {
    const Type& a = yes.value(yes.outputs()[i]).type;
    const Type& b = no.value(no.outputs()[i]).type;
    if (a.dtype != b.dtype) return c.fail("result {} is {} in one branch, {} in the other", i, dtype_name(a.dtype), dtype_name(b.dtype));
    SERIN_CHECK(c.set(i, a.dtype, join(c, a.shape, b.shape)));
  }
  return {};
}

Status infer_loop(Context& c) {
  if (c.node().bodies.size() != 1) return c.fail("has {} bodies, needs 1", c.node().bodies.size());
  const int64_t given = c.node().integer("carried", 0);
  const auto carried = static_cast<size_t>(given);
  if (given < 0 || carried + 2 > c.operands() || carried > c.results())
    return c.fail("carried is {} with {} operands and {} results", given, c.operands(), c.results());
  std::vector<Type> types{Type::tensor(DType::kInt64, {}), Type::tensor(DType::kBool, {})};
  for (size_t i = 2; i < c.operands(); ++i) {
    types.push_back(operand_type(c, i));
    if (i < 2 + carried && types.back().shape)
      types.back().shape = c.unknown_dims(types.back().shape->size());  // may change from turn to turn
  }
  SERIN_TRY(c.graph().node(c.id()).bodies[0], infer_body(c, *c.node().bodies[0], types));
  const Graph& body = *c.node().bodies[0];
  for (size_t i = 0; i < c.results(); ++i) {
    const Type& turn = body.value(body.outputs()[i + 1]).type;
    std::optional<Dims> dims;
    if (turn.shape) {
      const size_t rank = turn.shape->size() + (i < carried ? 0 : 1);
      if (Shape::fits(rank)) dims = c.unknown_dims(rank);
    }
    SERIN_CHECK(c.set(i, turn.dtype, std::move(dims)));
  }
  return {};
}

}  // namespace serin::graph
