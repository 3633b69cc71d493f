// conv_blocked_winograd.cc: 3 x 3 convolutions of stride 1 with 4 or 2.25 times fewer multiplications (the mathematics: simd/blocked_winograd.h).
//
//   1  tiles of x are transformed:        v [position, c, tile]
//   2  for each position, a product:      u [position, m, c] * v = products [position, m, tile]      the pointwise loop of the direct convolution
//   3  products are transformed back, with bias, residual and clamp
//
// Step 1 is done for a chunk of tiles, 2 and 3 for a tile of filters after the other, so that v and the products stay in the second cache.
//
// Measured on one core of Zen 5 (1 MiB of second cache), microseconds, direct at the peak : m = 4 : m = 2, weights not in cache from the run before:
// 64 channels at 56x56 826 : 266 : 438; 128 at 28x28 826 : 247 : 430; 256 at 14x14 826 : 492 : 488; 512 at 7x7 826 : 927 : 765. The transformed weights,
// 4 or 1.8 times the plain ones, are what the last two wait for, so m = 4 is taken where they stay small.
//
// In bf16 step 1 rounds v and the weights are rounded after their transform. Relative L2 error for normally distributed operands, direct : m = 2 : m = 4:
// 2.4e-3 : 3.5e-3 : 9.6e-3; so m = 4 is left to f32. Microseconds, direct : m = 2, as above: 518 : 270; 467 : 236; 452 : 227; 468 : 524.

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include "kernels/cpu/conv_blocked.h"
#include "kernels/cpu/parallel.h"
#include "kernels/float16.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kDepth = 256;  // words of k for one product, as kPieceDepth of the direct convolution but for fewer pixels
constexpr int64_t kTransformedWords = 64 << 10;  // of v: 256 KiB
constexpr int64_t kFewTiles = 12;                // below that a product reads each weight for too few pixels
constexpr int64_t kLargestWeights4 = 1 << 20;    // floats of u for m = 4: 4 MiB

constexpr int64_t kLanes = 4;  // filters transformed at a time: every block (4, 8 or 16) is a multiple of it

/// u = G g G' for kLanes filters g [3, 3, lanes], by the matrix G of m.
template <int64_t m>
void transform_filters(const double* g, double* u) {
  // Row of a point x: [1, x, x^2] divided by the product of x's distances to the others.
  static constexpr double kP = 2. / 3, kQ = 3. / 2, kDp = 2 * kP * kP * (kP * kP - kQ * kQ), kDq = 2 * kQ * kQ * (kQ * kQ - kP * kP);
  static constexpr double kG4[6][3] = {{1, 0, 0},
                                       {1 / kDp, kP / kDp, kP * kP / kDp},
                                       {1 / kDp, -kP / kDp, kP * kP / kDp},
                                       {1 / kDq, kQ / kDq, kQ * kQ / kDq},
                                       {1 / kDq, -kQ / kDq, kQ * kQ / kDq},
                                       {0, 0, 1}};
  static constexpr double kG2[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
  const auto* matrix = m == 4 ? kG4 : kG2;
  constexpr int64_t kSize = m + 2, kRow = 3 * kLanes;
  for (int64_t r = 0; r < kSize; ++r) {
    double line[kRow];
    for (int64_t i = 0; i < kRow; ++i) line[i] = matrix[r][0] * g[i] + matrix[r][1] * g[kRow + i] + matrix[r][2] * g[2 * kRow + i];
    for (int64_t c = 0; c < kSize; ++c) {
      double* const to = u + (r * kSize + c) * kLanes;
      for (int64_t i = 0; i < kLanes; ++i)
        to[i] = matrix[c][0] * line[i] + matrix[c][1] * line[kLanes + i] + matrix[c][2] * line[2 * kLanes + i];
    }
  }
}

class WinogradKernel final : public Kernel {
 public:
  WinogradKernel(const Simd& simd, const BlockedProducts& loops, const OpDesc& desc, const BlockedConv& conv, PrepareContext& context,
                 const BlockedProducts::Winograd& transform)
      : loops_(loops),
        transform_(transform),
        conv_(conv),
        activation_(simd, conv.epilogue),
        positions_((transform.m + 2) * (transform.m + 2)),
        words_(loops.words(conv.b) * (conv.c / conv.b) + loops.words(conv.c % conv.b)),
        name_(std::string("conv_") + loops.dtype + "_winograd" + std::to_string(transform.m)),
        bias_(packed_bias(context, desc, conv)) {
    const std::string layout =
        "winograd" + std::to_string(transform.m) + "_b" + std::to_string(conv.b) + "x" + std::to_string(loops_.usual_blocks) + loops.dtype;
    weight_ =
        packed_floats(context, desc.inputs[1], layout, positions_ * words_ * conv.y_blocks() * conv.b, [&](const float* weight, float* to) {
          if (loops.channels == 1)
            transform_.m == 4 ? pack<4>(weight, to) : pack<2>(weight, to);
          else
            transform_.m == 4 ? pack<4>(weight, reinterpret_cast<uint16_t*>(to)) : pack<2>(weight, reinterpret_cast<uint16_t*>(to));
        });
    share_out(context.threads);
  }

  std::string_view name() const override { return name_; }
  uint32_t packed_inputs() const override { return conv_.bias ? 0b110 : 0b10; }
  size_t scratch_bytes() const override {
    const int64_t inputs = by_chunk_ ? workers_ : 1;
    return static_cast<size_t>(inputs * positions_ * v_step() + workers_ * positions_ * products_step()) * sizeof(float);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    auto* v = reinterpret_cast<float*>(stream.scratch);
    float* products = v + (by_chunk_ ? workers_ : 1) * positions_ * v_step();
    const auto products_of = [&](int worker) { return products + worker * positions_ * products_step(); };
    if (by_chunk_) {
      parallel_for(stream, chunks_, [&](int64_t chunk, int worker) {
        float* own_v = v + worker * positions_ * v_step();
        for (int64_t block = 0; block < conv_.x_blocks(); ++block) transform_block(in, chunk, block, own_v);
        for (int64_t block = 0; block < conv_.y_blocks(); block += loops_.usual_blocks)
          multiply(in, out, chunk, block, own_v, products_of(worker));
      });
    } else {
      const int64_t tiles = (conv_.y_blocks() + loops_.usual_blocks - 1) / loops_.usual_blocks;
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
        parallel_for(stream, conv_.x_blocks(), [&](int64_t block, int) { transform_block(in, chunk, block, v); });
        parallel_for(stream, tiles,
                     [&](int64_t tile, int worker) { multiply(in, out, chunk, tile * loops_.usual_blocks, v, products_of(worker)); });
      }
    }
    if (activation_.is_clamp()) return kOk;
    const int64_t plane = conv_.pixels() * conv_.b;
    parallel_for(stream, conv_.n * conv_.y_blocks(), [&](int64_t i, int) { activation_.finish(out[0].as<float>() + i * plane, plane); });
    return kOk;
  }

 private:
  /// u as [tile of filters, position, words of c, filters].
  template <int64_t m, class T>
  void pack(const float* weight, T* to) const {
    const BlockedConv& g = conv_;
    constexpr int64_t kPositions = (m + 2) * (m + 2);
    constexpr int64_t kOfWord = std::is_same_v<T, float> ? 1 : 2;
    std::array<double, 9 * kLanes> filter{};
    std::array<double, kPositions * kLanes> u{};
    for (int64_t first = 0; first < g.y_blocks(); first += loops_.usual_blocks) {
      const int64_t filters = std::min<int64_t>(loops_.usual_blocks, g.y_blocks() - first) * g.b;
      for (int64_t i = 0; i < filters; i += kLanes) {
        for (int64_t c = 0; c < words_ * kOfWord; ++c) {
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            const int64_t at = first * g.b + i + lane;
            for (int64_t cell = 0; cell < 9; ++cell)
              filter[static_cast<size_t>(cell * kLanes + lane)] =
                  at < g.m && c < g.c ? static_cast<double>(weight[(at * g.c + c) * 9 + cell]) : 0;
          }
          transform_filters<m>(filter.data(), u.data());
          for (int64_t p = 0; p < kPositions; ++p)
            for (int64_t lane = 0; lane < kLanes; ++lane)
              set(to[((p * words_ + c / kOfWord) * filters + i + lane) * kOfWord + c % kOfWord],
                  static_cast<float>(u[static_cast<size_t>(p * kLanes + lane)]));
        }
      }
      to += positions_ * words_ * filters * kOfWord;
    }
  }
  static void set(float& to, float x) { to = x; }
  static void set(uint16_t& to, float x) { to = to_bfloat16(x).bits; }

  void share_out(int threads) {
    workers_ = std::max(1, threads);
    const int64_t m = transform_.m;
    tiles_ = ((conv_.oh + m - 1) / m) * ((conv_.ow + m - 1) / m);
    const int64_t all = conv_.n * tiles_;
    const int64_t fits = std::max(kFewTiles, kTransformedWords / (positions_ * conv_.x_blocks() * of_block()) / 6 * 6);
    by_chunk_ = threads <= 1 || all >= threads * std::min(fits, 2 * kFewTiles);
    chunks_ = (all + fits - 1) / fits;
    if (by_chunk_) chunks_ = (chunks_ + workers_ - 1) / workers_ * workers_;
    chunk_ = (all + chunks_ - 1) / chunks_;
    chunks_ = (all + chunk_ - 1) / chunk_;
  }

  // An odd number of vectors: positions that lie a multiple of 4 KiB apart would share a few lines of the first cache.
  int64_t v_step() const { return odd(conv_.x_blocks() * chunk_) * of_block(); }
  int64_t products_step() const { return odd(loops_.usual_blocks * chunk_) * conv_.b; }
  static int64_t odd(int64_t vectors) { return vectors | 1; }
  int64_t of_block() const { return loops_.words(conv_.b); }

  /// Calls f(image, its first tile, how many, where they are in the chunk) for each image that has tiles in the chunk.
  template <class F>
  void each_image(int64_t chunk, F&& f) const {
    const int64_t end = std::min((chunk + 1) * chunk_, conv_.n * tiles_);
    for (int64_t tile = chunk * chunk_; tile < end;) {
      const int64_t image = tile / tiles_, count = std::min(end, (image + 1) * tiles_) - tile;
      f(image, tile - image * tiles_, count, tile - chunk * chunk_);
      tile += count;
    }
  }
  WinogradPlane plane(int64_t first, int64_t count, int64_t step) const {
    return {conv_.h, conv_.w, conv_.oh, conv_.ow, conv_.pad_h, conv_.pad_w, first, count, step};
  }

  void transform_block(Inputs in, int64_t chunk, int64_t block, float* v) const {
    const BlockedConv& g = conv_;
    each_image(chunk, [&](int64_t image, int64_t first, int64_t count, int64_t at) {
      const float* x = in[0].as<const float>() + (image * g.x_blocks() + block) * g.h * g.w * g.b;
      transform_.input(plane(first, count, v_step()), x, v + (block * chunk_ + at) * of_block());
    });
  }

  /// Steps 2 and 3 for the filters from `block` on.
  void multiply(Inputs in, Outputs out, int64_t chunk, int64_t block, const float* v, float* products) const {
    const BlockedConv& g = conv_;
    const int64_t tiles = std::min(chunk_, g.n * tiles_ - chunk * chunk_);
    const int blocks = static_cast<int>(std::min<int64_t>(loops_.usual_blocks, g.y_blocks() - block));
    const float* u = floats(weight_) + positions_ * words_ * block * g.b;
    for (int64_t p = 0; p < positions_; ++p) {
      for (int64_t c = 0; c < words_; c += kDepth) {
        const int64_t depth = std::min(kDepth, words_ - c);
        loops_.point({{u, products + p * products_step(), chunk_ * g.b, tiles, blocks, c == 0, false, {}, true},
                      v + p * v_step() + c * chunk_,
                      chunk_ * of_block(),
                      depth});
        u += depth * blocks * g.b;
      }
    }
    for (int q = 0; q < blocks; ++q) {
      each_image(chunk, [&](int64_t image, int64_t first, int64_t count, int64_t at) {
        const int64_t y_at = (image * g.y_blocks() + block + q) * g.pixels() * g.b;
        const BlockedFinish finish{g.bias ? floats(bias_) + (block + q) * g.b : nullptr,
                                   g.epilogue.residual ? in.back().as<const float>() + y_at : nullptr, activation_.low(),
                                   activation_.high()};
        transform_.output(plane(first, count, products_step()), products + (q * chunk_ + at) * g.b, finish, out[0].as<float>() + y_at);
      });
    }
  }

  const BlockedProducts& loops_;
  const BlockedProducts::Winograd transform_;
  const BlockedConv conv_;
  const BlockedActivation activation_;
  const int64_t positions_;
  const int64_t words_;  // of a pixel
  const std::string name_;
  PackedBuffer weight_, bias_;
  int64_t tiles_ = 0;               // of one image
  int64_t chunk_ = 0, chunks_ = 0;  // of the tiles of all images
  bool by_chunk_ = true;            // whole chunks are shared among the workers; else, the blocks of each
  int workers_ = 1;
};

}  // namespace

Prepared conv_blocked_winograd(const Simd& simd, const BlockedProducts& products, const OpDesc& desc, const BlockedConv& conv,
                               PrepareContext& context, std::string& why) {
  const bool fits = conv.kernel_h == 3 && conv.kernel_w == 3 && conv.has_stride_one() && conv.dilation_h == 1 && conv.dilation_w == 1;
  if (!fits || conv.group != 1 || conv.plain_x) return refuse(why, "not 3 x 3 cells of stride 1 over all channels");
  if (conv.c < 16 || conv.m < 16) return refuse(why, "too few channels for the transforms to save time");
  const int64_t smaller = std::min(conv.oh, conv.ow);
  const bool exact = products.channels == 1;
  if (exact && smaller >= 8 && 36 * conv.c * conv.m <= kLargestWeights4) {
    return std::make_unique<WinogradKernel>(simd, products, desc, conv, context, products.winograd4);
  }
  // So few tiles that the transformed weights are read from memory for almost nothing. In bf16, at 7 x 7, direct : m = 2: 256 channels 111 : 69 us,
  // 512 channels 468 : 524.
  const int64_t weights = 16 * products.words(conv.c) * conv.m;
  const bool few = ((conv.oh + 1) / 2) * ((conv.ow + 1) / 2) < 32 && weights > (exact ? kLargestWeights4 / 4 : kLargestWeights4);
  if (smaller >= 4 && !few) return std::make_unique<WinogradKernel>(simd, products, desc, conv, context, products.winograd2);
  return refuse(why, "too few pixels");
}

}  // namespace serin::kernels::cpu
