// classifier_linear.cc: LinearClassifier and LinearRegressor: scores = x coefficients^T + intercepts.

#include <algorithm>
#include <vector>

#include "kernels/ref/classifier_families.h"
#include "kernels/ref/classifier_scores.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

struct LinearModel {
  std::vector<double> coefficients;  ///< [targets, features]
  std::vector<double> intercepts;    ///< [targets]
  size_t targets = 0, features = 0;
  PostTransform transform = PostTransform::kNone;

  void score(std::span<const double> x, std::span<double> scores) const {
    for (size_t t = 0; t < targets; ++t) {
      double sum = t < intercepts.size() ? intercepts[t] : 0;
      for (size_t i = 0; i < features; ++i) sum += x[i] * coefficients[t * features + i];
      scores[t] = sum;
    }
  }
};

std::optional<LinearModel> linear_model(const GenericDesc& desc, size_t targets, std::string& why) {
  const auto transform = post_transform_of(desc.attributes, why);
  if (!transform) return std::nullopt;
  LinearModel model{desc.attributes.numbers("coefficients"), desc.attributes.numbers("intercepts"), targets, 0, *transform};
  model.features = static_cast<size_t>(Rows(desc.inputs[0].shape).width);
  if (targets == 0 || model.coefficients.size() != targets * model.features) {
    why = std::to_string(model.coefficients.size()) + " coefficients do not fit " + std::to_string(targets) + " targets of " +
          std::to_string(model.features) + " features";
    return std::nullopt;
  }
  if (!model.intercepts.empty() && model.intercepts.size() != targets) {
    why = "needs one intercept for each target";
    return std::nullopt;
  }
  return model;
}

}  // namespace

/// x [n, c] -> label [n], scores [n, classes]. One score decides between two classes by its sign.
Prepared linear_classifier(const GenericDesc& desc, std::string& why) {
  const auto labels = Labels::from(desc.attributes, "classlabels_ints", "classlabels_strings");
  if (!labels) return refuse(why, "has no class labels");
  const size_t intercepts = desc.attributes.numbers("intercepts").size();
  const auto model = linear_model(desc, intercepts > 0 ? intercepts : labels->size(), why);
  if (!model) return nullptr;
  if (model->targets > 1 && labels->size() < model->targets) return refuse(why, "has fewer labels than targets");
  const size_t columns = model->targets == 1 && labels->size() == 2 ? 2 : model->targets;
  return make_kernel([=, model = *model, labels = *labels](Stream&, Inputs in, Outputs out) -> Fault {
    const Rows rows(in[0].shape);
    if (rows.width != static_cast<int64_t>(model.features)) return "needs " + std::to_string(model.features) + " features";
    std::vector<double> x(model.features), scores(model.targets);
    for (int64_t row = 0; row < rows.count; ++row) {
      read_row(in[0], row, x);
      model.score(x, scores);
      const auto best = static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
      if (model.targets == 1)
        labels.store_binary(out[0], row, scores[0] > 0);
      else
        labels.store(out[0], row, best);
      float* z = out[1].as<float>() + row * static_cast<int64_t>(columns);
      if (columns > model.targets) {
        const auto [negative, positive] = both_scores(model.transform, SecondScore::kComplement, scores[0]);
        z[0] = static_cast<float>(negative), z[1] = static_cast<float>(positive);
        continue;
      }
      transform_scores(model.transform, scores);
      for (size_t i = 0; i < columns; ++i) z[i] = static_cast<float>(scores[i]);
    }
    return kOk;
  });
}

/// x [n, c] -> [n, targets]
Prepared linear_regressor(const GenericDesc& desc, std::string& why) {
  const int64_t targets = desc.attributes.integer("targets", 1);
  if (targets < 1 || targets > static_cast<int64_t>(desc.attributes.numbers("coefficients").size()))
    return refuse(why, "targets is " + std::to_string(targets));
  const auto model = linear_model(desc, static_cast<size_t>(targets), why);
  if (!model) return nullptr;
  return make_kernel([model = *model](Stream&, Inputs in, Outputs out) -> Fault {
    const Rows rows(in[0].shape);
    std::vector<double> x(model.features), scores(model.targets);
    for (int64_t row = 0; row < rows.count; ++row) {
      read_row(in[0], row, x);
      model.score(x, scores);
      if (model.targets > 1 || model.transform == PostTransform::kProbit) transform_scores(model.transform, scores);
      for (size_t i = 0; i < scores.size(); ++i)
        out[0].as<float>()[row * static_cast<int64_t>(scores.size()) + static_cast<int64_t>(i)] = static_cast<float>(scores[i]);
    }
    return kOk;
  });
}

}  // namespace serin::kernels::ref
