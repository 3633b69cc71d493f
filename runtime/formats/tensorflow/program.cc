// program.cc: the index of nodes, and the syntax of edges.

#include "runtime/formats/tensorflow/program.h"

#include <fmt/format.h>

#include "runtime/base/number.h"

namespace serin::formats::tf {
namespace {

Status index_body(const std::vector<NodeDef>& nodes, Body& body) {
  for (const NodeDef& node : nodes)
    if (!body.nodes.emplace(node.name, &node).second) return Error{Code::kCorrupt, fmt::format("has two nodes '{}'", node.name)};
  return {};
}

}  // namespace

Edge parse_edge(std::string_view text) {
  Edge edge;
  if (text.starts_with('^')) return {.node = text.substr(1), .output = {}, .index = 0, .control = true};
  const size_t last = text.rfind(':');
  edge.node = text.substr(0, last);
  if (last == std::string_view::npos) return edge;
  edge.index = parse_number<size_t>(text.substr(last + 1)).value_or(SIZE_MAX);
  const size_t first = edge.node.find(':');
  if (first == std::string_view::npos) return edge;
  edge.output = edge.node.substr(first + 1);
  edge.node = edge.node.substr(0, first);
  return edge;
}

Status Program::index() {
  SERIN_CHECK(index_body(graph_.nodes, main_));
  for (const FunctionDef& function : graph_.functions) {
    Body body{&function, {}};
    const Status indexed = index_body(function.nodes, body);
    if (!indexed) return indexed.error().in(fmt::format("function '{}'", function.name));
    if (!functions_.emplace(function.name, std::move(body)).second)
      return Error{Code::kCorrupt, fmt::format("has two functions '{}'", function.name)};
  }
  return {};
}

const Body* Program::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

}  // namespace serin::formats::tf
