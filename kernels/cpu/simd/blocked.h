// blocked.h: The loops over activations in channel blocks, as a table next to Simd (simd.h explains this interface).
//
// A blocked tensor is [n, c / b, h, w, b], b = the floats of one vector. A vector contains b channels of one pixel, whatever the size of
// the image. So there are no borders inside a vector, and a row of pixels is contiguous memory. Channels after the last have zero weights
// and are computed along with the others.
#pragma once

#include <cstdint>

namespace serin::kernels::cpu {

/// Processing of a sum: bias and residual start it, clamp ends it.
struct BlockedFinish {
  const float* bias;      // [blocks * b] or null
  const float* residual;  // like y, or null
  float low, high;
};

/// A piece of a convolution: y[blocks, pixels, b] = sum over the words `k` of x and weight. Long sums are split into pieces; y keeps the
/// partial sums.
struct BlockedPiece {
  const float* weight;  // [k, blocks * b]
  float* y;             // blocks are y_step apart
  int64_t y_step;
  int64_t pixels;
  int blocks;  // at most max_blocks
  bool first, last;
  BlockedFinish finish;
  bool fetch_next = false;  // the next weights in memory are those of the next piece, and probably not in cache
};

/// x [blocks, pixels, words of a block], blocks x_step apart: a matrix product. `k` words need not be whole blocks.
struct PointPiece {
  BlockedPiece to;
  const float* x;
  int64_t x_step, k;
};

/// Output pixel p reads through cell t the `run` words at x + pixel_at[p] + cell_at[t] of each of `blocks` blocks (`last_run` of the last
/// one). If windows overlap the border, `offsets` has the address for each tile of pixels and cell instead, and kOutside means zeros. k =
/// blocks, cells, run, in this order.
struct WindowPiece {
  BlockedPiece to;
  const float* x;
  int64_t x_step, blocks, run, last_run;
  int64_t cells;
  const int64_t* pixel_at;  // [pixels]
  const int64_t* cell_at;   // [cells]
  const int64_t* offsets;   // [pixels / tile, cells, tile], or null
  const float* zeros;       // [run]
};
inline constexpr int64_t kOutside = INT64_MIN;

/// One block of channels of an image, with the geometry of the window.
struct BlockedPlane {
  const float* x;  // [h, w, b]
  float* y;        // [oh, ow, b]
  int64_t h, w, oh, ow;
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
};

/// The last rows of x that a depthwise convolution has read, with zeros for the padding on both sides. It fits the L1 cache, and the loops
/// need no borders. Row i is at i % rows; `ready` rows of x have been copied into it.
struct RowRing {
  float* data;  // [rows, width, b]; null: not used
  int64_t rows, width;
  int64_t ready;  // 0 at the start of a plane
};

/// The tiles [first, first + count) of one block of channels, counted along the rows of tiles. In the transformed form, positions are
/// tile_step apart.
struct WinogradPlane {
  int64_t h, w, oh, ow, pad_h, pad_w;
  int64_t first, count;
  int64_t step;  // floats between two of the (m + 2)^2 positions
};

/// The products of convolutions. They read x and weights in words: one channel, or in bf16 two adjacent channels in the space of one float.
struct BlockedProducts {
  const char* dtype;
  int64_t channels;  ///< of a word
  int max_blocks;    ///< of one piece
  int usual_blocks;  ///< of most pieces: the fastest number
  int64_t tile;      ///< pixels of a window tile
  void (*point)(const PointPiece& piece);
  void (*window)(const WindowPiece& piece);
  /// Plain x [c, n], its rows x_step apart, as words [n, words of c].
  void (*interleave)(const float* x, int64_t x_step, int64_t c, int64_t n, float* words);
  /// Every `stride`th pixel of a block as words.
  void (*copy)(const float* x, int64_t stride, int64_t pixels, float* words);

  /// Winograd F(m x m, 3 x 3), m = 4 and 2: y = A' [(G g G') . (B' d B)] A.
  struct Winograd {
    int64_t m;
    void (*input)(const WinogradPlane& plane, const float* x, float* v);
    void (*output)(const WinogradPlane& plane, const float* products, const BlockedFinish& finish, float* y);
  } winograd4, winograd2;

  int64_t words(int64_t c) const { return (c + channels - 1) / channels; }
};

struct BlockedLoops {
  int64_t width;  ///< b
  BlockedProducts products;
  /// Rows [row, row + rows) of y, in ascending order from one call to the next; weight [cells, b], bias [b] or null.
  void (*depthwise)(const BlockedPlane& plane, const float* weight, const float* bias, float low, float high, int64_t row, int64_t rows,
                    RowRing& ring);
  void (*pool_max)(const BlockedPlane& plane);
  /// Sums over the cells inside, divided by their number; with `count_pad` divided by the number of cells inside image and padding.
  void (*pool_mean)(const BlockedPlane& plane, bool count_pad, int64_t pad_end_h, int64_t pad_end_w);
  /// y[b] = mean of x[pixels, b].
  void (*mean)(const float* x, float* y, int64_t pixels);
  /// y[pixels, b] = x[pixels, b] * factor[b].
  void (*scale)(const float* x, const float* factor, float* y, int64_t pixels);
  /// y[pixels, b] = x[pixels, b] * factor[b] + shift[b].
  void (*affine)(const float* x, const float* factor, const float* shift, float* y, int64_t pixels);
  /// x [c, pixels] <-> y [pixels, b], c <= b; channels from c on are zeros.
  void (*from_plain)(const float* x, int64_t x_step, int64_t c, int64_t pixels, float* y);
  void (*to_plain)(const float* x, int64_t c, int64_t pixels, float* y, int64_t y_step);
};

extern const BlockedLoops kBlockedPortable;
extern const BlockedLoops kBlockedAvx2;  // x86-64 only, as the next
extern const BlockedLoops kBlockedAvx512;
extern const BlockedProducts kBlockedBf16Avx512;

/// Null if this machine has no instruction for it.
const BlockedProducts* bf16_products();

}  // namespace serin::kernels::cpu
