// classifier_svm.cc: SVMClassifier and SVMRegressor. Without support vectors both are linear models. With them every pair of classes votes
// in the classifier. Where prob_a is given, the probabilities of the pairs are coupled to those of classes (Wu, Lin, Weng 2004, the second
// method).

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/classifier_families.h"
#include "kernels/ref/classifier_scores.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

enum class KernelKind : uint8_t { kLinear, kPoly, kRbf, kSigmoid };

/// Similarity of a row to each of some vectors.
struct SvmKernel {
  KernelKind kind = KernelKind::kLinear;
  double gamma = 0, coef0 = 0, degree = 0;

  double operator()(std::span<const double> x, const double* vector) const {
    double sum = 0;
    if (kind == KernelKind::kRbf) {
      for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - vector[i]) * (x[i] - vector[i]);
      return std::exp(-gamma * sum);
    }
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] * vector[i];
    if (kind == KernelKind::kPoly) return std::pow(gamma * sum + coef0, degree);
    return kind == KernelKind::kSigmoid ? std::tanh(gamma * sum + coef0) : sum;
  }
};

std::optional<SvmKernel> svm_kernel(const Attributes& attributes, bool linear, std::string& why) {
  constexpr std::string_view kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  const std::string name = attributes.text("kernel_type", "LINEAR");
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) {
    why = "kernel_type is '" + name + "'; LINEAR, POLY, RBF and SIGMOID are known";
    return std::nullopt;
  }
  SvmKernel kernel;
  if (linear) return kernel;
  kernel.kind = static_cast<KernelKind>(found - std::begin(kNames));
  const std::vector<double> params = attributes.numbers("kernel_params");
  if (params.size() >= 3) kernel.gamma = params[0], kernel.coef0 = params[1], kernel.degree = params[2];
  return kernel;
}

struct Svm {
  SvmKernel kernel;
  std::vector<double> vectors, coefficients, rho, prob_a, prob_b;
  std::vector<size_t> begins;  ///< of the support vectors of each class, and the end
  size_t classes = 0, features = 0;
  PostTransform transform = PostTransform::kNone;
  bool all_positive = false;  ///< no coefficient is negative

  size_t support_vectors() const { return begins.empty() ? 0 : begins.back(); }
  size_t pairs() const { return classes * (classes - 1) / 2; }
  void pair_scores(std::span<const double> x, std::span<double> scores, std::span<int> votes) const;
  void class_probabilities(std::span<const double> pairs, std::span<double> p) const;
};

/// The score of each pair of classes (i, j), from the support vectors of both, and a vote for the winner.
void Svm::pair_scores(std::span<const double> x, std::span<double> scores, std::span<int> votes) const {
  const size_t n = support_vectors();
  std::vector<double> similarity(n);
  for (size_t k = 0; k < n; ++k) similarity[k] = kernel(x, vectors.data() + k * features);
  size_t pair = 0;
  for (size_t i = 0; i + 1 < classes; ++i) {
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      double sum = rho[pair];
      for (size_t k = begins[i]; k < begins[i + 1]; ++k) sum += coefficients[(j - 1) * n + k] * similarity[k];
      for (size_t k = begins[j]; k < begins[j + 1]; ++k) sum += coefficients[i * n + k] * similarity[k];
      scores[pair] = sum;
      ++votes[sum > 0 ? i : j];
    }
  }
}

/// r[i][j], the probability of i against j, coupled to p[i].
void Svm::class_probabilities(std::span<const double> pairs, std::span<double> p) const {
  const size_t n = classes;
  std::vector<double> r(n * n), q(n * n), qp(n);
  for (size_t i = 0, pair = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j, ++pair) {
      const double raw = 1 - logistic(pairs[pair] * prob_a[pair] + prob_b[pair]);
      r[i * n + j] = std::clamp(raw, 1e-7, 1 - 1e-7);
      r[j * n + i] = 1 - r[i * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    p[i] = 1.0 / static_cast<double>(n);
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      q[i * n + i] += r[j * n + i] * r[j * n + i];
      q[i * n + j] = -r[j * n + i] * r[i * n + j];
    }
  }
  for (int loop = 0; loop < 100; ++loop) {
    double pqp = 0, error = 0;
    for (size_t i = 0; i < n; ++i) {
      qp[i] = 0;
      for (size_t j = 0; j < n; ++j) qp[i] += q[i * n + j] * p[j];
      pqp += p[i] * qp[i];
    }
    for (size_t i = 0; i < n; ++i) error = std::max(error, std::fabs(qp[i] - pqp));
    if (error < 0.005 / static_cast<double>(n)) break;
    for (size_t i = 0; i < n; ++i) {
      const double step = (pqp - qp[i]) / q[i * n + i];
      p[i] += step;
      pqp = (pqp + step * (step * q[i * n + i] + 2 * qp[i])) / (1 + step) / (1 + step);
      for (size_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + step * q[i * n + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
}

/// Where the attributes contradict each other, a reason.
std::string contradiction(const Svm& svm) {
  const size_t n = svm.support_vectors();
  if (n == 0) {
    if (svm.rho.empty()) return "has no rho";
    return svm.coefficients.size() == svm.classes * svm.features ? "" : "needs a coefficient for each class and feature";
  }
  if (svm.vectors.size() != n * svm.features)
    return "needs " + std::to_string(n) + " support vectors of " + std::to_string(svm.features) + " features";
  if (svm.coefficients.size() < (svm.classes - 1) * n) return "needs a coefficient for each support vector and each other class";
  if (svm.rho.size() < svm.pairs()) return "needs rho for each pair of classes";
  if (svm.prob_a.size() != svm.prob_b.size() || (!svm.prob_a.empty() && svm.prob_a.size() < svm.pairs()))
    return "needs prob_a and prob_b for each pair of classes";
  return "";
}

std::optional<Svm> svm_of(const GenericDesc& desc, size_t classes, std::string& why) {
  const Attributes& a = desc.attributes;
  Svm svm;
  svm.classes = classes;
  svm.features = static_cast<size_t>(Rows(desc.inputs[0].shape).width);
  svm.vectors = a.numbers("support_vectors");
  svm.coefficients = a.numbers("coefficients");
  svm.rho = a.numbers("rho");
  svm.prob_a = a.numbers("prob_a");
  svm.prob_b = a.numbers("prob_b");
  svm.all_positive = std::ranges::all_of(svm.coefficients, [](double c) { return c >= 0; });
  const std::vector<int64_t> per_class = a.integers("vectors_per_class");
  size_t vectors = 0;
  for (const int64_t count : per_class) {
    if (count < 0 || count > static_cast<int64_t>(svm.vectors.size()))
      return why = "vectors_per_class has " + std::to_string(count), std::nullopt;
    svm.begins.push_back(vectors);
    vectors += static_cast<size_t>(count);
  }
  if (!per_class.empty()) svm.begins.push_back(vectors);
  if (svm.support_vectors() > 0 && per_class.size() != classes)
    return why = "vectors_per_class does not have one number for each class", std::nullopt;
  const auto transform = post_transform_of(a, why);
  const auto kernel = svm_kernel(a, svm.support_vectors() == 0, why);
  if (!transform || !kernel) return std::nullopt;
  svm.transform = *transform;
  svm.kernel = *kernel;
  why = contradiction(svm);
  return why.empty() ? std::optional(std::move(svm)) : std::nullopt;
}

/// The scores that are answered, and the class that wins.
size_t classify(const Svm& svm, std::span<const double> x, std::vector<double>& scores) {
  if (svm.support_vectors() == 0) {
    scores.resize(svm.classes);
    for (size_t c = 0; c < svm.classes; ++c) scores[c] = svm.kernel(x, svm.coefficients.data() + c * svm.features) + svm.rho[0];
    return static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
  }
  scores.assign(svm.pairs(), 0);
  std::vector<int> votes(svm.classes);
  svm.pair_scores(x, scores, votes);
  if (!svm.prob_a.empty()) {
    std::vector<double> p(svm.classes);
    svm.class_probabilities(scores, p);
    scores = std::move(p);
  }
  return static_cast<size_t>(std::ranges::max_element(votes) - votes.begin());
}

}  // namespace

/// x [n, c] -> label [n], scores [n, classes or pairs of classes]
Prepared svm_classifier(const GenericDesc& desc, std::string& why) {
  const auto labels = Labels::from(desc.attributes, "classlabels_ints", "classlabels_strings");
  if (!labels) return refuse(why, "has no class labels");
  const auto svm = svm_of(desc, labels->size(), why);
  if (!svm) return nullptr;
  return make_kernel([svm = *svm, labels = *labels](Stream&, Inputs in, Outputs out) -> Fault {
    const Rows rows(in[0].shape);
    if (rows.width != static_cast<int64_t>(svm.features)) return "needs " + std::to_string(svm.features) + " features";
    const int64_t columns = out[1].shape.back();
    std::vector<double> x(svm.features), scores;
    for (int64_t row = 0; row < rows.count; ++row) {
      read_row(in[0], row, x);
      const size_t winner = classify(svm, x, scores);
      const bool linear = svm.support_vectors() == 0;
      if (svm.classes == 2 && linear && scores[winner] > 0)
        labels.store(out[0], row, svm.all_positive && scores[winner] < 0.5 ? winner : 1);
      else
        labels.store(out[0], row, winner);
      if (scores.size() == 1 && columns == 2) {
        const auto second = svm.transform == PostTransform::kNone ? SecondScore::kOpposite : SecondScore::kComplement;
        const auto [negative, positive] = both_scores(svm.transform, second, scores[0]);
        scores = {negative, positive};
      } else {
        transform_scores(svm.transform, scores);
      }
      for (int64_t i = 0; i < columns; ++i) out[1].as<float>()[row * columns + i] = static_cast<float>(scores[static_cast<size_t>(i)]);
    }
    return kOk;
  });
}

/// x [n, c] -> [n, 1]; one_class: its sign.
Prepared svm_regressor(const GenericDesc& desc, std::string& why) {
  const Attributes& a = desc.attributes;
  const std::vector<double> vectors = a.numbers("support_vectors"), coefficients = a.numbers("coefficients"), rho = a.numbers("rho");
  const int64_t supports = a.integer("n_supports", 0);
  const auto features = static_cast<size_t>(Rows(desc.inputs[0].shape).width);
  const bool linear = supports <= 0;
  const auto kernel = svm_kernel(a, linear, why);
  if (!kernel) return nullptr;
  const size_t expected = linear ? features : static_cast<size_t>(supports);
  if (rho.empty() || coefficients.size() != expected ||
      (!linear && (vectors.size() / expected != features || vectors.size() % expected != 0)))
    return refuse(why, "support vectors, coefficients and rho do not fit " + std::to_string(features) + " features");
  const bool one_class = a.integer("one_class", 0) != 0;
  return make_kernel([=, kernel = *kernel](Stream&, Inputs in, Outputs out) -> Fault {
    const Rows rows(in[0].shape);
    if (rows.width != static_cast<int64_t>(features)) return "needs " + std::to_string(features) + " features";
    std::vector<double> x(features);
    for (int64_t row = 0; row < rows.count; ++row) {
      read_row(in[0], row, x);
      double sum = rho[0];
      if (linear) sum += kernel(x, coefficients.data());
      for (size_t k = 0; !linear && k < coefficients.size(); ++k) sum += coefficients[k] * kernel(x, vectors.data() + k * features);
      out[0].as<float>()[row] = static_cast<float>(one_class ? (sum > 0 ? 1 : -1) : sum);
    }
    return kOk;
  });
}

}  // namespace serin::kernels::ref
