// paddle.h: reads a model of Paddle as a Graph.
//
//   SERIN_TRY(graph::Graph graph, formats::read_paddle("models/ocr/1/inference.json"));
//
// The parameters are looked for next to the program: NAME.pdiparams for NAME.json and NAME.pdmodel; __params__, params or a file for each
// parameter for __model__. Inputs and outputs have the names that paddle.inference gives them. The first dimension of an input, if it is
// open, is the symbol "batch"; any other open one is a symbol of its own, "<input>_d<axis>".
#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/result.h"
#include "runtime/formats/replaceable_inputs.h"
#include "runtime/graph/graph.h"

namespace serin::formats {

struct PaddleLimits {
  size_t program_bytes = size_t{64} << 20;
  size_t operations = 200'000;
};

/// Errors: kNotFound (no program, or no parameters), kPermissionDenied, kInvalidArgument (not a regular file), kTooLarge. kUnsupported:
/// versions and operators; the message names all of them. kCorrupt: damaged, or program and parameters do not fit each other.
///
/// `replaceable`: kInvalidArgument if it has names, because a program has no values for its inputs.
Result<graph::Graph> read_paddle(const std::string& path, const ReplaceableInputs& replaceable = {}, const PaddleLimits& limits = {});

}  // namespace serin::formats
