// tfserving_rest.h: a codec for TensorFlow Serving's REST API and KServe's V1 protocol, which has the same bodies, between JSON and
// tensors.
//
//   predict    {"instances": [[1, 2], [3, 4]]}                     in rows: one value each of the only input, or
//              {"instances": [{"a": [1, 2], "b": 3}, ..]}          an object with all of them
//              {"inputs": {"a": [[1, 2], ..], "b": [3, ..]}}       in columns: whole tensors, or the only one without its name
//   classify   {"examples": [{"a": [1, 2]}, ..]}                   in rows, each a flat list; "context" applies to all
//
// Shapes are those of the lists. Errors use the messages that all protocols share (request_builder.h). For errors in the form of the
// request, they use TensorFlow Serving's own message, if there is one. Source: github.com/tensorflow/serving, g3doc/api_rest.md.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"
#include "runtime/protocol/tensorflow/tfserving_examples.h"

namespace serin::protocol {

struct TfPredict {
  InferRequest infer;
  bool rows = false;  ///< form of the request, and of the answer
};

/// Like decode_infer_request() of oip_rest.h. `find` is asked once for the signature that the body names.
Result<TfPredict> decode_tf_predict(std::string body, const FindTfSignature& find, std::string* field, const RequestLimits& limits = {});
/// Its outputs are those of scored_outputs().
Result<InferRequest> decode_tf_examples(std::string body, TfMethod method, const FindTfSignature& find, std::string* field,
                                        const RequestLimits& limits = {});

// The same for a model with one signature.
inline Result<TfPredict> decode_tf_predict(std::string body, const Signature& signature, std::string* field,
                                           const RequestLimits& limits = {}) {
  return decode_tf_predict(std::move(body), only_tf_signature(signature, TfMethod::kPredict), field, limits);
}
inline Result<InferRequest> decode_tf_examples(std::string body, TfMethod method, const Signature& signature, std::string* field,
                                               const RequestLimits& limits = {}) {
  return decode_tf_examples(std::move(body), method, only_tf_signature(signature, method), field, limits);
}

/// `rows`: the value is a list with an element for each row, of one output or of objects with all outputs. Otherwise it has whole tensors.
/// kInvalidArgument: the outputs have no rows, or different numbers of rows.
Result<std::string> encode_tf_predict(std::string_view key, std::span<const NamedTensor> outputs, bool rows);
/// Encodes an answer of classify or regress: {"results": [..]}.
Result<std::string> encode_tf_results(TfMethod method, std::span<const NamedTensor> outputs);

}  // namespace serin::protocol
