// onnx.h: an ONNX file -> Graph.
//
//   SERIN_TRY(graph::Graph graph, formats::read_onnx("models/digits/1/model.onnx"));
//
// The file is read at wire level: tensors of any size stay where they lie (in memory that the constants share), and the file itself is let go.
// What cannot be read is refused by name, every unsupported node at once:
//   model.onnx: 3 nodes use operators that are not supported: 'attn' (com.acme.Frobnicate), ...
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::formats {

/// Inputs, by name, for which the file stores a value that a run may replace (an initializer that is declared as an input, too). The value is
/// Graph::standard_inputs'. What is not among them is a constant, and computed with at load.
using ReplaceableInputs = std::set<std::string, std::less<>>;

struct OnnxLimits {
  size_t file_bytes = size_t{64} << 30;
  size_t nodes = 1'000'000;
  int nesting = 64;                       ///< bodies and functions within each other
  size_t sparse_bytes = size_t{2} << 30;  ///< what all sparse tensors unfold to
};

/// Errors: kNotFound, kPermissionDenied, kInvalidArgument (not a regular file), kCorrupt (not ONNX: says what it is where it can tell, e.g.
/// "an HTML page", "a git-lfs pointer", "a zip archive"; truncated; contradicting itself: with byte offset), kUnsupported (opset, operators, types).
/// External data is read beneath the model's folder only, without following links.
/// `replaceable`: kInvalidArgument where one of them is no input of the file; one without a stored value is an input as any other.
Result<graph::Graph> read_onnx(const std::string& path, const ReplaceableInputs& replaceable = {}, const OnnxLimits& limits = {});

/// The same from bytes in memory; `folder` is where external data may lie (empty: none allowed).
Result<graph::Graph> read_onnx_bytes(std::shared_ptr<const std::byte> data, size_t size, const std::string& folder,
                                     const ReplaceableInputs& replaceable = {}, const OnnxLimits& limits = {});

/// One TensorProto file (input_0.pb of a test data set).
Result<graph::ConstantPtr> read_tensor_file(const std::string& path, std::string* name = nullptr);

}  // namespace serin::formats
