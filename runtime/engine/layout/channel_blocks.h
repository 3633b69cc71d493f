// channel_blocks.h: the layout stage that stores activations of convolutions and of steps between them in channel blocks.
//
// The layout is kernels::ChannelBlocks.
#pragma once

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// The stage's name for LoadOptions::disabled_passes.
inline constexpr std::string_view kChannelBlocksPass = "channel_blocks";

/// Rewrites `program` for blocks of `block` channels; returns whether anything changed. 0 leaves it unchanged.
bool assign_channel_blocks(Program& program, int64_t block);

}  // namespace serin::engine
