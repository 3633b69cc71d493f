// classifier_scores.cc: the post-transforms of classifiers' scores (classifier_scores.h).

#include "kernels/ref/classifier_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace serin::kernels::ref {

void read_row(const TensorView& x, int64_t row, std::span<double> values) {
  visit_dtype(x.dtype, [&]<class T>(Element<T>) {
    if constexpr (!std::is_void_v<T>) {
      const T* from = x.as<const T>() + row * static_cast<int64_t>(values.size());
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(load(from[i]));
    }
  });
}

std::optional<PostTransform> post_transform_of(const Attributes& attributes, std::string& why) {
  constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const std::string name = attributes.text("post_transform", "NONE");
  const auto found = std::ranges::find(kNames, name);
  if (found != std::end(kNames)) return static_cast<PostTransform>(found - std::begin(kNames));
  why = "post_transform is '" + name + "'; NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO and PROBIT are known";
  return std::nullopt;
}

double logistic(double x) {
  const double y = 1 / (1 + std::exp(-std::fabs(x)));
  return x < 0 ? 1 - y : y;
}

/// sqrt(2) erfinv(2 x - 1), by Winitzki's approximation.
double probit(double x) {
  const double y = 2 * x - 1, sign = y < 0 ? -1 : 1;
  const double log = std::log((1 - y) * (1 + y));
  const double v = 2 / (3.14159 * 0.147) + 0.5 * log;
  return 1.41421356 * sign * std::sqrt(-v + std::sqrt(v * v - log / 0.147));
}

namespace {

/// `zeros_stay`: a score of 0 is no vote, and stays 0.
void softmax(std::span<double> scores, bool zeros_stay) {
  double largest = -std::numeric_limits<double>::max(), sum = 0;
  for (const double score : scores) largest = std::max(largest, score);
  for (double& score : scores) {
    if (zeros_stay && std::fabs(score) <= 0.0000001) {
      score *= std::exp(-largest);
    } else {
      score = std::exp(score - largest);
      sum += score;
    }
  }
  for (double& score : scores) score /= sum;
}

}  // namespace

void transform_scores(PostTransform transform, std::span<double> scores) {
  switch (transform) {
    case PostTransform::kNone: break;
    case PostTransform::kSoftmax: softmax(scores, false); break;
    case PostTransform::kSoftmaxZero: softmax(scores, true); break;
    case PostTransform::kLogistic:
      for (double& score : scores) score = logistic(score);
      break;
    case PostTransform::kProbit:
      for (double& score : scores) score = probit(score);
      break;
  }
}

std::pair<double, double> both_scores(PostTransform transform, SecondScore second, double score) {
  if (transform == PostTransform::kLogistic) return {logistic(-score), logistic(score)};
  if (transform == PostTransform::kProbit) return {-probit(score), probit(score)};
  return {second == SecondScore::kComplement ? 1 - score : -score, score};
}

std::optional<Labels> Labels::from(const Attributes& attributes, std::string_view ints, std::string_view strings) {
  Labels labels;
  labels.strings_ = attributes.texts(strings);
  labels.ints_ = attributes.integers(ints);
  return labels.size() == 0 ? std::nullopt : std::optional(labels);
}

void Labels::store(const TensorView& y, int64_t i, size_t label) const {
  if (strings_.empty())
    y.as<int64_t>()[i] = ints_[label];
  else
    y.as<std::string>()[i] = strings_[label];
}

void Labels::store_binary(const TensorView& y, int64_t i, bool positive) const {
  if (size() == 2)
    store(y, i, positive ? 1 : 0);
  else if (strings_.empty())
    y.as<int64_t>()[i] = positive ? 1 : 0;
  else
    y.as<std::string>()[i] = std::string(1, positive ? '1' : '0');  // assigned as text, GCC 12 warns of a bound of its own making
}

}  // namespace serin::kernels::ref
