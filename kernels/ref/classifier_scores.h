// classifier_scores.h: Parts that the classifiers of ai.onnx.ml share: rows of features, the final processing of scores, and class labels.
//
// Where the standard is vague (one score for two classes, Probit), this does the same as ONNX Runtime, because exporters test against it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

/// x [c] or [n, c].
struct Rows {
  int64_t count, width;
  explicit Rows(const Shape& shape) : count(shape.rank() == 2 ? shape[0] : 1), width(shape.rank() == 0 ? 1 : shape.back()) {}
};

/// One row of a tensor of numbers as doubles.
void read_row(const TensorView& x, int64_t row, std::span<double> values);

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
std::optional<PostTransform> post_transform_of(const Attributes& attributes, std::string& why);

/// Two or more scores, in place.
void transform_scores(PostTransform transform, std::span<double> scores);
double logistic(double x);
double probit(double x);

/// One score of two classes becomes two scores.
enum class SecondScore : uint8_t { kComplement, kOpposite };
std::pair<double, double> both_scores(PostTransform transform, SecondScore second, double score);

/// Class labels, integers or strings.
class Labels {
 public:
  /// From the attributes of these names. Nothing if both are absent.
  static std::optional<Labels> from(const Attributes& attributes, std::string_view ints, std::string_view strings);
  size_t size() const { return strings_.empty() ? ints_.size() : strings_.size(); }
  DType dtype() const { return strings_.empty() ? DType::kInt64 : DType::kString; }
  void store(const TensorView& y, int64_t i, size_t label) const;
  /// "1" or "0" unless there are two labels that name the classes of one score.
  void store_binary(const TensorView& y, int64_t i, bool positive) const;

 private:
  std::vector<int64_t> ints_;
  std::vector<std::string> strings_;
};

}  // namespace serin::kernels::ref
