// program.h: the nodes of a graph and of its functions by name, and the edges between them.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>

#include "runtime/formats/tensorflow/proto.h"

namespace serin::formats::tf {

/// Nodes of one graph: the main one, or the body of a function.
struct Body {
  const FunctionDef* function = nullptr;  ///< null: the main graph
  std::unordered_map<std::string_view, const NodeDef*> nodes;
};

/// An input of a node, taken apart: "node:output:1", "node:1", "node", "argument" or "^node".
struct Edge {
  std::string_view node, output;
  size_t index = 0;
  bool control = false;
};
Edge parse_edge(std::string_view text);

class Program {
 public:
  explicit Program(const MetaGraph& graph) : graph_(graph) {}
  /// kCorrupt: two nodes or functions of one name.
  Status index();

  const MetaGraph& graph() const { return graph_; }
  const Body& main() const { return main_; }
  const Body* function(std::string_view name) const;

 private:
  const MetaGraph& graph_;
  Body main_;
  std::unordered_map<std::string_view, Body> functions_;
};

}  // namespace serin::formats::tf
