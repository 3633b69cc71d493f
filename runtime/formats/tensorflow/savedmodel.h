// savedmodel.h: reads a SavedModel of TensorFlow or Keras as a Graph.
//
//   SERIN_TRY(graph::Graph graph, formats::read_saved_model("models/digits/1/saved_model.pb"));
//
// The folder of the file has the weights (variables/) and vocabularies (assets/). The graph is that of the chosen signature, or of
// `serving_default`, or of the only one. Its inputs and outputs have the names of the signature, in alphabetic order.
#pragma once

#include <map>
#include <string>

#include "runtime/base/result.h"
#include "runtime/formats/replaceable_inputs.h"
#include "runtime/graph/graph.h"

namespace serin::formats {

/// The weights of a file by their names in it. Graphs that are read with the same one share them.
using SharedConstants = std::map<std::string, graph::ConstantPtr, std::less<>>;

struct SavedModelChoice {
  std::string signature = {};          ///< empty: `serving_default`, or the only one
  SharedConstants* weights = nullptr;  ///< null: shared with no other graph
};

struct SavedModelLimits {
  size_t file_bytes = size_t{2} << 30;  ///< of saved_model.pb
  size_t nodes = 1'000'000;             ///< after functions are written out
  int nesting = 64;                     ///< of calls
};

/// Errors: kNotFound, kPermissionDenied, kInvalidArgument (no regular file), kUnsupported (operators, types, no usable signature), kCorrupt
/// (truncated, contradicts itself, a wrong checksum, or no SavedModel at all), kTooLarge. The error lists all unsupported nodes.
///
/// Nothing outside the folder is read, and links are not followed. A SavedModel has no replaceable inputs: any is kInvalidArgument.
Result<graph::Graph> read_saved_model(const std::string& path, const ReplaceableInputs& replaceable = {},
                                      const SavedModelLimits& limits = {}, const SavedModelChoice& choice = {});

}  // namespace serin::formats
