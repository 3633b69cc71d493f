// pointwise_chains.h: the stage that makes one loop of several steps on single elements (kernels::Pointwise).
#pragma once

#include <string_view>

#include "runtime/engine/program.h"

namespace serin::engine {

/// Its name among the passes, for LoadOptions::disabled_passes.
inline constexpr std::string_view kPointwiseChainsPass = "pointwise_chains";

/// Rewrites `program`; answers whether anything changed.
bool fuse_pointwise_chains(Program& program);

}  // namespace serin::engine
