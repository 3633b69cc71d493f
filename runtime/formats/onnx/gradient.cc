// gradient.cc: Gradient of ai.onnx.preview.training, written out as the nodes that compute it.
//
// dy/dx for each x of `xs`, by the chain rule from y back to the xs over the nodes that were imported before. Differentiated are the
// element-wise operators of the table below among values of one shape, which is what exporters of this preview wrote; a stretched operand would
// need sums over the axes it was stretched along, and is refused like any other operator.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/formats/onnx/names.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;
using graph::ValueId;

class Differentiation {
 public:
  Differentiation(NodeImport& node, std::vector<ValueId> xs) : node_(node), graph_(node.graph()), xs_(std::move(xs)) {}

  /// Gradients of `y` by value; the xs that y does not depend on are absent.
  std::map<ValueId, ValueId> run(ValueId y) {
    const graph::NodeId last = graph_.producer(y);
    find_dependents(last);
    const auto one = graph::make_scalar(graph_.value(xs_.front()).type.dtype, 1);
    if (!one) return {};
    const ValueId shape = step(Op::kShape, {y});
    gradients_[y] = step(Op::kConstantOfShape, {shape}, {{"value", one}});
    for (graph::NodeId id = last; id >= 0; --id) {  // in the order of the file: a value's readers come behind its producer
      if (graph_.node(id).outputs.empty()) continue;
      const auto found = gradients_.find(graph_.output(id));
      if (found != gradients_.end() && dependents_.contains(found->first)) pass_back(graph_.node(id), found->second);
    }
    return gradients_;
  }

 private:
  /// What is computed from the xs by the nodes up to `last`.
  void find_dependents(graph::NodeId last) {
    dependents_.insert(xs_.begin(), xs_.end());
    for (graph::NodeId id = 0; id <= last; ++id) {
      const graph::Node& node = graph_.node(id);
      if (std::ranges::any_of(node.inputs, [&](ValueId input) { return dependents_.contains(input); }))
        dependents_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  /// Whether a value that does not depend on the xs might stretch what does.
  bool may_stretch(ValueId value) const {
    if (dependents_.contains(value)) return false;
    const auto& shape = graph_.value(value).type.shape;
    return !shape || (!shape->empty() && shape != graph_.value(xs_.front()).type.shape);
  }

  ValueId step(Op op, std::vector<ValueId> inputs, graph::Attributes attributes = {}) {
    return node_.step(op, fmt::format("{}_{}", graph::op_name(op), steps_++), std::move(inputs), std::move(attributes));
  }

  void add(ValueId value, ValueId gradient) {
    if (!dependents_.contains(value)) return;
    const auto [found, fresh] = gradients_.emplace(value, gradient);
    if (!fresh) found->second = step(Op::kSum, {found->second, gradient});
  }

  void pass_back(graph::Node node, ValueId dy) {  // a copy: steps add nodes, which moves them
    if (std::ranges::any_of(node.inputs, [&](ValueId input) { return input == graph::kNone || may_stretch(input); }))
      return node_.unsupported(fmt::format("{} ({}) may stretch an operand", quote(node.name), graph::op_name(node.op)));
    const auto x = [&](size_t i) { return node.inputs[i]; };
    const ValueId y = node.outputs[0];
    switch (node.op) {
      case Op::kIdentity: return add(x(0), dy);
      case Op::kNeg: return add(x(0), step(Op::kNeg, {dy}));
      case Op::kAdd: add(x(0), dy); return add(x(1), dy);
      case Op::kSub: add(x(0), dy); return add(x(1), step(Op::kNeg, {dy}));
      case Op::kMul: add(x(0), step(Op::kMul, {dy, x(1)})); return add(x(1), step(Op::kMul, {dy, x(0)}));
      case Op::kDiv: {
        const ValueId dx = step(Op::kDiv, {dy, x(1)});
        add(x(0), dx);
        return add(x(1), step(Op::kNeg, {step(Op::kMul, {dx, y})}));
      }
      case Op::kExp: return add(x(0), step(Op::kMul, {dy, y}));
      case Op::kLog: return add(x(0), step(Op::kDiv, {dy, x(0)}));
      default: node_.unsupported(fmt::format("{} ({}) cannot be differentiated", quote(node.name), graph::op_name(node.op)));
    }
  }

  NodeImport& node_;
  graph::Graph& graph_;
  std::vector<ValueId> xs_;
  std::map<ValueId, ValueId> gradients_;
  std::set<ValueId> dependents_;
  int steps_ = 0;
};

/// The values of `xs`, all of one declared shape, which are the node's operands, too: it is evaluated where the model itself is.
std::vector<ValueId> differentiated_values(NodeImport& node) {
  std::vector<ValueId> values;
  for (const std::string& name : node.texts("xs").value_or(std::vector<std::string>{})) values.push_back(node.scope().find(name));
  if (values.empty() || values.size() != node.output_count()) {
    node.corrupt(fmt::format("has {} xs and {} outputs", values.size(), node.output_count()));
    return {};
  }
  const graph::Graph& graph = node.graph();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == graph::kNone || node.input(i) != values[i]) {
      node.unsupported("its inputs are not its xs");
      return {};
    }
    const auto& shape = graph.value(values[i]).type.shape;
    if (shape && shape == graph.value(values[0]).type.shape) continue;
    node.unsupported("its xs have different shapes");
    return {};
  }
  return values;
}

}  // namespace

void import_gradient(NodeImport& node, Op op) {
  node.ignore("zs");  // held constant, as everything beside the xs
  const std::vector<ValueId> xs = differentiated_values(node);
  const ValueId y = node.scope().find(node.text("y", ""));
  if (xs.empty()) return;
  if (y == graph::kNone) return node.corrupt("attribute 'y' names no value");
  graph::Graph& graph = node.graph();
  const auto gradients = Differentiation(node, xs).run(y);
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!node.wants_output(i)) continue;
    const auto found = gradients.find(xs[i]);
    const ValueId gradient = found != gradients.end() ? found->second : node.step(Op::kSub, fmt::format("zero_{}", i), {xs[i], xs[i]});
    const graph::NodeId id = graph.add_node(op, fmt::format("{}:{}", node.name(), i), {gradient});
    node.scope().define(node.proto().outputs[i], graph.output(id));
  }
}

}  // namespace serin::formats::onnx
