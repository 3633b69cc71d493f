// ensemble.h: boosted trees as their files describe them, and the graph that evaluates them.
//
//   input f32[batch, features] -> TreeEnsemble -> link function -> probabilities f32[batch, classes] | prediction f32[batch]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::formats::trees {

inline constexpr int64_t kMostFeatures = 1 << 20, kMostClasses = 1 << 16;

/// A split of a tree. A child >= 0 is a split, one < 0 the leaf ~child.
struct Split {
  int64_t feature = 0;
  float threshold = 0;          ///< yes: x <= threshold
  std::vector<double> members;  ///< of a categorical split: yes: the integer part of x is one of them
  bool categorical = false;
  bool missing_is_yes = false;
  int64_t yes = 0, no = 0;
};

struct Tree {
  std::vector<Split> splits;  ///< the root first; none: a tree of one leaf
  std::vector<double> leaves;
  int64_t target = 0;  ///< the class or output that it votes for
};

/// The function of the sums. A binary classifier has one sum, the others one for each class.
enum class Link : uint8_t {
  kIdentity,
  kBinary,          ///< probabilities [1 - p, p] with p = sigmoid(scale * sum)
  kSoftmax,         ///< probabilities
  kOneVersusAll,    ///< "probabilities" sigmoid(scale * sum), which need not sum to 1
  kSigmoid,         ///< prediction sigmoid(scale * sum)
  kExponential,     ///< prediction exp(sum)
  kLogExponential,  ///< prediction log(1 + exp(sum))
  kSignedSquare,    ///< prediction sum * |sum|
  kPositive,        ///< prediction 1 if sum > 0, else 0
};

struct Ensemble {
  int64_t features = 0, targets = 1;
  std::vector<Tree> trees;
  std::vector<double> base;  ///< one for each target, added to the sums; empty: none
  double divisor = 1;        ///< of the sums of trees: random forests average
  Link link = Link::kIdentity;
  double scale = 1;
  std::vector<bool> zero_is_missing;  ///< by feature, where |x| <= 1e-35 counts as missing; empty: nowhere
};

/// The largest float that is <= x: x' <= floor_f32(x) for a float x' as x' <= x.
float floor_f32(double x);

/// kCorrupt, naming the tree, if a split has children or features that do not exist.
Result<graph::Graph> build_graph(const Ensemble& ensemble);

}  // namespace serin::formats::trees
