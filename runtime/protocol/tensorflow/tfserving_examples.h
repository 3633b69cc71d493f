// tfserving_examples.h: defines TensorFlow Serving's classify and regress for a model of tensors, over REST and gRPC.
//
// In TensorFlow Serving, an example is a record of features that the model's own graph parses. A model whose only input takes serialized
// examples gets them so. For any other model the features are its inputs, one row of each. The answer is made of one output of scores and, if present, another output of texts with their labels.
#pragma once

#include <functional>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

enum class TfMethod : uint8_t { kPredict, kClassify, kRegress };
/// Returns "classify", for example.
std::string_view tf_method_name(TfMethod method);

inline constexpr std::string_view kTfSignature = "serving_default";
/// Finds a signature of the model by the name in a request, which may be empty; an error names those that there are.
using FindTfSignature = std::function<Result<const Signature*>(std::string_view name)>;
/// For a model with one signature, which requests may also call "serving_default" or by the method ("tensorflow/serving/regress").
FindTfSignature only_tf_signature(const Signature& signature, TfMethod method);
/// Whether requests may mean a model's standard signature by that name.
bool is_standard_tf_name(std::string_view name, TfMethod method);
/// kInvalidArgument: the signature says that it is for another method. One that is for predict, or says nothing, may serve all.
Status check_tf_method(const Signature& signature, TfMethod method);
/// The error for a name that no signature has; `names` are those that there are.
Error no_tf_signature(std::string_view name, std::string_view names);

/// Whether the model parses examples itself.
bool parses_examples(const Signature& signature);
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
