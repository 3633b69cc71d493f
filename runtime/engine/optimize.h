// optimize.h: runs the passes of runtime/graph for the engine; constants are folded with the reference kernels.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/lower/fold.h"

namespace serin::engine {

/// All names that LoadOptions::disabled_passes accepts: the passes of runtime/graph in their order, then the engine's own stages.
std::vector<std::string> pass_names();

/// Without LoadOptions::device, passes that pay only there are left out. kInvalidArgument for the name of a pass that does not exist.
Status optimize(graph::Graph& graph, const Folder& folder, const LoadOptions& options);
/// The same for the bodies of control flow, the innermost first. Their shapes must be inferred already, from the graphs around them.
Status optimize_bodies(graph::Graph& graph, const Folder& folder, const LoadOptions& options);

}  // namespace serin::engine
