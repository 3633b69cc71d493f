// conv_blocked_direct.cc: the convolution as its definition says, on channel blocks: y[m, pixel] = sum over channels and cells of weight and x.
//
// Work is cut three ways. Up to four blocks of filters are one tile, whose weights lie in the order in which they are read. A chunk of pixels, whose
// inputs fit in the second cache, passes by all tiles. And k is cut so that the weights of one piece stay in the first cache while the pixels of the
// chunk pass by; partial sums wait in y. Measured on one core of Zen 5 (AVX-512, 283 GFLOP/s at its peak): 265 to 283 GFLOP/s on the pointwise
// convolutions of ResNet-50 and EfficientNet-B0.
//
// A plain x (an image of few channels) is first copied with its padding as [h, w, c]: a row of cells is then one run of kernel_w * c floats.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cpu/conv_blocked.h"
#include "kernels/cpu/parallel.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPieceDepth = 128;        // of k: with four blocks of 16 floats, 32 KiB of weights
constexpr int64_t kChunkFloats = 64 << 10;  // of x: 256 KiB
constexpr int64_t kChunkPixels = 126;       // a multiple of the tiles of 6, 9 and 14 pixels
constexpr int64_t kWarmFloats = 64 << 10;   // of weights: what the second cache may still hold from the run before
constexpr int64_t kWorthSharing = 200'000;  // multiplications: about a microsecond, what waking another core costs
alignas(64) constexpr float kZeros[64] = {};

/// Up to simd.max_blocks blocks of filters of one group.
struct Tile {
  int64_t group, block;  // the first, counted over all groups
  int blocks;
  int64_t weight;  // offset in the packed weights
};

/// The cells of the window through which any output sees the image. Widely dilated windows over small images (DeepLab's) see it through few.
std::vector<int64_t> cells_that_see(const BlockedConv& conv) {
  const auto sees = [](int64_t outputs, int64_t stride, int64_t shift, int64_t size) {
    for (int64_t o = 0; o < outputs; ++o) {
      if (o * stride + shift >= 0 && o * stride + shift < size) return true;
    }
    return false;
  };
  std::vector<int64_t> cells;
  for (int64_t cell = 0; cell < conv.cells(); ++cell) {
    const int64_t down = cell / conv.kernel_w * conv.dilation_h - conv.pad_h, across = cell % conv.kernel_w * conv.dilation_w - conv.pad_w;
    if (sees(conv.oh, conv.stride_h, down, conv.h) && sees(conv.ow, conv.stride_w, across, conv.w)) cells.push_back(cell);
  }
  if (cells.empty() || conv.plain_x) {
    cells.resize(static_cast<size_t>(conv.cells()));
    std::iota(cells.begin(), cells.end(), int64_t{0});
  }
  return cells;
}

/// As even as can be: five blocks are three and two.
std::vector<Tile> cut(const BlockedConv& conv, int64_t cells, int64_t max_blocks) {
  std::vector<Tile> tiles;
  const int64_t blocks = conv.y_blocks() / conv.group, k = conv.c / conv.group * cells;
  const int64_t count = (blocks + max_blocks - 1) / max_blocks;
  int64_t weight = 0;
  for (int64_t group = 0; group < conv.group; ++group) {
    for (int64_t i = 0, block = group * blocks; i < count; ++i) {
      const int64_t size = blocks / count + (i < blocks % count);
      tiles.push_back({group, block, static_cast<int>(size), weight});
      block += size;
      weight += size * conv.b * k;
    }
  }
  return tiles;
}

/// weight [m, c / group, cells] in the order of the tiles; each is [c in blocks, cells, c of the block, filters], or [cells, c, filters] for a plain x.
/// A filter's weights are read in one run and scattered over a block that the first cache holds: read the other way, filters a power of two apart
/// would push each other out of it.
void pack(const BlockedConv& conv, const std::vector<int64_t>& cells, const std::vector<Tile>& tiles, const float* weight, float* to) {
  const int64_t channels = conv.c / conv.group, block = conv.plain_x ? channels : conv.b;
  for (const Tile& tile : tiles) {
    const int64_t first = tile.block * conv.b, filters = tile.blocks * conv.b;
    const int64_t there = std::min(filters, conv.m - first);
    for (int64_t c = 0; c < channels; c += block) {
      const int64_t count = std::min(block, channels - c);
      for (size_t j = 0; j < cells.size(); ++j) {
        float* const lines = to + static_cast<int64_t>(j) * count * filters;
        for (int64_t i = 0; i < there; ++i) {
          const float* const from = weight + ((first + i) * channels + c) * conv.cells() + cells[j];
          for (int64_t channel = 0; channel < count; ++channel) lines[channel * filters + i] = from[channel * conv.cells()];
        }
        for (int64_t channel = 0; channel < count; ++channel) std::fill_n(lines + channel * filters + there, filters - there, 0.f);
      }
      to += static_cast<int64_t>(cells.size()) * count * filters;
    }
  }
}

class DirectKernel final : public Kernel {
 public:
  DirectKernel(const Simd& simd, const OpDesc& desc, const BlockedConv& conv, PrepareContext& context)
      : loops_(*simd.blocked),
        conv_(conv),
        activation_(simd, conv.epilogue),
        cells_(cells_that_see(conv)),
        tiles_(cut(conv, static_cast<int64_t>(cells_.size()), simd.blocked->max_blocks)),
        bias_(packed_bias(context, desc, conv)) {
    const int64_t size = conv.y_blocks() * conv.b * (conv.c / conv.group) * static_cast<int64_t>(cells_.size());
    std::string layout = (conv.plain_x ? "image_b" : "direct_b") + std::to_string(conv.b) + "x" + std::to_string(loops_.max_blocks) + "_" +
                         std::to_string(conv.group);
    if (static_cast<int64_t>(cells_.size()) != conv.cells()) {
      for (const int64_t cell : cells_) layout += "," + std::to_string(cell);
    }
    fetch_ahead_ = size > kWarmFloats;
    weight_ = packed_floats(context, desc.inputs[1], layout, size,
                            [&](const float* weight, float* to) { pack(conv, cells_, tiles_, weight, to); });
    share_out(context.threads);
  }

  std::string_view name() const override {
    return conv_.plain_x ? "conv_f32_blocked_image" : conv_.is_point() ? "conv_f32_blocked_point" : "conv_f32_blocked_window";
  }
  uint32_t packed_inputs() const override { return conv_.bias ? 0b110 : 0b10; }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(image_floats()) * sizeof(float) + static_cast<size_t>(workers_ * index_count()) * sizeof(int64_t);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Stream alone{stream.scratch};
    const Stream& cores = conv_.multiplications() < kWorthSharing ? alone : stream;
    const int64_t images = conv_.plain_x ? 1 : conv_.n;  // at a time
    for (int64_t first = 0; first < conv_.n; first += images) {
      if (conv_.plain_x) copy_image(cores, in[0].as<const float>() + first * conv_.c * conv_.h * conv_.w, image(stream));
      parallel_for(cores, images * chunks_ * splits_, [&](int64_t task, int worker) {
        const int64_t split = task % splits_, chunk = task / splits_ % chunks_, i = first + task / splits_ / chunks_;
        run_chunk(stream, in, out, i, chunk, split, worker);
      });
    }
    return kOk;
  }

 private:
  void share_out(int threads) {
    workers_ = std::max(1, threads);
    const int64_t fits = kChunkFloats / (conv_.c / conv_.group) / kChunkPixels * kChunkPixels;
    chunk_ = std::min(conv_.pixels(), std::max(kChunkPixels, fits));
    const int64_t wanted = threads > 1 ? int64_t{8} * threads : 1;  // so that the last task is a small part of the whole
    if (conv_.n * ((conv_.pixels() + chunk_ - 1) / chunk_) < wanted) chunk_ = std::min(chunk_, kChunkPixels);
    chunks_ = (conv_.pixels() + chunk_ - 1) / chunk_;
    splits_ = std::clamp<int64_t>((wanted + conv_.n * chunks_ - 1) / (conv_.n * chunks_), 1, static_cast<int64_t>(tiles_.size()));
  }

  // Scratch: the padded image where x is plain, then for each worker what its chunk of pixels sees.
  int64_t padded_w() const { return (conv_.ow - 1) * conv_.stride_w + conv_.kernel_w; }
  int64_t padded_h() const { return (conv_.oh - 1) * conv_.stride_h + (conv_.kernel_h - 1) * conv_.dilation_h + 1; }
  int64_t image_floats() const { return conv_.plain_x ? (padded_h() * padded_w() * conv_.c + 15) / 16 * 16 : 0; }
  /// For a plain x a row of cells is one.
  int64_t cells() const { return conv_.plain_x ? conv_.kernel_h : static_cast<int64_t>(cells_.size()); }
  bool has_border() const {
    const BlockedConv& g = conv_;
    const auto inside = [](int64_t outputs, int64_t stride, int64_t kernel, int64_t dilation, int64_t pad, int64_t size) {
      return pad == 0 && (outputs - 1) * stride + (kernel - 1) * dilation < size;
    };
    return !g.plain_x && !(inside(g.oh, g.stride_h, g.kernel_h, g.dilation_h, g.pad_h, g.h) &&
                           inside(g.ow, g.stride_w, g.kernel_w, g.dilation_w, g.pad_w, g.w));
  }
  int64_t index_count() const {
    if (conv_.is_point() && !conv_.plain_x) return 0;
    const int64_t padded = (chunk_ + loops_.tile - 1) / loops_.tile * loops_.tile;
    return has_border() ? padded * cells() : padded + cells();
  }
  static float* image(const Stream& stream) { return reinterpret_cast<float*>(stream.scratch); }
  int64_t* index(const Stream& stream, int worker) const {
    return reinterpret_cast<int64_t*>(image(stream) + image_floats()) + worker * index_count();
  }

  /// x [c, h, w] as [padded h, padded w, c].
  void copy_image(const Stream& stream, const float* x, float* to) const {
    const BlockedConv& g = conv_;
    const int64_t width = padded_w();
    constexpr int64_t kRows = 16;
    parallel_for(stream, (padded_h() + kRows - 1) / kRows, [&](int64_t task, int) {
      for (int64_t row = task * kRows; row < std::min(padded_h(), (task + 1) * kRows); ++row) {
        float* line = to + row * width * g.c;
        const int64_t at = row - g.pad_h;
        if (at < 0 || at >= g.h) {
          std::fill_n(line, width * g.c, 0.f);
          continue;
        }
        const int64_t begin = std::min(g.pad_w, width), end = std::min(width, begin + g.w);
        std::fill_n(line, begin * g.c, 0.f);
        std::fill_n(line + end * g.c, (width - end) * g.c, 0.f);
        loops_.interleave(x + at * g.w, g.h * g.w, g.c, end - begin, line + begin * g.c);
      }
    });
  }

  /// Fills in what the pixels [first, first + count) see.
  void find_windows(int64_t first, int64_t count, int64_t* index, WindowPiece& piece) const {
    const BlockedConv& g = conv_;
    const int64_t step = g.plain_x ? g.c : g.b, width = g.plain_x ? padded_w() : g.w;
    if (!has_border()) {
      for (int64_t cell = 0; cell < cells(); ++cell) {
        const int64_t kh = g.plain_x ? cell : cell / g.kernel_w, kw = g.plain_x ? 0 : cell % g.kernel_w;
        index[cell] = (kh * g.dilation_h * width + kw * g.dilation_w) * step;
      }
      int64_t* pixel_at = index + cells();
      for (int64_t p = 0; p < count; ++p) {
        pixel_at[p] = ((first + p) / g.ow * g.stride_h * width + (first + p) % g.ow * g.stride_w) * step;
      }
      piece.cell_at = index, piece.pixel_at = pixel_at, piece.offsets = nullptr;
      return;
    }
    for (int64_t p = 0; p < count; ++p) {
      int64_t* to = index + p / loops_.tile * cells() * loops_.tile + p % loops_.tile;
      const int64_t top = (first + p) / g.ow * g.stride_h - g.pad_h, left = (first + p) % g.ow * g.stride_w - g.pad_w;
      for (const int64_t cell : cells_) {
        const int64_t ih = top + cell / g.kernel_w * g.dilation_h, iw = left + cell % g.kernel_w * g.dilation_w;
        const bool inside = ih >= 0 && ih < g.h && iw >= 0 && iw < g.w;
        *to = inside ? (ih * g.w + iw) * g.b : kOutside;
        to += loops_.tile;
      }
    }
    piece.offsets = index;
  }

  void run_chunk(const Stream& stream, Inputs in, Outputs out, int64_t i, int64_t chunk, int64_t split, int worker) const {
    const BlockedConv& g = conv_;
    const int64_t first = chunk * chunk_, count = std::min(chunk_, g.pixels() - first), y_step = g.pixels() * g.b;
    WindowPiece windows{};
    if (!g.is_point() || g.plain_x) find_windows(first, count, index(stream, worker), windows);
    windows.cells = cells();
    windows.zeros = kZeros;
    const auto tiles = static_cast<int64_t>(tiles_.size());
    for (int64_t t = tiles * split / splits_; t < tiles * (split + 1) / splits_; ++t) {
      const Tile& tile = tiles_[static_cast<size_t>(t)];
      const int64_t at = (i * g.y_blocks() + tile.block) * y_step + first * g.b;
      const BlockedFinish finish{g.bias ? floats(bias_) + tile.block * g.b : nullptr,
                                 g.epilogue.residual ? in.back().as<const float>() + at : nullptr, activation_.low(), activation_.high()};
      windows.to = {floats(weight_) + tile.weight, out[0].as<float>() + at, y_step, count, tile.blocks, true, false, finish, fetch_ahead_};
      if (g.plain_x)
        sum_image(image(stream), windows);
      else
        sum_blocks(in[0].as<const float>() + (i * g.x_blocks() + tile.group * g.x_blocks() / g.group) * g.h * g.w * g.b, first, windows);
      for (int q = 0; q < tile.blocks; ++q) activation_.finish(windows.to.y + q * y_step, count * g.b);
    }
  }

  void sum_image(const float* x, WindowPiece& windows) const {
    windows.to.last = true;
    windows.x = x, windows.x_step = 0, windows.blocks = 1;
    windows.run = windows.last_run = conv_.kernel_w * conv_.c;
    loops_.window(windows);
  }

  /// All channels of a group, piece by piece.
  void sum_blocks(const float* x, int64_t first, WindowPiece& windows) const {
    const BlockedConv& g = conv_;
    const int64_t channels = g.c / g.group, plane = g.h * g.w * g.b, blocks = (channels + g.b - 1) / g.b;
    const int64_t depth = std::max<int64_t>(1, kPieceDepth / (g.b * cells()));  // blocks of a piece
    for (int64_t block = 0; block < blocks; block += depth) {
      const int64_t count = std::min(depth, blocks - block);
      const int64_t end = std::min(channels, (block + count) * g.b);
      windows.to.first = block == 0;
      windows.to.last = end == channels;
      if (g.is_point()) {
        loops_.point({windows.to, x + block * plane + first * g.b, plane, end - block * g.b});
      } else {
        windows.x = x + block * plane, windows.x_step = plane, windows.blocks = count;
        windows.run = g.b, windows.last_run = end - (block + count - 1) * g.b;
        loops_.window(windows);
      }
      windows.to.weight += (end - block * g.b) * cells() * windows.to.blocks * g.b;
    }
  }

  const BlockedLoops& loops_;
  const BlockedConv conv_;
  const BlockedActivation activation_;
  const std::vector<int64_t> cells_;  // that see anything
  const std::vector<Tile> tiles_;
  PackedBuffer weight_, bias_;
  int64_t chunk_ = 0, chunks_ = 0;  // of pixels
  int64_t splits_ = 1;              // of the tiles
  int workers_ = 1;
  bool fetch_ahead_;
};

}  // namespace

Prepared conv_blocked_direct(const Simd& simd, const OpDesc& desc, const BlockedConv& conv, PrepareContext& context) {
  return std::make_unique<DirectKernel>(simd, desc, conv, context);
}

}  // namespace serin::kernels::cpu
