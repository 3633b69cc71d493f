// pointwise_chains.h: the stage that makes one loop of several steps on single elements (kernels::Pointwise).
#pragma once

#include <string_view>

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Its name among the passes, for LoadOptions::disabled_passes.
inline constexpr std::string_view kPointwiseChainsPass = "pointwise_chains";

/// Rewrites `program`; answers whether anything changed. For a device 16-bit floats are fused, too, and chains of any size: there each step is a launch.
bool fuse_pointwise_chains(Program& program, bool for_device = false);

}  // namespace serin::engine
