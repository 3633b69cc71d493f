// node_order.cc: sorts nodes. ONNX demands sorted nodes, but some writers leave that to the reader. ONNX Runtime's converter to float16
// appends the casts of inputs, and ONNX Runtime runs such files. Of the nodes whose operands are made, the first in the file is next.
//
// A node reads its operands and what its bodies take from around them.

#include "runtime/formats/onnx/node_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace serin::formats::onnx {
namespace {

class FreeNames {
 public:
  void visit(const GraphProto& graph) {
    std::unordered_set<std::string_view> defined;
    for (const auto& input : graph.inputs) defined.insert(input.name);
    for (const auto& initializer : graph.initializers) defined.insert(initializer.name);
    for (const auto& initializer : graph.sparse_initializers) defined.insert(initializer.values.name);
    for (const auto& node : graph.nodes) defined.insert(node.outputs.begin(), node.outputs.end());
    scopes_.push_back(&defined);
    for (const auto& node : graph.nodes) {
      for (const std::string_view input : node.inputs) read(input);
      for (const auto& attribute : node.attributes)
        if (attribute.g) visit(*attribute.g);
    }
    for (const auto& output : graph.outputs) read(output.name);
    scopes_.pop_back();
  }
  std::vector<std::string_view> take() { return std::move(names_); }

 private:
  void read(std::string_view name) {
    if (name.empty() || std::ranges::any_of(scopes_, [&](const auto* scope) { return scope->contains(name); })) return;
    if (seen_.insert(name).second) names_.push_back(name);
  }

  std::vector<const std::unordered_set<std::string_view>*> scopes_;
  std::unordered_set<std::string_view> seen_;
  std::vector<std::string_view> names_;
};

std::vector<std::string_view> names_read_by(const NodeProto& node) {
  std::vector<const GraphProto*> bodies;
  for (const AttributeProto& attribute : node.attributes)
    if (attribute.g) bodies.push_back(&*attribute.g);
  std::vector<std::string_view> names = free_names(bodies);
  names.insert(names.end(), node.inputs.begin(), node.inputs.end());
  return names;
}

}  // namespace

std::vector<std::string_view> free_names(const std::vector<const GraphProto*>& bodies) {
  FreeNames free;
  for (const GraphProto* body : bodies) free.visit(*body);
  return free.take();
}

std::vector<const NodeProto*> in_order(const std::vector<NodeProto>& nodes) {
  std::unordered_map<std::string_view, size_t> maker;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string_view output : nodes[i].outputs)
      if (!output.empty()) maker.emplace(output, i);

  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> awaited(nodes.size(), 0);  // operands that are not made yet
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string_view name : names_read_by(nodes[i])) {
      const auto found = maker.find(name);
      if (found == maker.end()) continue;
      readers[found->second].push_back(i);
      ++awaited[i];
    }
    if (awaited[i] == 0) ready.push(i);
  }

  std::vector<const NodeProto*> sorted;
  sorted.reserve(nodes.size());
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    sorted.push_back(&nodes[next]);
    for (const size_t reader : readers[next])
      if (--awaited[reader] == 0) ready.push(reader);
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    if (awaited[i] > 0) sorted.push_back(&nodes[i]);
  return sorted;
}

}  // namespace serin::formats::onnx
