#include "runtime/cli/tools/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace serin::cli {
namespace {

using graph::Graph;
using graph::kNone;
using graph::NodeId;
using graph::ValueId;

/// The results that can be shown: a constant is compared as a weight, and other kinds have no numbers of their own.
std::vector<ValueId> results_of(const Graph& graph, NodeId node) {
  std::vector<ValueId> results;
  for (const ValueId output : graph.node(node).outputs)
    if (output != kNone && !graph.value(output).constant && graph.value(output).type.kind == graph::ValueKind::kTensor)
      results.push_back(output);
  return results;
}

void add_pairs(const Graph& first, NodeId first_node, const Graph& second, NodeId second_node, Pairing& pairing) {
  const auto firsts = results_of(first, first_node), seconds = results_of(second, second_node);
  for (size_t i = 0; i < std::min(firsts.size(), seconds.size()); ++i)
    pairing.results.push_back({first_node, second_node, firsts[i], seconds[i]});
}

std::string label_of(const Graph& graph, NodeId node) {
  for (const ValueId output : graph.node(node).outputs)
    if (output != kNone) return graph.value(output).name;
  return "";
}

bool same_operators(const Graph& first, std::span<const NodeId> firsts, const Graph& second, std::span<const NodeId> seconds) {
  return std::ranges::equal(firsts, seconds, [&](NodeId a, NodeId b) { return first.node(a).op == second.node(b).op; });
}

Comparison compare_constants(const graph::Constant& actual, const graph::Constant& expected) {
  const auto keeps_actual = actual.data(), keeps_expected = expected.data();
  if (!keeps_actual || !keeps_expected) return {.match = true};  // texts
  const TensorView one{actual.dtype, actual.shape, const_cast<std::byte*>(keeps_actual.get())};
  const TensorView other{expected.dtype, expected.shape, const_cast<std::byte*>(keeps_expected.get())};
  return compare(one, other, {.rtol = 0, .atol = 0});
}

/// Which attributes differ; tensors among them are compared by their contents.
std::vector<std::string> different_attributes(const graph::Node& first, const graph::Node& second) {
  const auto equal = [](const graph::Attribute& a, const graph::Attribute& b) {
    const auto *one = std::get_if<graph::ConstantPtr>(&a), *other = std::get_if<graph::ConstantPtr>(&b);
    if (one != nullptr && other != nullptr && *one && *other) return compare_constants(**one, **other).match;
    return a == b;
  };
  std::vector<std::string> names;
  for (const auto& [name, value] : first.attributes) {
    const auto found = second.attributes.find(name);
    if (found == second.attributes.end() || !equal(value, found->second)) names.push_back(name);
  }
  for (const auto& [name, value] : second.attributes)
    if (!first.attributes.contains(name)) names.push_back(name);
  return names;
}

std::vector<WeightDifference> different_weights(const Graph& first, NodeId first_node, const Graph& second, NodeId second_node) {
  std::vector<WeightDifference> different;
  const size_t count = std::min(first.node(first_node).inputs.size(), second.node(second_node).inputs.size());
  for (size_t i = 0; i < count; ++i) {
    const auto one = first.constant(first.input(first_node, i)), other = second.constant(second.input(second_node, i));
    if (!one || !other || one == other) continue;
    Comparison comparison = compare_constants(*other, *one);
    if (!comparison.match) different.push_back({first.value(first.input(first_node, i)).name, std::move(comparison)});
  }
  return different;
}

enum class State : uint8_t { kEqual, kDifferent, kUnpaired };

}  // namespace

Result<Pairing> pair_nodes(const Graph& first, const Graph& second) {
  SERIN_TRY(const std::vector<NodeId> firsts, first.topological_order());
  SERIN_TRY(const std::vector<NodeId> seconds, second.topological_order());
  std::map<std::string, NodeId> by_name;
  for (const NodeId node : seconds) by_name.emplace(label_of(second, node), node);
  Pairing pairing;
  size_t partners = 0;
  for (const NodeId node : firsts) {
    const auto found = by_name.find(label_of(first, node));
    if (found == by_name.end() || second.node(found->second).op != first.node(node).op) continue;
    add_pairs(first, node, second, found->second, pairing);
    ++partners;
  }
  if (2 * partners < firsts.size() && same_operators(first, firsts, second, seconds)) {
    pairing = {.by_name = false};
    for (size_t i = 0; i < firsts.size(); ++i) add_pairs(first, firsts[i], second, seconds[i], pairing);
    partners = firsts.size();
  }
  pairing.only_first = firsts.size() - partners;
  pairing.only_second = seconds.size() - std::min(partners, seconds.size());
  return pairing;
}

void show_all_results(Graph& graph, std::span<const ValueId> results) {
  std::vector<ValueId> outputs(results.begin(), results.end());
  std::vector<std::string> names;
  names.reserve(outputs.size() + graph.outputs().size());
  for (size_t i = 0; i < outputs.size(); ++i) names.push_back(fmt::format("result {}", i));
  outputs.insert(outputs.end(), graph.outputs().begin(), graph.outputs().end());
  names.insert(names.end(), graph.output_names().begin(), graph.output_names().end());
  graph.set_outputs(std::move(outputs));
  graph.set_output_names(std::move(names));
}

Divergence find_divergence(const Pairing& pairing, const Graph& first, const Graph& second, std::span<const engine::Value> first_values,
                           std::span<const engine::Value> second_values, const Tolerance& tolerance) {
  Divergence found;
  std::map<ValueId, State> states;  // of the first model's results
  std::set<std::string> seen;       // names of weights
  for (size_t i = 0; i < pairing.results.size(); ++i) {
    const ResultPair& pair = pairing.results[i];
    const std::vector<WeightDifference> weights = different_weights(first, pair.first_node, second, pair.second_node);
    for (const WeightDifference& weight : weights)
      if (seen.insert(weight.name).second) found.weights.push_back(weight);
    Comparison comparison = compare(engine::view_of(*second_values[i].tensor), engine::view_of(*first_values[i].tensor), tolerance);
    states[pair.first] = comparison.match ? State::kEqual : State::kDifferent;
    if (comparison.match) {
      ++found.equal;
      continue;
    }
    ++found.different;
    bool inherited = false, after_unpaired = false;
    for (const ValueId input : first.node(pair.first_node).inputs) {
      if (input == kNone || first.value(input).constant || first.producer(input) == kNone) continue;
      const auto state = states.find(input);
      inherited |= state != states.end() && state->second == State::kDifferent;
      after_unpaired |= state == states.end();
    }
    if (inherited) continue;
    const graph::Node& node = first.node(pair.first_node);
    found.origins.push_back({.node = node.name,
                             .op = std::string(graph::op_name(node.op)),
                             .result = first.value(pair.first).name,
                             .shape = first_values[i].tensor->shape,
                             .comparison = std::move(comparison),
                             .weights = weights,
                             .attributes = different_attributes(node, second.node(pair.second_node)),
                             .after_unpaired = after_unpaired});
  }
  return found;
}

}  // namespace serin::cli
