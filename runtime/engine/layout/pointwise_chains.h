// pointwise_chains.h: the stage that fuses several steps on single elements into one loop (kernels::Pointwise).
#pragma once

#include <string_view>

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// The stage's name for LoadOptions::disabled_passes.
inline constexpr std::string_view kPointwiseChainsPass = "pointwise_chains";

/// Rewrites `program`; returns whether anything changed. For a device, it also fuses 16-bit floats and chains of any size, because each
/// step there is a launch.
bool fuse_pointwise_chains(Program& program, bool for_device = false);

}  // namespace serin::engine
