// channel_blocks.h: the layout stage: convolutions and what lies between them work on activations in channel blocks (kernels::ChannelBlocks).
#pragma once

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Its name among the passes, for LoadOptions::disabled_passes.
inline constexpr std::string_view kChannelBlocksPass = "channel_blocks";

/// Rewrites `program` for blocks of `block` channels; answers whether anything changed. 0: leaves it as it is.
bool assign_channel_blocks(Program& program, int64_t block);

}  // namespace serin::engine
