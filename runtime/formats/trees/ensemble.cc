// ensemble.cc: one TreeEnsemble for all trees. Trees of one leaf only move the base.

#include "runtime/formats/trees/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/graph/builder.h"

namespace serin::formats::trees {
namespace {

using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;
using Numbers = std::vector<double>;

constexpr int64_t kLessOrEqual = 0, kMember = 6;
constexpr double kMostCategory = 1 << 24;  ///< to which floats are exact integers
constexpr double kZero = 1e-35;            ///< LightGBM's kZeroThreshold

/// Whether it stays a finite number as f32, in which the answers are.
bool fits_f32(double value) { return std::isfinite(static_cast<float>(value)); }

/// Every split and leaf has one parent, and the root has none. Leaves are finite, categories integers that a float can be.
Status check_tree(const Tree& tree, int64_t number, int64_t features, int64_t targets) {
  const auto corrupt = [number](std::string_view what) { return Error{Code::kCorrupt, fmt::format("tree {} {}", number, what)}; };
  std::vector<bool> split_seen(tree.splits.size(), false), leaf_seen(tree.leaves.size(), false);
  if (!tree.splits.empty()) split_seen[0] = true;
  if (tree.splits.empty() ? tree.leaves.size() != 1 : tree.leaves.size() != tree.splits.size() + 1)
    return corrupt(fmt::format("has {} splits and {} leaves", tree.splits.size(), tree.leaves.size()));
  if (tree.target < 0 || tree.target >= targets) return corrupt(fmt::format("votes for class {} of {}", tree.target, targets));
  for (const double leaf : tree.leaves)
    if (!fits_f32(leaf)) return corrupt(fmt::format("has a leaf {}", leaf));
  for (const Split& split : tree.splits) {
    if (split.feature < 0 || split.feature >= features) return corrupt(fmt::format("asks for feature {} of {}", split.feature, features));
    if (std::isnan(split.threshold)) return corrupt("has a threshold that is no number");
    for (const double member : split.members)
      if (!(member >= 0 && member <= kMostCategory)) return corrupt(fmt::format("has a category {}", member));
    for (const int64_t child : {split.yes, split.no}) {
      std::vector<bool>& seen = child >= 0 ? split_seen : leaf_seen;
      const auto at = static_cast<uint64_t>(child >= 0 ? child : ~child);
      if (at >= seen.size()) return corrupt(fmt::format("has a child {} that does not exist", child));
      if (seen[at]) return corrupt(fmt::format("has two ways to child {}", child));
      seen[at] = true;
    }
  }
  return {};
}

/// The lists of TreeEnsemble (ai.onnx.ml 5).
struct Lists {
  List features, modes, yes, no, yes_leaf, no_leaf, missing, targets, roots;
  Numbers splits, weights, members;

  void add(const Tree& tree, double divisor) {
    const auto first = static_cast<int64_t>(features.size()), first_leaf = static_cast<int64_t>(weights.size());
    roots.push_back(first);
    for (const Split& split : tree.splits) {
      features.push_back(split.feature);
      modes.push_back(split.categorical ? kMember : kLessOrEqual);
      splits.push_back(split.categorical ? 0 : static_cast<double>(split.threshold));
      missing.push_back(split.missing_is_yes ? 1 : 0);
      yes_leaf.push_back(split.yes < 0);
      no_leaf.push_back(split.no < 0);
      yes.push_back(split.yes < 0 ? first_leaf + ~split.yes : first + split.yes);
      no.push_back(split.no < 0 ? first_leaf + ~split.no : first + split.no);
      if (!split.categorical) continue;
      members.insert(members.end(), split.members.begin(), split.members.end());
      members.push_back(std::numeric_limits<double>::quiet_NaN());
    }
    for (const double leaf : tree.leaves) {
      weights.push_back(leaf / divisor);
      targets.push_back(tree.target);
    }
  }
};

/// bool [features], from the features that a function names.
template <class F>
ValueId mask_of(graph::Builder& b, int64_t features, F&& named) {
  std::vector<uint8_t> mask;
  mask.reserve(static_cast<size_t>(features));
  for (int64_t i = 0; i < features; ++i) mask.push_back(named(i) ? 1 : 0);
  return b.constant(graph::make_constant(DType::kBool, Shape{features}, mask.data()));
}

ValueId f32(graph::Builder& b, double value) { return b.number(DType::kFloat32, value); }

/// Where |x| <= 1e-35 the value is missing.
ValueId without_zeros(graph::Builder& b, const Ensemble& ensemble, ValueId x) {
  if (std::ranges::find(ensemble.zero_is_missing, true) == ensemble.zero_is_missing.end()) return x;
  b.start("zeros");
  const ValueId mask = mask_of(b, ensemble.features, [&](int64_t i) { return ensemble.zero_is_missing[static_cast<size_t>(i)]; });
  const ValueId zero = b.add(Op::kLessOrEqual, {b.add(Op::kAbs, {x}), f32(b, static_cast<double>(floor_f32(kZero)))});
  return b.add(Op::kWhere, {b.add(Op::kAnd, {zero, mask}), f32(b, std::numeric_limits<double>::quiet_NaN()), x});
}

/// Categories are the integer parts of their features.
ValueId with_categories(graph::Builder& b, const Ensemble& ensemble, ValueId x) {
  std::vector<bool> categorical(static_cast<size_t>(ensemble.features), false);
  bool any = false;
  for (const Tree& tree : ensemble.trees)
    for (const Split& split : tree.splits)
      if (split.categorical) any = categorical[static_cast<size_t>(split.feature)] = true;
  if (!any) return x;
  b.start("categories");
  const ValueId mask = mask_of(b, ensemble.features, [&](int64_t i) { return categorical[static_cast<size_t>(i)]; });
  const ValueId whole = b.add(Op::kMul, {b.add(Op::kSign, {x}), b.add(Op::kFloor, {b.add(Op::kAbs, {x})})});
  return b.add(Op::kWhere, {mask, whole, x});
}

/// [batch, targets] -> [batch] if there is one target.
ValueId as_prediction(graph::Builder& b, const Ensemble& ensemble, ValueId y) { return ensemble.targets == 1 ? b.squeeze(y, {1}) : y; }

ValueId linked(graph::Builder& b, const Ensemble& ensemble, ValueId sums) {
  b.start("link");
  const auto scaled = [&] { return ensemble.scale == 1 ? sums : b.add(Op::kMul, {sums, f32(b, ensemble.scale)}); };
  switch (ensemble.link) {
    case Link::kBinary: {
      const ValueId p = b.add(Op::kSigmoid, {scaled()});
      return b.add(Op::kConcat, {b.add(Op::kSigmoid, {b.add(Op::kNeg, {scaled()})}), p}, {{"axis", int64_t{1}}});
    }
    case Link::kSoftmax: return b.add(Op::kSoftmax, {sums}, {{"axis", int64_t{1}}});
    case Link::kOneVersusAll: return b.add(Op::kSigmoid, {scaled()});
    case Link::kSigmoid: return as_prediction(b, ensemble, b.add(Op::kSigmoid, {scaled()}));
    case Link::kExponential: return as_prediction(b, ensemble, b.add(Op::kExp, {sums}));
    case Link::kLogExponential: return as_prediction(b, ensemble, b.add(Op::kSoftplus, {sums}));
    case Link::kSignedSquare: return as_prediction(b, ensemble, b.add(Op::kMul, {sums, b.add(Op::kAbs, {sums})}));
    case Link::kPositive: return as_prediction(b, ensemble, b.cast(b.add(Op::kGreater, {sums, f32(b, 0)}), DType::kFloat32));
    case Link::kIdentity: break;
  }
  return as_prediction(b, ensemble, sums);
}

}  // namespace

float floor_f32(double x) {
  const auto near = static_cast<float>(x);
  return static_cast<double>(near) > x ? std::nextafter(near, -std::numeric_limits<float>::infinity()) : near;
}

Result<graph::Graph> build_graph(const Ensemble& ensemble) {
  Lists lists;
  Numbers base = ensemble.base;
  base.resize(static_cast<size_t>(ensemble.targets), 0);
  for (size_t i = 0; i < ensemble.trees.size(); ++i) {
    const Tree& tree = ensemble.trees[i];
    SERIN_CHECK(check_tree(tree, static_cast<int64_t>(i), ensemble.features, ensemble.targets));
    if (tree.splits.empty())
      base[static_cast<size_t>(tree.target)] += tree.leaves[0] / ensemble.divisor;
    else
      lists.add(tree, ensemble.divisor);
  }
  for (const double score : base)
    if (!fits_f32(score)) return Error{Code::kCorrupt, fmt::format("the trees without splits and the base score sum to {}", score)};
  graph::Graph graph;
  const ValueId input = graph.add_input("input", graph::Type::tensor(DType::kFloat32, {graph::Dim::symbol("batch"), ensemble.features}));
  graph::Builder b(graph);
  ValueId x = without_zeros(b, ensemble, input);
  x = with_categories(b, ensemble, x);
  b.start("trees");
  if (lists.roots.empty()) {  // no split anywhere: zeros of the batch's length
    const ValueId first = b.slice(x, 1, 0, 1);
    const ValueId rows = b.add(Op::kShape, {first});
    const ValueId whole = b.add(Op::kMul, {rows, b.integers({1, ensemble.targets})});
    x = b.add(Op::kConstantOfShape, {whole}, {{"value", graph::make_scalar(DType::kFloat32, 0)}});
  } else {
    x = b.add(Op::kTreeEnsemble, {x},
              {{"nodes_featureids", lists.features},
               {"nodes_modes", lists.modes},
               {"nodes_truenodeids", lists.yes},
               {"nodes_falsenodeids", lists.no},
               {"nodes_trueleafs", lists.yes_leaf},
               {"nodes_falseleafs", lists.no_leaf},
               {"nodes_missing_value_tracks_true", lists.missing},
               {"nodes_splits", lists.splits},
               {"leaf_targetids", lists.targets},
               {"leaf_weights", lists.weights},
               {"membership_values", lists.members},
               {"tree_roots", lists.roots},
               {"n_targets", ensemble.targets},
               {"aggregate_function", std::string("SUM")},
               {"post_transform", std::string("NONE")}});
  }
  if (std::ranges::any_of(base, [](double value) { return value != 0; })) {
    std::vector<float> values(base.begin(), base.end());
    b.start("base");
    x = b.add(Op::kAdd, {x, b.constant(graph::make_constant(DType::kFloat32, Shape{ensemble.targets}, values.data()))});
  }
  x = linked(b, ensemble, x);
  if (x == input) x = b.add(Op::kIdentity, {x});
  if (b.error()) return *b.error();
  const bool classes = ensemble.link == Link::kBinary || ensemble.link == Link::kSoftmax || ensemble.link == Link::kOneVersusAll;
  graph.set_outputs({x});
  graph.set_output_names({classes ? "probabilities" : "prediction"});
  return graph;
}

}  // namespace serin::formats::trees
