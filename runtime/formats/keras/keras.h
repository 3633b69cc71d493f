// keras.h: reads a model that Keras 3 saved (.keras) as a Graph.
//
//   model.save("model.keras")
//
// The archive holds the layers as JSON and the weights as HDF5; no Python object is in it. Large weights stay in the file (graph/constant.h).
#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::formats {

struct KerasLimits {
  size_t config_bytes = size_t{64} << 20;  ///< of the JSON
  size_t calls = 200'000;                  ///< of layers
};

/// Inputs have the names of the input layers; outputs have the names of the layers that make them, or their keys where the model answers a dictionary.
/// Errors: kNotFound, kPermissionDenied, kInvalidArgument (not a regular file), kUnsupported (layers, settings of layers), kCorrupt (cut off, contradictory,
/// weights missing or of another shape). An error about unknown layers names all of them.
Result<graph::Graph> read_keras(const std::string& path, const KerasLimits& limits = {});

}  // namespace serin::formats
