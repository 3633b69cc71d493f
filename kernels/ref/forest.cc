// forest.cc: reads the trees of an ensemble from its attributes and checks them (forest.h).

#include "kernels/ref/forest.h"

#include <algorithm>
#include <map>
#include <utility>

namespace serin::kernels::ref {

namespace {

constexpr std::pair<std::string_view, Branch> kBranches[] = {
    {"BRANCH_LEQ", Branch::kLessOrEqual},
    {"BRANCH_LT", Branch::kLess},
    {"BRANCH_GTE", Branch::kGreaterOrEqual},
    {"BRANCH_GT", Branch::kGreater},
    {"BRANCH_EQ", Branch::kEqual},
    {"BRANCH_NEQ", Branch::kNotEqual},
    {"LEAF", Branch::kLeaf},
};

bool fits_int32(int64_t value) { return value >= 0 && value <= INT32_MAX; }

/// Nodes are named by tree and number.
using NodeNames = std::map<std::pair<int64_t, int64_t>, int32_t>;

/// Where the node of that name is.
std::optional<int32_t> place(const NodeNames& names, int64_t tree, int64_t node, std::string& why) {
  const auto found = names.find({tree, node});
  if (found != names.end()) return found->second;
  why = "tree " + std::to_string(tree) + " has no node " + std::to_string(node);
  return std::nullopt;
}

/// The weights of leaves, which come in any order, side by side for each leaf.
bool attach_weights(const Attributes& a, const std::string& prefix, const NodeNames& names, ForestParts& parts, std::string& why) {
  const auto trees = a.integers(prefix + "_treeids"), nodes = a.integers(prefix + "_nodeids"), ids = a.integers(prefix + "_ids");
  const auto values = a.numbers(prefix + "_weights");
  if (nodes.size() != trees.size() || ids.size() != trees.size() || values.size() != trees.size())
    return why = "the lists " + prefix + "_* differ in length", false;
  std::vector<std::vector<LeafWeight>> of_node(parts.nodes.size());
  for (size_t i = 0; i < trees.size(); ++i) {
    const auto at = place(names, trees[i], nodes[i], why);
    if (!at) return false;
    if (!fits_int32(ids[i])) return why = prefix + "_ids has " + std::to_string(ids[i]), false;
    of_node[static_cast<size_t>(*at)].push_back({static_cast<int32_t>(ids[i]), values[i]});
  }
  for (size_t i = 0; i < of_node.size(); ++i) {
    if (parts.nodes[i].branch != Branch::kLeaf) continue;  // weights of inner nodes are reached by nobody
    parts.nodes[i].yes = static_cast<int32_t>(parts.weights.size());
    parts.weights.insert(parts.weights.end(), of_node[i].begin(), of_node[i].end());
    parts.nodes[i].no = static_cast<int32_t>(parts.weights.size());
  }
  return true;
}

}  // namespace

std::optional<ForestParts> forest_from_nodes(const Attributes& a, const std::string& prefix, std::string& why) {
  const auto trees = a.integers("nodes_treeids"), ids = a.integers("nodes_nodeids"), features = a.integers("nodes_featureids");
  const auto yes = a.integers("nodes_truenodeids"), no = a.integers("nodes_falsenodeids");
  const auto missing = a.integers("nodes_missing_value_tracks_true");
  const auto thresholds = a.numbers("nodes_values");
  const auto modes = a.texts("nodes_modes");
  const size_t n = trees.size();
  if (ids.size() != n || features.size() != n || yes.size() != n || no.size() != n || thresholds.size() != n || modes.size() != n)
    return why = "the lists nodes_* differ in length", std::nullopt;

  ForestParts parts;
  NodeNames names;
  for (size_t i = 0; i < n; ++i) {
    if (!names.emplace(std::pair(trees[i], ids[i]), static_cast<int32_t>(i)).second)
      return why = "tree " + std::to_string(trees[i]) + " has two nodes " + std::to_string(ids[i]), std::nullopt;
    if (i == 0 || trees[i] != trees[i - 1]) parts.roots.push_back(static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < n; ++i) {
    const auto mode = std::ranges::find(kBranches, modes[i], &std::pair<std::string_view, Branch>::first);
    if (mode == std::end(kBranches)) return why = "nodes_modes has '" + modes[i] + "'", std::nullopt;
    ForestNode node{.branch = mode->second, .missing_is_true = i < missing.size() && missing[i] == 1, .threshold = thresholds[i]};
    if (node.branch != Branch::kLeaf) {
      const auto at_yes = place(names, trees[i], yes[i], why), at_no = place(names, trees[i], no[i], why);
      if (!at_yes || !at_no) return std::nullopt;
      if (!fits_int32(features[i])) return why = "nodes_featureids has " + std::to_string(features[i]), std::nullopt;
      node.feature = static_cast<int32_t>(features[i]);
      node.yes = *at_yes;
      node.no = *at_no;
    }
    parts.nodes.push_back(node);
  }
  if (!attach_weights(a, prefix, names, parts, why)) return std::nullopt;
  return parts;
}

std::optional<ForestParts> forest_from_leaves(const Attributes& a, std::string& why) {
  const auto features = a.integers("nodes_featureids"), modes = a.integers("nodes_modes"),
             missing = a.integers("nodes_missing_value_tracks_true");
  const auto yes = a.integers("nodes_truenodeids"), no = a.integers("nodes_falsenodeids");
  const auto yes_leaf = a.integers("nodes_trueleafs"), no_leaf = a.integers("nodes_falseleafs"), roots = a.integers("tree_roots");
  const auto thresholds = a.numbers("nodes_splits"), values = a.numbers("leaf_weights"), members = a.numbers("membership_values");
  const auto targets = a.integers("leaf_targetids");
  const size_t n = features.size();
  if (modes.size() != n || yes.size() != n || no.size() != n || yes_leaf.size() != n || no_leaf.size() != n || thresholds.size() != n)
    return why = "the lists nodes_* differ in length", std::nullopt;
  if (targets.size() != values.size()) return why = "leaf_targetids and leaf_weights differ in length", std::nullopt;

  ForestParts parts;  // nodes first, then one for each leaf
  const auto child = [&](int64_t id, int64_t is_leaf) -> int32_t {
    const int64_t limit = static_cast<int64_t>(is_leaf ? values.size() : n);
    return id < 0 || id >= limit ? -1 : static_cast<int32_t>(is_leaf ? id + static_cast<int64_t>(n) : id);
  };
  auto next_member = members.begin();
  for (size_t i = 0; i < n; ++i) {
    if (modes[i] < 0 || modes[i] > 6 || !fits_int32(features[i]))
      return why = "node " + std::to_string(i) + " has no valid mode or feature", std::nullopt;
    ForestNode node{.branch = static_cast<Branch>(modes[i]),
                    .missing_is_true = i < missing.size() && missing[i] == 1,
                    .feature = static_cast<int32_t>(features[i]),
                    .threshold = thresholds[i],
                    .yes = child(yes[i], yes_leaf[i]),
                    .no = child(no[i], no_leaf[i])};
    if (node.branch == Branch::kMember) {  // lists end with NaN
      const auto end = std::find_if(next_member, members.end(), [](double value) { return std::isnan(value); });
      node.threshold = static_cast<double>(parts.members.size());
      parts.members.emplace_back(next_member, end);
      std::ranges::sort(parts.members.back());
      next_member = end == members.end() ? end : end + 1;
    }
    parts.nodes.push_back(node);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!fits_int32(targets[i])) return why = "leaf_targetids has " + std::to_string(targets[i]), std::nullopt;
    parts.nodes.push_back({.yes = static_cast<int32_t>(i), .no = static_cast<int32_t>(i) + 1});
    parts.weights.push_back({static_cast<int32_t>(targets[i]), values[i]});
  }
  for (const int64_t root : roots) {
    if (root < 0 || root >= static_cast<int64_t>(n)) return why = "tree_roots has " + std::to_string(root), std::nullopt;
    parts.roots.push_back(static_cast<int32_t>(root));
  }
  return parts;
}

std::string defect(const ForestParts& parts, int64_t features, int64_t targets) {
  const auto count = static_cast<int32_t>(parts.nodes.size());
  for (const ForestNode& node : parts.nodes) {
    if (node.branch == Branch::kLeaf) continue;
    if (node.feature >= features) return "a node asks for feature " + std::to_string(node.feature) + " of " + std::to_string(features);
    if (node.yes < 0 || node.yes >= count || node.no < 0 || node.no >= count) return "a node has a child that does not exist";
  }
  for (const LeafWeight& weight : parts.weights) {
    if (weight.target >= targets) return "a leaf votes for target " + std::to_string(weight.target) + " of " + std::to_string(targets);
  }
  // A walk from each root; a node that is met again while its own children are walked is part of a circle.
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(parts.nodes.size(), Mark::kNew);
  std::vector<int32_t> open;
  for (const int32_t root : parts.roots) {
    open.push_back(root);
    while (!open.empty()) {
      const auto at = static_cast<size_t>(open.back());
      if (marks[at] != Mark::kNew || parts.nodes[at].branch == Branch::kLeaf) {
        marks[at] = Mark::kDone;
        open.pop_back();
        continue;
      }
      marks[at] = Mark::kOpen;
      for (const int32_t next : {parts.nodes[at].yes, parts.nodes[at].no}) {
        if (marks[static_cast<size_t>(next)] == Mark::kOpen) return "a tree goes round in circles";
        if (marks[static_cast<size_t>(next)] == Mark::kNew) open.push_back(next);
      }
    }
  }
  return "";
}

template <class T>
Forest<T>::Forest(const ForestParts& parts) : roots_(parts.roots), weights_(parts.weights), members_(parts.members) {
  nodes_.reserve(parts.nodes.size());
  for (const ForestNode& node : parts.nodes) {
    nodes_.push_back({static_cast<T>(node.threshold), node.feature, node.yes, node.no, node.branch, node.missing_is_true});
    plain_ &= node.branch == Branch::kLeaf || (node.branch == Branch::kLessOrEqual && !node.missing_is_true);
  }
}

template <class T>
int32_t Forest<T>::step(const Node& node, const T* x) const {
  const T value = x[node.feature];
  bool yes = false;
  switch (node.branch) {
    case Branch::kLessOrEqual: yes = value <= node.threshold; break;
    case Branch::kLess: yes = value < node.threshold; break;
    case Branch::kGreaterOrEqual: yes = value >= node.threshold; break;
    case Branch::kGreater: yes = value > node.threshold; break;
    case Branch::kEqual: yes = value == node.threshold; break;
    case Branch::kNotEqual: yes = value != node.threshold; break;
    case Branch::kMember:
      // A search finds NaN in any list, because it compares as neither less nor greater.
      yes = !std::isnan(value) && std::ranges::binary_search(members_[static_cast<size_t>(node.threshold)], static_cast<double>(value));
      break;
    case Branch::kLeaf: break;
  }
  return yes || (node.missing_is_true && std::isnan(value)) ? node.yes : node.no;
}

template class Forest<float>;
template class Forest<double>;

}  // namespace serin::kernels::ref
