#include "kernels/cpu/conv_blocked_tiles.h"

#include <algorithm>

#include "kernels/float16.h"

namespace serin::kernels::cpu {

namespace {

/// Of the channels [begin, end) of x, which lie in blocks.
int64_t words_of(const BlockedConv& conv, const BlockedProducts& products, int64_t begin, int64_t end) {
  if (conv.plain_x) return products.words(end - begin);
  int64_t words = 0;
  for (int64_t c = begin, next = 0; c < end; c = next) {
    next = std::min(end, (c / conv.b + 1) * conv.b);
    words += products.words(next - c);
  }
  return words;
}

Tile tile_of(const BlockedConv& conv, const BlockedProducts& products, int64_t block, int64_t blocks, int64_t begin, int64_t end) {
  begin -= begin % conv.b % products.channels;  // a word is read whole
  return {block, static_cast<int>(blocks), begin / conv.b, begin % conv.b / products.channels, words_of(conv, products, begin, end), 0};
}

/// Blocks of one group at a time, as even as can be: five are three and two. If pieces are usually of two blocks but may have three, no
/// single block is left over.
std::vector<Tile> cut_groups(const BlockedConv& conv, const BlockedProducts& products) {
  std::vector<Tile> tiles;
  const int64_t blocks = conv.y_blocks() / conv.group, channels = conv.c / conv.group;
  const int64_t usual = products.usual_blocks;
  const int64_t count = std::max<int64_t>(1, (blocks + (usual == products.max_blocks ? usual - 1 : 0)) / usual);
  for (int64_t group = 0; group < conv.group; ++group) {
    for (int64_t i = 0, block = group * blocks; i < count; ++i) {
      const int64_t size = blocks / count + (i < blocks % count);
      tiles.push_back(tile_of(conv, products, block, size, group * channels, (group + 1) * channels));
      block += size;
    }
  }
  return tiles;
}

/// Groups of other sizes than whole blocks: each block of filters reads the channels of all groups that it has filters of. Its weights for
/// the channels of other groups are zeros: a third more products for groups of 24 channels in blocks of 16.
std::vector<Tile> cut_blocks(const BlockedConv& conv, const BlockedProducts& products) {
  std::vector<Tile> tiles;
  const int64_t filters = conv.m / conv.group, channels = conv.c / conv.group;
  for (int64_t block = 0; block < conv.y_blocks(); ++block) {
    const int64_t first = block * conv.b, last = std::min(first + conv.b, conv.m) - 1;
    tiles.push_back(tile_of(conv, products, block, 1, first / filters * channels, (last / filters + 1) * channels));
  }
  return tiles;
}

/// A filter's weights are read in one run and scattered over a block that the first cache holds: read the other way, filters a power of two
/// apart would push each other out of it. `kOfWord`: channels.
template <int64_t kOfWord, class T>
void pack(const BlockedConv& conv, const std::vector<int64_t>& cells, const std::vector<Tile>& tiles, const float* weight, T* to) {
  const int64_t filters_of_group = conv.m / conv.group, of_group = conv.c / conv.group;
  for (const Tile& tile : tiles) {
    const int64_t first = tile.block * conv.b, filters = tile.blocks * conv.b, there = std::min(filters, conv.m - first);
    const int64_t begin = tile.x_block * conv.b + tile.skipped * kOfWord;
    const int64_t end = ((first + there - 1) / filters_of_group + 1) * of_group;
    for (int64_t c = begin, next = 0; c < end; c = next) {
      next = conv.plain_x ? end : std::min(end, (c / conv.b + 1) * conv.b);
      const int64_t size = (next - c + kOfWord - 1) / kOfWord * kOfWord * filters;
      for (size_t j = 0; j < cells.size(); ++j, to += size) {
        if (there < filters || (next - c) % kOfWord != 0 || !conv.whole_groups()) std::fill_n(to, size, T{});
        for (int64_t i = 0; i < there; ++i) {
          const int64_t own = (first + i) / filters_of_group * of_group;  // the first channel of the filter's group
          const float* const from = weight + (first + i) * of_group * conv.cells() + cells[j];
          for (int64_t channel = std::max(c, own); channel < std::min(next, own + of_group); ++channel) {
            T& target = to[((channel - c) / kOfWord * filters + i) * kOfWord + (channel - c) % kOfWord];
            const float value = from[(channel - own) * conv.cells()];
            if constexpr (kOfWord == 1)
              target = value;
            else
              target = to_bfloat16(value).bits;
          }
        }
      }
    }
  }
}

}  // namespace

std::vector<Tile> cut_tiles(const BlockedConv& conv, const BlockedProducts& products, int64_t cells) {
  std::vector<Tile> tiles = conv.whole_groups() ? cut_groups(conv, products) : cut_blocks(conv, products);
  int64_t weight = 0;
  for (Tile& tile : tiles) {
    tile.weight = weight;
    weight += tile.blocks * conv.b * tile.words * cells;
  }
  return tiles;
}

void pack_tiles(const BlockedConv& conv, const BlockedProducts& products, const std::vector<int64_t>& cells, const std::vector<Tile>& tiles,
                const float* weight, float* to) {
  if (products.channels == 1)
    pack<1>(conv, cells, tiles, weight, to);
  else
    pack<2>(conv, cells, tiles, weight, reinterpret_cast<uint16_t*>(to));
}

}  // namespace serin::kernels::cpu
