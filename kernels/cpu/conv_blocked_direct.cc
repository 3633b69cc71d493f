// conv_blocked_direct.cc: the convolution as its definition says, on channel blocks: y[m, pixel] = sum over channels and cells of weight and x.
//
// Work is cut three ways. Up to four blocks of filters are one tile, whose weights lie in the order in which they are read. A chunk of pixels, whose
// inputs fit in the second cache, passes by all tiles. And k is cut so that the weights of one piece stay in the first cache while the pixels of the
// chunk pass by; partial sums wait in y. Measured on one core of Zen 5 (AVX-512, 283 GFLOP/s at its peak): 265 to 283 GFLOP/s on the pointwise
// convolutions of ResNet-50 and EfficientNet-B0.
//
// A plain x (an image of few channels) is first copied with its padding as [h, w, c]: a row of cells is then one run of kernel_w * c floats.
//
// In bf16 the products read words of two channels (simd/blocked.h). The part of x that a chunk of pixels reads is first rounded into
// scratch, and all tiles read it from there. All else is the same, and x and y stay in f32. A pointwise convolution with a stride also
// copies the pixels that it reads: with blocks of eight floats, half of each line in the second cache would be of pixels that nobody reads.

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/conv_blocked.h"
#include "kernels/cpu/conv_blocked_tiles.h"
#include "kernels/cpu/parallel.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPieceDepth = 128;        // words of k: with four blocks of 16 floats, 32 KiB of weights
constexpr int64_t kNarrowPieceDepth = 256;  // with two blocks of 8 floats: 16 KiB
constexpr int64_t kChunkWords = 64 << 10;   // of x: 256 KiB
constexpr int64_t kChunkPixels = 126;       // a multiple of the tiles of 6, 9 and 14 pixels
constexpr int64_t kWarmWords = 64 << 10;    // of weights: what the second cache may still hold from the run before
constexpr int64_t kWorthSharing = 200'000;  // multiplications: about a microsecond, what waking another core costs
alignas(64) constexpr float kZeros[64] = {};

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

class DirectKernel final : public Kernel {
 public:
  DirectKernel(const Simd& simd, const BlockedProducts& products, const OpDesc& desc, const BlockedConv& conv, PrepareContext& context)
      : products_(products),
        conv_(conv),
        activation_(simd, conv.epilogue),
        cells_(cells_that_see(conv)),
        point_(conv.is_strided_point()),
        tiles_(cut_tiles(conv, products, static_cast<int64_t>(cells_.size()))),
        words_(std::ranges::max(tiles_, {}, &Tile::words).words),
        name_(std::string("conv_") + products.dtype +
              (conv.plain_x ? "_blocked_image"
               : point_     ? "_blocked_point"
                            : "_blocked_window")),
        bias_(packed_bias(context, desc, conv)) {
    const Tile& last = tiles_.back();
    const int64_t size = last.weight + last.blocks * conv.b * last.words * static_cast<int64_t>(cells_.size());
    std::string layout = (conv.plain_x ? "image_b" : "direct_b") + std::to_string(conv.b) + "x" + std::to_string(products.max_blocks) +
                         "_" + std::to_string(conv.group) + products.dtype;
    if (static_cast<int64_t>(cells_.size()) != conv.cells()) {
      for (const int64_t cell : cells_) layout += "," + std::to_string(cell);
    }
    fetch_ahead_ = size > kWarmWords;
    weight_ = packed_floats(context, desc.inputs[1], layout, size,
                            [&](const float* weight, float* to) { pack_tiles(conv, products, cells_, tiles_, weight, to); });
    share_out(context.threads);
  }

  std::string_view name() const override { return name_; }
  uint32_t packed_inputs() const override { return conv_.bias ? 0b110 : 0b10; }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(image_floats() + slots_ * copied_floats()) * sizeof(float) +
           static_cast<size_t>(workers_ * index_count()) * sizeof(int64_t);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Stream alone{stream.scratch};
    const Stream& cores = conv_.multiplications() < kWorthSharing ? alone : stream;
    const int64_t images = conv_.plain_x ? 1 : conv_.n;  // at a time
    for (int64_t first = 0; first < conv_.n; first += images) {
      if (conv_.plain_x) copy_image(cores, in[0].as<const float>() + first * conv_.c * conv_.h * conv_.w, image(stream));
      if (copies() && splits_ > 1) {
        parallel_for(cores, conv_.n * chunks_ * conv_.x_blocks(), [&](int64_t task, int) {
          const int64_t block = task % conv_.x_blocks(), slot = task / conv_.x_blocks();
          copy(in, slot / chunks_, slot % chunks_, block, copied(stream, slot));
        });
      }
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
    const int64_t fits = kChunkWords / words_ / kChunkPixels * kChunkPixels;
    chunk_ = std::min(conv_.pixels(), std::max(kChunkPixels, fits));
    const int64_t wanted = threads > 1 ? int64_t{8} * threads : 1;  // so that the last task is a small part of the whole
    if (conv_.n * ((conv_.pixels() + chunk_ - 1) / chunk_) < wanted) chunk_ = std::min(chunk_, kChunkPixels);
    chunks_ = (conv_.pixels() + chunk_ - 1) / chunk_;
    splits_ = std::clamp<int64_t>((wanted + conv_.n * chunks_ - 1) / (conv_.n * chunks_), 1, static_cast<int64_t>(tiles_.size()));
    slots_ = splits_ > 1 ? conv_.n * chunks_ : workers_;
  }

  // Scratch: the padded image where x is plain; what chunks see of a copied x, for each worker or, where several tasks share a chunk, for each chunk;
  // then for each worker where the windows of its pixels lie.
  int64_t padded_w() const { return (conv_.ow - 1) * conv_.stride_w + conv_.kernel_w; }
  int64_t padded_h() const { return (conv_.oh - 1) * conv_.stride_h + (conv_.kernel_h - 1) * conv_.dilation_h + 1; }
  int64_t image_floats() const { return conv_.plain_x ? (padded_h() * padded_w() * products_.words(conv_.c) + 15) / 16 * 16 : 0; }
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
    if (point_) return 0;
    const int64_t padded = (chunk_ + products_.tile - 1) / products_.tile * products_.tile;
    return has_border() ? padded * cells() : padded + cells();
  }
  static float* image(const Stream& stream) { return reinterpret_cast<float*>(stream.scratch); }
  int64_t* index(const Stream& stream, int worker) const {
    return reinterpret_cast<int64_t*>(copied(stream, slots_)) + worker * index_count();
  }

  /// A piece of x as the products read it.
  struct Seen {
    const float* x;   // its first block
    int64_t step;     // words from a block to the next
    int64_t skipped;  // pixels of the image before the first of x
  };
  bool copies() const { return !conv_.plain_x && (products_.channels > 1 || (point_ && !conv_.has_stride_one())); }
  float* copied(const Stream& stream, int64_t slot) const { return image(stream) + image_floats() + slot * copied_floats(); }
  int64_t copied_floats() const { return copies() ? conv_.x_blocks() * copied_step() : 0; }
  int64_t copied_step() const {
    if (point_) return chunk_ * products_.words(conv_.b);
    const int64_t rows = std::min(conv_.oh, (chunk_ + conv_.ow - 2) / conv_.ow + 1);
    return std::min(conv_.h, (rows - 1) * conv_.stride_h + window_rows()) * conv_.w * products_.words(conv_.b);
  }
  int64_t window_rows() const { return (conv_.kernel_h - 1) * conv_.dilation_h + 1; }
  /// The first row of the image that a chunk sees, and the row after the last.
  std::pair<int64_t, int64_t> rows_of(int64_t chunk) const {
    const int64_t first = chunk * chunk_, last = std::min(first + chunk_, conv_.pixels()) - 1;
    const int64_t begin = std::clamp<int64_t>(first / conv_.ow * conv_.stride_h - conv_.pad_h, 0, conv_.h);
    return {begin, std::clamp(last / conv_.ow * conv_.stride_h - conv_.pad_h + window_rows(), begin, conv_.h)};
  }

  /// What a chunk sees of a block. Of a strided pointwise convolution that is every stride-th pixel only.
  void copy(Inputs in, int64_t i, int64_t chunk, int64_t block, float* to) const {
    const BlockedConv& g = conv_;
    const float* x = in[0].as<const float>() + (i * g.x_blocks() + block) * g.h * g.w * g.b;
    to += block * copied_step();
    if (!point_) {
      const auto [begin, end] = rows_of(chunk);
      return products_.copy(x + begin * g.w * g.b, 1, (end - begin) * g.w, to);
    }
    const int64_t first = chunk * chunk_, end = std::min(first + chunk_, g.pixels());
    if (g.has_stride_one()) return products_.copy(x + first * g.b, 1, end - first, to);
    for (int64_t p = first; p < end;) {
      const int64_t column = p % g.ow, count = std::min(g.ow - column, end - p);
      products_.copy(x + (p / g.ow * g.stride_h * g.w + column * g.stride_w) * g.b, g.stride_w, count, to);
      p += count, to += count * products_.words(g.b);
    }
  }

  Seen seen(const Stream& stream, Inputs in, int64_t i, int64_t chunk, int worker) const {
    const BlockedConv& g = conv_;
    if (!copies()) return {in[0].as<const float>() + i * g.x_blocks() * g.h * g.w * g.b, g.h * g.w * g.b, 0};
    float* const x = copied(stream, splits_ > 1 ? i * chunks_ + chunk : worker);
    if (splits_ == 1) {
      for (int64_t block = 0; block < g.x_blocks(); ++block) copy(in, i, chunk, block, x);
    }
    return {x, copied_step(), point_ ? chunk * chunk_ : rows_of(chunk).first * g.w};
  }

  /// x [c, h, w] as [padded h, padded w, words of c].
  void copy_image(const Stream& stream, const float* x, float* to) const {
    const BlockedConv& g = conv_;
    const int64_t width = padded_w(), words = products_.words(g.c);
    constexpr int64_t kRows = 16;
    parallel_for(stream, (padded_h() + kRows - 1) / kRows, [&](int64_t task, int) {
      for (int64_t row = task * kRows; row < std::min(padded_h(), (task + 1) * kRows); ++row) {
        float* line = to + row * width * words;
        const int64_t at = row - g.pad_h;
        if (at < 0 || at >= g.h) {
          std::fill_n(line, width * words, 0.f);
          continue;
        }
        const int64_t begin = std::min(g.pad_w, width), end = std::min(width, begin + g.w);
        std::fill_n(line, begin * words, 0.f);
        std::fill_n(line + end * words, (width - end) * words, 0.f);
        products_.interleave(x + at * g.w, g.h * g.w, g.c, end - begin, line + begin * words);
      }
    });
  }

  /// Fills in what the pixels [first, first + count) see, x beginning after `skipped` pixels of the image.
  void find_windows(int64_t first, int64_t count, int64_t skipped, int64_t* index, WindowPiece& piece) const {
    const BlockedConv& g = conv_;
    const int64_t step = products_.words(g.plain_x ? g.c : g.b), width = g.plain_x ? padded_w() : g.w;
    if (!has_border()) {
      for (int64_t cell = 0; cell < cells(); ++cell) {
        const int64_t kh = g.plain_x ? cell : cell / g.kernel_w, kw = g.plain_x ? 0 : cell % g.kernel_w;
        index[cell] = (kh * g.dilation_h * width + kw * g.dilation_w) * step;
      }
      int64_t* pixel_at = index + cells();
      for (int64_t p = 0, row = first / g.ow, column = first % g.ow; p < count; ++p) {
        pixel_at[p] = (row * g.stride_h * width + column * g.stride_w - skipped) * step;
        if (++column == g.ow) column = 0, ++row;
      }
      piece.cell_at = index, piece.pixel_at = pixel_at, piece.offsets = nullptr;
      return;
    }
    for (int64_t p = 0; p < count; ++p) {
      int64_t* to = index + p / products_.tile * cells() * products_.tile + p % products_.tile;
      const int64_t top = (first + p) / g.ow * g.stride_h - g.pad_h, left = (first + p) % g.ow * g.stride_w - g.pad_w;
      for (const int64_t cell : cells_) {
        const int64_t ih = top + cell / g.kernel_w * g.dilation_h, iw = left + cell % g.kernel_w * g.dilation_w;
        const bool inside = ih >= 0 && ih < g.h && iw >= 0 && iw < g.w;
        *to = inside ? (ih * g.w + iw - skipped) * step : kOutside;
        to += products_.tile;
      }
    }
    piece.offsets = index;
  }

  void run_chunk(const Stream& stream, Inputs in, Outputs out, int64_t i, int64_t chunk, int64_t split, int worker) const {
    const BlockedConv& g = conv_;
    const int64_t first = chunk * chunk_, count = std::min(chunk_, g.pixels() - first), y_step = g.pixels() * g.b;
    const Seen x = g.plain_x ? Seen{} : seen(stream, in, i, chunk, worker);
    WindowPiece windows{};
    if (!point_) find_windows(first, count, x.skipped, index(stream, worker), windows);
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
        sum_channels(x, tile, first, windows);
      for (int q = 0; q < tile.blocks; ++q) activation_.finish(windows.to.y + q * y_step, count * g.b);
    }
  }

  void sum_image(const float* x, WindowPiece& windows) const {
    windows.to.last = true;
    windows.x = x, windows.x_step = 0, windows.blocks = 1;
    windows.run = windows.last_run = conv_.kernel_w * products_.words(conv_.c);
    products_.window(windows);
  }

  /// All channels of a tile, piece by piece. The first block may be entered in the middle; then it is a piece by itself.
  void sum_channels(const Seen& x, const Tile& tile, int64_t first, WindowPiece& windows) const {
    const int64_t words = products_.words(conv_.b), whole = products_.usual_blocks * conv_.b < 64 ? kNarrowPieceDepth : kPieceDepth;
    const int64_t depth = std::max<int64_t>(1, whole / (words * cells()));  // blocks of a piece
    const float* at = x.x + tile.x_block * x.step;
    for (int64_t done = 0, skipped = tile.skipped; done < tile.words; skipped = 0) {
      const int64_t run = words - skipped, count = skipped > 0 ? 1 : depth;
      const int64_t k = std::min(run * count, tile.words - done), blocks = (k + run - 1) / run;
      windows.to.first = done == 0;
      windows.to.last = done + k == tile.words;
      if (point_) {
        products_.point({windows.to, at + skipped + (first - x.skipped) * words, x.step, k});
      } else {
        windows.x = at + skipped, windows.x_step = x.step, windows.blocks = blocks;
        windows.run = run, windows.last_run = k - (blocks - 1) * run;
        products_.window(windows);
      }
      windows.to.weight += k * cells() * windows.to.blocks * conv_.b;
      at += blocks * x.step;
      done += k;
    }
  }

  const BlockedProducts& products_;
  const BlockedConv conv_;
  const BlockedActivation activation_;
  const std::vector<int64_t> cells_;  // that see anything
  const bool point_;                  // a product of matrices
  const std::vector<Tile> tiles_;
  const int64_t words_;  // of a cell of a filter, in the tile that has most
  const std::string name_;
  PackedBuffer weight_, bias_;
  int64_t chunk_ = 0, chunks_ = 0;  // of pixels
  int64_t splits_ = 1;              // of the tiles
  int64_t slots_ = 1;               // for copied chunks
  int workers_ = 1;
  bool fetch_ahead_;
};

}  // namespace

Prepared conv_blocked_direct(const Simd& simd, const BlockedProducts& products, const OpDesc& desc, const BlockedConv& conv,
                             PrepareContext& context) {
  return std::make_unique<DirectKernel>(simd, products, desc, conv, context);
}

}  // namespace serin::kernels::cpu
