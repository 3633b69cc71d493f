// torch.h: reads a program of torch.export (.pt2) as a Graph.
//
//   torch.export.save(torch.export.export(model.eval(), (example,), dynamic_shapes=...), "model.pt2")
//
// The archive holds the graph as JSON and the weights as raw bytes; pickles in it (the example inputs) are never read. Large weights stay in
// the file (graph/constant.h).
#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::formats {

struct TorchLimits {
  size_t program_bytes = size_t{256} << 20;  ///< of the JSON
  size_t nodes = 1'000'000;
};

/// Errors: kNotFound, kPermissionDenied, kInvalidArgument (not a regular file), kUnsupported (operators, types, versions), kCorrupt (truncated,
/// contradictory, no archive of torch.export). An error about operators names all nodes that have one.
Result<graph::Graph> read_torch(const std::string& path, const TorchLimits& limits = {});

}  // namespace serin::formats
