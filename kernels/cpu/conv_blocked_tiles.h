// conv_blocked_tiles.h: How the direct convolution on channel blocks (conv_blocked_direct.cc) divides filters, and the order of its weights.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/conv_blocked.h"

namespace serin::kernels::cpu {

/// Up to products.max_blocks blocks of filters, and the channels that they read: those of one group, or of all groups that a block has
/// filters of.
struct Tile {
  int64_t block;  // the first
  int blocks;
  int64_t x_block, skipped;  // where the channels begin: in which block of x, and after how many of its words
  int64_t words;             // of these channels, for a cell of a filter
  int64_t weight;            // offset in the packed weights, in words
};

/// Tiles of all filters, if `cells` of the window are read.
std::vector<Tile> cut_tiles(const BlockedConv& conv, const BlockedProducts& products, int64_t cells);

/// `weight` [m, c / group, cells of the window] in the order of the tiles; each is [c in blocks, cells, words of the block, filters], or
/// [cells, words of c, filters] for a plain x.
void pack_tiles(const BlockedConv& conv, const BlockedProducts& products, const std::vector<int64_t>& cells, const std::vector<Tile>& tiles,
                const float* weight, float* to);

}  // namespace serin::kernels::cpu
