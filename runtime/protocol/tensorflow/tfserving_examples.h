// tfserving_examples.h: defines TensorFlow Serving's classify and regress for a model of tensors, over REST and gRPC.
//
// In TensorFlow Serving, an example is a record of features that the model's own graph parses. Here the features are the model's inputs,
// one row of each. The answer is made of one output of scores and, if present, another output of texts with their labels.
#pragma once

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

enum class TfMethod : uint8_t { kPredict, kClassify, kRegress };
/// Returns "classify", for example.
std::string_view tf_method_name(TfMethod method);

inline constexpr std::string_view kTfSignature = "serving_default";
/// Models have one signature. Its name is that one, the method's ("tensorflow/serving/regress"), or empty. Otherwise kInvalidArgument.
Status check_tf_signature(std::string_view name, TfMethod method);

/// Returns the index of the scores, then that of the labels, if any. kInvalidArgument: the model has no suitable output.
Result<std::vector<size_t>> scored_outputs(TfMethod method, const Signature& signature);

/// The shape of an input whose feature has `values` values in each of `rows` examples.
std::vector<int64_t> example_dims(const TensorSpec& spec, int64_t rows, int64_t values);
/// The error for a context whose texts, repeated for each example, exceed the limit.
Error too_much_context(const RequestLimits& limits);
/// Returns row `row` of a tensor, as a tensor without that axis.
TensorView row_of(const TensorView& tensor, int64_t row);

/// Scores of shape [rows, classes], with labels if there is a second output of the same shape. [rows] counts as one class.
struct Scores {
  int64_t rows = 0, classes = 0;
  const TensorView* values = nullptr;
  const TensorView* labels = nullptr;

  double score(int64_t row, int64_t index) const;
  std::string_view label(int64_t row, int64_t index) const;  ///< empty if there are none
};
/// kInvalidArgument if the outputs have other shapes.
Result<Scores> read_scores(TfMethod method, std::span<const NamedTensor> outputs);

}  // namespace serin::protocol
