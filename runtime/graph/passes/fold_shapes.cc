// fold_shapes.cc
//
// Shape inference computes small integers along the way (Shape, Gather, Concat, Mul ...). Where all elements of such a value are numbers, it
// becomes a constant; the nodes that computed it are left to dead_code. Needs no kernels. A value with a symbol in it stays: it is known only
// after `bind`.

#include <vector>

#include "runtime/graph/ops/infer.h"
#include "runtime/graph/passes/passes.h"

namespace serin::graph {
namespace {

/// Nothing where an element is not a number.
ConstantPtr constant_of(const Type& type, const Dims& elements) {
  const auto shape = type.shape ? known_shape(*type.shape) : std::nullopt;
  if (!shape || shape->elements() != static_cast<int64_t>(elements.size())) return nullptr;
  std::vector<int64_t> numbers;
  for (const Dim& element : elements) {
    if (!element.known()) return nullptr;
    numbers.push_back(*element.value());
  }
  if (type.dtype == DType::kInt64) return make_constant(DType::kInt64, *shape, numbers.data());
  if (type.dtype == DType::kInt32) {
    const std::vector<int32_t> narrow(numbers.begin(), numbers.end());
    return make_constant(DType::kInt32, *shape, narrow.data());
  }
  if (type.dtype != DType::kBool) return nullptr;
  const std::vector<uint8_t> flags(numbers.begin(), numbers.end());
  return make_constant(DType::kBool, *shape, flags.data());
}

}  // namespace

Result<bool> FoldShapes::run(Graph& graph) const {
  SERIN_TRY(const ShapeValues values, infer_shapes_and_values(graph));
  bool changed = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (!values[i] || graph.producer(id) == kNone || graph.reader_count(id) == 0) continue;
    ConstantPtr constant = constant_of(graph.value(id).type, *values[i]);
    if (!constant) continue;
    graph.replace_uses(id, graph.add_constant(graph.value(id).name, std::move(constant)));
    changed = true;
  }
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph
