// forest.h: Decision trees flattened into one array, and their evaluation.
//
// A node contains the data of one step: feature, threshold, both children. Leaves have a range of weights. Thresholds are floats if the
// features are and every threshold is one, otherwise doubles. Trees are checked when they are built: every index is in range and there is
// no cycle.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/attributes.h"

namespace serin::kernels::ref {

enum class Branch : uint8_t { kLessOrEqual, kLess, kGreaterOrEqual, kGreater, kEqual, kNotEqual, kMember, kLeaf };

struct ForestNode {
  Branch branch = Branch::kLeaf;
  bool missing_is_true = false;
  int32_t feature = 0;
  double threshold = 0;     ///< of kMember: the list of members
  int32_t yes = 0, no = 0;  ///< children; of a leaf: its weights [yes, no)
};

struct LeafWeight {
  int32_t target;
  double value;
};

struct ForestParts {
  std::vector<ForestNode> nodes;
  std::vector<int32_t> roots;
  std::vector<LeafWeight> weights;
  std::vector<std::vector<double>> members;  ///< sorted
};

/// From the attributes of TreeEnsembleClassifier ("class"), TreeEnsembleRegressor ("target"). Nothing, with the reason, if they contradict
/// each other.
std::optional<ForestParts> forest_from_nodes(const Attributes& attributes, const std::string& prefix, std::string& why);
/// From those of TreeEnsemble (ai.onnx.ml 5).
std::optional<ForestParts> forest_from_leaves(const Attributes& attributes, std::string& why);
/// Checks that indices are in range and that there is no cycle; returns the reason if not.
std::string defect(const ForestParts& parts, int64_t features, int64_t targets);

template <class T>
class Forest {
 public:
  explicit Forest(const ForestParts& parts);

  size_t trees() const { return roots_.size(); }
  std::span<const LeafWeight> weights(int32_t leaf) const {
    const Node& node = nodes_[static_cast<size_t>(leaf)];
    return std::span(weights_).subspan(static_cast<size_t>(node.yes), static_cast<size_t>(node.no - node.yes));
  }
  /// The leaf that `x` reaches.
  int32_t leaf(size_t tree, const T* x) const {
    int32_t at = roots_[tree];
    if (plain_) {
      for (const Node* node = &nodes_[static_cast<size_t>(at)]; node->branch != Branch::kLeaf; node = &nodes_[static_cast<size_t>(at)]) {
        at = x[node->feature] <= node->threshold ? node->yes : node->no;
      }
      return at;
    }
    while (nodes_[static_cast<size_t>(at)].branch != Branch::kLeaf) at = step(nodes_[static_cast<size_t>(at)], x);
    return at;
  }

 private:
  struct Node {
    T threshold;
    int32_t feature, yes, no;
    Branch branch;
    bool missing_is_true;
  };

  int32_t step(const Node& node, const T* x) const;

  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;
  std::vector<LeafWeight> weights_;
  std::vector<std::vector<double>> members_;
  bool plain_ = true;  ///< only <=, and a missing value is never true
};

}  // namespace serin::kernels::ref
