// tfserving_examples.h: what classify and regress of TensorFlow Serving mean for a model of tensors, over REST and gRPC alike.
//
// There an example is a record of features that the model's own graph parses. Here the features are the model's inputs, one row of each; the answer is
// made of one output of scores, and, where there is one, another of texts that are their labels.
#pragma once

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

enum class TfMethod : uint8_t { kPredict, kClassify, kRegress };
/// "classify"
std::string_view tf_method_name(TfMethod method);

inline constexpr std::string_view kTfSignature = "serving_default";
/// Models have one signature. It goes by that name, by the method's ("tensorflow/serving/regress"), or by none. kInvalidArgument.
Status check_tf_signature(std::string_view name, TfMethod method);

/// Of the scores, and behind it of the labels where there are such. kInvalidArgument: the model has no output that could be meant.
Result<std::vector<size_t>> scored_outputs(TfMethod method, const Signature& signature);

/// The shape of an input whose feature has so many values in each of `rows` examples.
std::vector<int64_t> example_dims(const TensorSpec& spec, int64_t rows, int64_t values);
/// The refusal of a context whose texts, once for each example, are over the limit.
Error too_much_context(const RequestLimits& limits);
/// Of a tensor with rows the so-manieth, as a tensor without that axis.
TensorView row_of(const TensorView& tensor, int64_t row);

/// [rows, classes] of scores, with labels where there is a second output of the same shape. [rows] counts as one class.
struct Scores {
  int64_t rows = 0, classes = 0;
  const TensorView* values = nullptr;
  const TensorView* labels = nullptr;

  double score(int64_t row, int64_t index) const;
  std::string_view label(int64_t row, int64_t index) const;  ///< empty where there are none
};
/// kInvalidArgument where the outputs are not of such shapes.
Result<Scores> read_scores(TfMethod method, std::span<const NamedTensor> outputs);

}  // namespace serin::protocol
