// patch.h: a labelled rewrite that replaces a few nodes by fewer.
//
//   Patch patch(graph, {conv, bn});                                       // the new node is called "conv1+bn1"
//   const ValueId y = patch.add(Op::kConv, {x, patch.constant(w, folded), bias}, graph.node(conv).attributes);
//   patch.replace(graph.output(bn), y);                                   // every reader of bn reads y, under bn's name
//
// Replaced nodes are removed once they have no reader; a node that is still read elsewhere stays.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

class Patch {
 public:
  Patch(Graph& graph, std::vector<NodeId> replaced) : graph_(graph), replaced_(std::move(replaced)) {
    for (const NodeId id : replaced_) name_.append(name_.empty() ? "" : "+").append(graph.node(id).name);
  }

  /// Adds a node with one result, named after the nodes that it replaces.
  ValueId add(Op op, std::vector<ValueId> inputs, Attributes attributes) {
    return graph_.output(add_node(op, std::move(inputs), std::move(attributes), 1));
  }

  /// The same with several results.
  NodeId add_node(Op op, std::vector<ValueId> inputs, Attributes attributes, size_t results) {
    while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
    return graph_.add_node(op, name_, std::move(inputs), std::move(attributes), results);
  }

  /// Adds a new form of a constant, named after the old one: "w'". `before` may be kNone: "conv1+bn1.bias".
  ValueId constant(ValueId before, ConstantPtr value, std::string_view role = "bias") {
    const std::string name = before == kNone ? name_ + "." + std::string(role) : graph_.value(before).name + "'";
    return graph_.add_constant(name, std::move(value));
  }

  void replace(ValueId before, ValueId after) {
    graph_.value(after).name = graph_.value(before).name;
    graph_.value(after).type = graph_.value(before).type;
    graph_.replace_uses(before, after);
    for (auto id = replaced_.rbegin(); id != replaced_.rend(); ++id) remove_unread(*id);
  }

 private:
  void remove_unread(NodeId id) {
    for (const ValueId made : graph_.node(id).outputs) {
      if (made != kNone && graph_.reader_count(made) > 0) return;
    }
    graph_.remove(id);
  }

  Graph& graph_;
  std::vector<NodeId> replaced_;  // producers before readers
  std::string name_;
};

}  // namespace serin::graph
