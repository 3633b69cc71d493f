// classifier_trees.cc: TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor. Rows go through the trees of forest.h a block at a
// time, so that a tree stays in the cache for many rows. Scores are summed in double.

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "kernels/ref/classifier_families.h"
#include "kernels/ref/classifier_scores.h"
#include "kernels/ref/forest.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

struct Score {
  double value = 0;
  bool given = false;  ///< some leaf had a weight for it
};

void add(Aggregate aggregate, Score& score, double value) {
  if (aggregate == Aggregate::kMin)
    score.value = score.given ? std::min(score.value, value) : value;
  else if (aggregate == Aggregate::kMax)
    score.value = score.given ? std::max(score.value, value) : value;
  else
    score.value += value;
  score.given = true;
}

/// finish(row, scores) for each row of x.
template <class T, class F>
void run_forest(const Forest<T>& forest, Aggregate aggregate, size_t targets, const TensorView& x, F&& finish) {
  const Rows rows(x.shape);
  const int64_t block = std::clamp<int64_t>(int64_t{16384} / static_cast<int64_t>(targets), 1, 128);
  const auto width = static_cast<size_t>(rows.width);
  const bool direct = x.dtype == dtype_of<T>();
  std::vector<T> converted(direct ? 0 : static_cast<size_t>(block) * width);
  std::vector<double> line(direct ? 0 : width);
  std::vector<Score> scores;
  for (int64_t begin = 0; begin < rows.count; begin += block) {
    const auto count = static_cast<size_t>(std::min(block, rows.count - begin));
    const T* values = direct ? x.as<const T>() + begin * rows.width : converted.data();
    for (size_t i = 0; !direct && i < count; ++i) {
      read_row(x, begin + static_cast<int64_t>(i), line);
      std::ranges::transform(line, converted.begin() + static_cast<std::ptrdiff_t>(i * width),
                             [](double value) { return static_cast<T>(value); });
    }
    scores.assign(count * targets, Score());
    for (size_t tree = 0; tree < forest.trees(); ++tree) {
      for (size_t i = 0; i < count; ++i) {
        for (const LeafWeight& weight : forest.weights(forest.leaf(tree, values + i * width)))
          add(aggregate, scores[i * targets + static_cast<size_t>(weight.target)], weight.value);
      }
    }
    for (size_t i = 0; i < count; ++i) finish(begin + static_cast<int64_t>(i), std::span(scores).subspan(i * targets, targets));
  }
}

/// Calls make(forest) with floats where features and thresholds are floats, else with doubles.
template <class F>
Prepared with_forest(const GenericDesc& desc, const ForestParts& parts, F&& make) {
  const bool floats = std::ranges::all_of(parts.nodes, [](const ForestNode& node) {
    return static_cast<double>(static_cast<float>(node.threshold)) == node.threshold || std::isnan(node.threshold);
  });
  if (desc.inputs[0].dtype == DType::kFloat32 && floats) return make(std::make_shared<const Forest<float>>(parts));
  return make(std::make_shared<const Forest<double>>(parts));
}

Fault wrong_width(const TensorView& x, int64_t width) {
  if (Rows(x.shape).width == width) return kOk;
  return "needs " + std::to_string(width) + " features, got " + x.shape.str();
}

/// What becomes of the sums of a regression.
struct Regression {
  Aggregate aggregate = Aggregate::kSum;
  PostTransform transform = PostTransform::kNone;
  std::vector<double> base;  ///< one for each target, or none
  size_t targets = 1;

  void finish(size_t trees, std::span<const Score> scores, std::vector<double>& y) const {
    y.resize(targets);
    for (size_t i = 0; i < targets; ++i) {
      const double sum = aggregate == Aggregate::kAverage ? scores[i].value / static_cast<double>(trees) : scores[i].value;
      y[i] = sum + (base.empty() ? 0 : base[i]);
    }
    if (targets > 1 || transform == PostTransform::kProbit) transform_scores(transform, y);  // one target has nothing to be weighed against
  }
};

std::optional<Regression> regression_of(const GenericDesc& desc, std::string& why) {
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string name = desc.attributes.text("aggregate_function", "SUM");
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return why = "aggregate_function is '" + name + "'", std::nullopt;
  const auto transform = post_transform_of(desc.attributes, why);
  const int64_t targets = desc.attributes.integer("n_targets", 1);
  if (!transform) return std::nullopt;
  if (targets < 1 || targets > INT32_MAX) return why = "n_targets is " + std::to_string(targets), std::nullopt;
  Regression regression{static_cast<Aggregate>(found - std::begin(kNames)), *transform, desc.attributes.numbers("base_values"),
                        static_cast<size_t>(targets)};
  if (regression.base.size() != regression.targets) regression.base.clear();
  return regression;
}

Prepared regressor(const GenericDesc& desc, const std::optional<ForestParts>& parts, std::string& why) {
  const auto regression = regression_of(desc, why);
  if (!regression || !parts) return nullptr;
  const int64_t width = Rows(desc.inputs[0].shape).width;
  why = defect(*parts, width, static_cast<int64_t>(regression->targets));
  if (!why.empty()) return nullptr;
  return with_forest(desc, *parts, [&](auto forest) {
    return make_kernel([=, op = *regression](Stream&, Inputs in, Outputs out) -> Fault {
      if (const Fault fault = wrong_width(in[0], width)) return fault;
      std::vector<double> y;
      run_forest(*forest, op.aggregate, op.targets, in[0], [&](int64_t row, std::span<const Score> scores) {
        op.finish(forest->trees(), scores, y);
        for (size_t i = 0; i < y.size(); ++i) store_number(out[0], row * static_cast<int64_t>(y.size()) + static_cast<int64_t>(i), y[i]);
      });
      return kOk;
    });
  });
}

struct Classification {
  Labels labels;
  PostTransform transform = PostTransform::kNone;
  std::vector<double> base;
  bool one_score = false;     ///< two classes, and all leaves vote for one and the same of them
  bool all_positive = false;  ///< no weight is negative: scores are probabilities

  /// The class, and the scores in place of the sums.
  size_t finish(std::span<const Score> sums, std::vector<double>& scores) const;

 private:
  size_t one_of_two(std::span<const Score> sums, std::vector<double>& scores) const;
};

size_t Classification::finish(std::span<const Score> sums, std::vector<double>& scores) const {
  if (one_score) return one_of_two(sums, scores);
  scores.clear();
  for (size_t i = 0; i < sums.size(); ++i) scores.push_back(sums[i].value + (i < base.size() ? base[i] : 0));
  const auto best = static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
  transform_scores(transform, scores);
  return best;
}

/// Votes for class 0 alone are the score of class 1, as exporters of boosted trees mean it; votes for class 1 alone are its own.
size_t Classification::one_of_two(std::span<const Score> sums, std::vector<double>& scores) const {
  const bool for_second = sums[1].given;
  const double score = for_second ? sums[1].value + (base.size() == 2 ? base[1] : 0) : sums[0].value + (base.empty() ? 0 : base[0]);
  const size_t winner = score > (all_positive ? 0.5 : 0) ? 1 : 0;
  if (!for_second && base.size() < 2) {
    const auto pair = both_scores(transform, all_positive ? SecondScore::kComplement : SecondScore::kOpposite, score);
    scores = {pair.first, pair.second};
    return winner;
  }
  scores = {for_second ? 0 : score, for_second ? score : 0};
  transform_scores(transform, scores);
  return winner;
}

}  // namespace

Prepared tree_ensemble(const GenericDesc& desc, std::string& why) { return regressor(desc, forest_from_leaves(desc.attributes, why), why); }

Prepared tree_ensemble_regressor(const GenericDesc& desc, std::string& why) {
  return regressor(desc, forest_from_nodes(desc.attributes, "target", why), why);
}

/// x [n, c] -> label [n], scores [n, classes]
Prepared tree_ensemble_classifier(const GenericDesc& desc, std::string& why) {
  const auto labels = Labels::from(desc.attributes, "classlabels_int64s", "classlabels_strings");
  if (!labels) return refuse(why, "has no class labels");
  const auto transform = post_transform_of(desc.attributes, why);
  const auto parts = transform ? forest_from_nodes(desc.attributes, "class", why) : std::nullopt;
  if (!parts) return nullptr;
  const int64_t width = Rows(desc.inputs[0].shape).width;
  why = defect(*parts, width, static_cast<int64_t>(labels->size()));
  if (!why.empty()) return nullptr;

  std::set<int32_t> voted;
  for (const LeafWeight& weight : parts->weights) voted.insert(weight.target);
  Classification op{*labels, *transform, desc.attributes.numbers("base_values"), labels->size() == 2 && voted.size() == 1,
                    std::ranges::all_of(parts->weights, [](const LeafWeight& weight) { return weight.value >= 0; })};
  return with_forest(desc, *parts, [&](auto forest) {
    return make_kernel([=, op = std::move(op)](Stream&, Inputs in, Outputs out) -> Fault {
      if (const Fault fault = wrong_width(in[0], width)) return fault;
      std::vector<double> scores;
      run_forest(*forest, Aggregate::kSum, op.labels.size(), in[0], [&](int64_t row, std::span<const Score> sums) {
        op.labels.store(out[0], row, op.finish(sums, scores));
        for (size_t i = 0; i < scores.size(); ++i)
          out[1].as<float>()[row * static_cast<int64_t>(scores.size()) + static_cast<int64_t>(i)] = static_cast<float>(scores[i]);
      });
      return kOk;
    });
  });
}

}  // namespace serin::kernels::ref
