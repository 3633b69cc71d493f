// graph.cc: keeps a graph as two vectors, and for every value the nodes that read it.
//
// The readers are kept up to date by the few functions that change edges, so that a pass which asks "is this read once?" for every node
// stays linear in the size of the model.

#include "runtime/graph/graph.h"

#include <algorithm>
#include <functional>
#include <queue>

#include <fmt/format.h>

namespace serin::graph {

int64_t Node::integer(std::string_view key, int64_t fallback) const {
  const auto found = attributes.find(key);
  const auto* value = found == attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : fallback;
}

double Node::number(std::string_view key, double fallback) const {
  const auto found = attributes.find(key);
  if (found == attributes.end()) return fallback;
  if (const auto* value = std::get_if<double>(&found->second)) return *value;
  if (const auto* value = std::get_if<int64_t>(&found->second)) return static_cast<double>(*value);
  return fallback;
}

std::string Node::text(std::string_view key, std::string_view fallback) const {
  const auto found = attributes.find(key);
  const auto* value = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value ? *value : std::string(fallback);
}

std::vector<int64_t> Node::integers(std::string_view key) const {
  const auto found = attributes.find(key);
  const auto* value = found == attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  return value ? *value : std::vector<int64_t>{};
}

std::vector<std::string> Node::texts(std::string_view key) const {
  const auto found = attributes.find(key);
  const auto* value = found == attributes.end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
  return value ? *value : std::vector<std::string>{};
}

ConstantPtr Node::constant(std::string_view key) const {
  const auto found = attributes.find(key);
  const auto* value = found == attributes.end() ? nullptr : std::get_if<ConstantPtr>(&found->second);
  return value ? *value : nullptr;
}

// ---- building ----

ValueId Graph::add_value(std::string value_name, Type type) {
  values_.push_back(Value{std::move(value_name), std::move(type), kNone, nullptr});
  readers_.emplace_back();
  output_uses_.push_back(0);
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Graph::add_input(std::string value_name, Type type) {
  inputs_.push_back(add_value(std::move(value_name), std::move(type)));
  return inputs_.back();
}

ValueId Graph::add_constant(std::string value_name, ConstantPtr constant) {
  const ValueId id = add_value(std::move(value_name), Type::tensor(constant->dtype, dims_of(constant->shape)));
  value(id).constant = std::move(constant);
  return id;
}

NodeId Graph::add_node(Op op, std::string node_name, std::vector<ValueId> inputs, Attributes attributes, size_t outputs) {
  const auto id = static_cast<NodeId>(nodes_.size());
  Node fresh;
  fresh.op = op;
  fresh.name = std::move(node_name);
  fresh.inputs = std::move(inputs);
  fresh.attributes = std::move(attributes);
  for (size_t i = 0; i < outputs; ++i) {
    fresh.outputs.push_back(add_value(outputs == 1 ? fresh.name : fmt::format("{}:{}", fresh.name, i), {}));
    value(fresh.outputs.back()).producer = id;
  }
  for (const ValueId read : fresh.inputs) add_reader(read, id);
  nodes_.push_back(std::move(fresh));
  return id;
}

void Graph::connect(NodeId id, size_t output, ValueId fresh) {
  const ValueId before = node(id).outputs[output];
  if (before != kNone && before != fresh) value(before).producer = kNone;
  node(id).outputs[output] = fresh;
  if (fresh != kNone) value(fresh).producer = id;
}

void Graph::set_outputs(std::vector<ValueId> outputs) {
  std::ranges::fill(output_uses_, 0);
  outputs_ = std::move(outputs);
  for (const ValueId id : outputs_) {
    if (id >= 0 && static_cast<size_t>(id) < output_uses_.size()) ++output_uses_[static_cast<size_t>(id)];
  }
}

// ---- reading ----

std::vector<NodeId> Graph::nodes() const {
  std::vector<NodeId> live;
  for (size_t id = 0; id < nodes_.size(); ++id) {
    if (!nodes_[id].removed) live.push_back(static_cast<NodeId>(id));
  }
  return live;
}

std::vector<NodeId> Graph::nodes(Op op) const {
  std::vector<NodeId> live;
  for (size_t id = 0; id < nodes_.size(); ++id) {
    if (!nodes_[id].removed && nodes_[id].op == op) live.push_back(static_cast<NodeId>(id));
  }
  return live;
}

std::vector<NodeId> Graph::readers(ValueId id) const {
  std::vector<NodeId> unique = readers_[static_cast<size_t>(id)];
  std::ranges::sort(unique);
  unique.erase(std::ranges::unique(unique).begin(), unique.end());
  return unique;
}

size_t Graph::reader_count(ValueId id) const { return readers_[static_cast<size_t>(id)].size() + output_uses_[static_cast<size_t>(id)]; }

bool Graph::is_output(ValueId id) const { return output_uses_[static_cast<size_t>(id)] > 0; }

Result<std::vector<NodeId>> Graph::topological_order() const {
  // Among the nodes that are ready the smallest id goes first: the order of the file wherever that is a valid one.
  std::vector<size_t> waits(nodes_.size(), 0);
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  const std::vector<NodeId> live = nodes();
  for (const NodeId id : live) {
    for (const ValueId read : node(id).inputs) waits[static_cast<size_t>(id)] += producer(read) != kNone;
    if (waits[static_cast<size_t>(id)] == 0) ready.push(id);
  }
  std::vector<NodeId> order;
  order.reserve(live.size());
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const ValueId made : node(id).outputs) {
      if (made == kNone) continue;
      for (const NodeId reader : readers_[static_cast<size_t>(made)]) {
        if (--waits[static_cast<size_t>(reader)] == 0) ready.push(reader);
      }
    }
  }
  if (order.size() == live.size()) return order;
  const auto stuck = std::ranges::find_if(live, [&](NodeId id) { return waits[static_cast<size_t>(id)] > 0; });
  return Error{Code::kCorrupt, fmt::format("node '{}' ({}) is on a cycle, or reads from one", node(*stuck).name, op_name(node(*stuck).op))};
}

// ---- rewriting ----

void Graph::add_reader(ValueId read, NodeId reader) {
  if (read >= 0 && static_cast<size_t>(read) < readers_.size()) readers_[static_cast<size_t>(read)].push_back(reader);
}

void Graph::drop_reader(ValueId read, NodeId reader) {
  if (read == kNone) return;
  auto& list = readers_[static_cast<size_t>(read)];
  if (const auto found = std::ranges::find(list, reader); found != list.end()) list.erase(found);
}

void Graph::set_input(NodeId id, size_t i, ValueId fresh) {
  ValueId& slot = node(id).inputs[i];
  drop_reader(slot, id);
  slot = fresh;
  add_reader(fresh, id);
}

void Graph::resize_inputs(NodeId id, size_t count) {
  for (size_t i = count; i < node(id).inputs.size(); ++i) drop_reader(node(id).inputs[i], id);
  node(id).inputs.resize(count, kNone);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  for (const NodeId reader : std::exchange(readers_[static_cast<size_t>(from)], {})) {
    const auto slot = std::ranges::find(node(reader).inputs, from);  // one slot for each time that the reader is listed
    *slot = to;
    add_reader(to, reader);
  }
  if (!is_output(from)) return;
  std::ranges::replace(outputs_, from, to);
  output_uses_[static_cast<size_t>(to)] += std::exchange(output_uses_[static_cast<size_t>(from)], 0);
}

void Graph::remove(NodeId id) {
  Node& gone = node(id);
  for (const ValueId read : gone.inputs) drop_reader(read, id);
  for (const ValueId made : gone.outputs) {
    if (made != kNone && value(made).producer == id) value(made).producer = kNone;
  }
  gone.removed = true;
}

void Graph::compact() {
  std::vector<bool> keep(values_.size(), false);
  const auto mark = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (id != kNone) keep[static_cast<size_t>(id)] = true;
    }
  };
  std::erase_if(nodes_, [](const Node& node) { return node.removed; });
  mark(inputs_);
  mark(outputs_);
  for (const Node& node : nodes_) mark(node.inputs), mark(node.outputs);

  std::vector<ValueId> renamed(values_.size(), kNone);
  std::vector<Value> kept;
  for (size_t id = 0; id < values_.size(); ++id) {
    if (!keep[id]) continue;
    renamed[id] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(values_[id]));
    kept.back().producer = kNone;
  }
  values_ = std::move(kept);
  readers_.assign(values_.size(), {});
  output_uses_.assign(values_.size(), 0);
  const auto rename = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) id = id == kNone ? kNone : renamed[static_cast<size_t>(id)];
  };
  rename(inputs_);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    rename(nodes_[i].inputs);
    rename(nodes_[i].outputs);
    for (const ValueId read : nodes_[i].inputs) add_reader(read, id);
    for (const ValueId made : nodes_[i].outputs) {
      if (made != kNone) value(made).producer = id;
    }
  }
  std::vector<ValueId> outputs = std::move(outputs_);
  rename(outputs);
  set_outputs(std::move(outputs));
}

std::optional<DType> find_dtype(std::string_view name) {
  for (auto dtype = DType::kBool; dtype <= kLastDType; dtype = static_cast<DType>(static_cast<int>(dtype) + 1)) {
    if (dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace serin::graph
