// onnx.h: reads an ONNX file as a Graph.
//
//   SERIN_TRY(graph::Graph graph, formats::read_onnx("models/digits/1/model.onnx"));
//
// The file is read at wire level: tensors of any size stay in place, in memory that the constants share, and the file is closed. A model
// with unsupported nodes is refused; the error names all of them:
//   model.onnx: 3 nodes use operators that are not supported: 'attn' (com.acme.Frobnicate), ...
#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/result.h"
#include "runtime/formats/replaceable_inputs.h"
#include "runtime/graph/graph.h"

namespace serin::formats {

struct OnnxLimits {
  size_t file_bytes = size_t{64} << 30;
  size_t nodes = 1'000'000;
  int nesting = 64;                       ///< bodies and functions within each other
  size_t sparse_bytes = size_t{2} << 30;  ///< limit for all sparse tensors together, in dense form
};

/// Errors: kNotFound, kPermissionDenied, kInvalidArgument (not a regular file), kUnsupported (opset, operators, types), kCorrupt. kCorrupt
/// means a file that is truncated, contradicts itself (with byte offset), or is not ONNX. If possible, the message names the format, for
/// example "an HTML page", "a git-lfs pointer", "a zip archive".
///
/// External data is read beneath the model's folder only, without following links.
///
/// `replaceable`: kInvalidArgument if one of them is no input of the file. One without a stored value is an ordinary input.
Result<graph::Graph> read_onnx(const std::string& path, const ReplaceableInputs& replaceable = {}, const OnnxLimits& limits = {});

/// The same from bytes in memory; `folder` may contain external data (empty: none allowed).
Result<graph::Graph> read_onnx_bytes(std::shared_ptr<const std::byte> data, size_t size, const std::string& folder,
                                     const ReplaceableInputs& replaceable = {}, const OnnxLimits& limits = {});

/// Reads one TensorProto file (input_0.pb of a test data set).
Result<graph::ConstantPtr> read_tensor_file(const std::string& path, std::string* name = nullptr);

}  // namespace serin::formats
