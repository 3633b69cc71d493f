// conv_blocked.h: The parts that convolutions on channel blocks share: their geometry, and their constants in the layout of the loops.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd/blocked.h"

namespace serin::kernels::cpu {

/// A convolution over two spatial axes whose y is [n, blocks, h, w, b]. So is x, unless `plain_x`.
struct BlockedConv {
  int64_t b;                      // channels of a block
  int64_t n, c, h, w, m, oh, ow;  // true channels
  int64_t group, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w, pad_end_h, pad_end_w;
  bool plain_x;
  bool bias;
  Epilogue epilogue;

  int64_t x_blocks() const { return (c + b - 1) / b; }
  int64_t y_blocks() const { return (m + b - 1) / b; }
  int64_t cells() const { return kernel_h * kernel_w; }
  int64_t pixels() const { return oh * ow; }
  int64_t multiplications() const { return n * pixels() * m * (c / group) * cells(); }
  bool depthwise() const { return group == c && group == m; }
  /// Each group is whole blocks, of x and of y.
  bool whole_groups() const { return group == 1 || (c / group % b == 0 && m / group % b == 0); }
  bool has_stride_one() const { return stride_h == 1 && stride_w == 1; }
  /// One cell and no padding, over plain pixels: every stride-th of them.
  bool is_strided_point() const { return cells() == 1 && pad_h == 0 && pad_w == 0 && pad_end_h == 0 && pad_end_w == 0 && !plain_x; }
  /// One block of channels, for the loops over single channels.
  BlockedPlane plane(const float* x, float* y) const {
    return {x, y, h, w, oh, ow, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w};
  }

  /// Nothing, with the reason in `why`, if `desc` is not such a convolution with constant weight and bias.
  static std::optional<BlockedConv> of(const OpDesc& desc, int64_t b, std::string& why);
};

/// The activation that follows: a clamp in the registers of the sum, or a loop over the result just stored.
class BlockedActivation {
 public:
  BlockedActivation(const Simd& simd, const Epilogue& epilogue);
  bool known() const { return clamped_ || loop_; }
  bool is_clamp() const { return clamped_; }
  float low() const { return low_; }
  float high() const { return high_; }
  void finish(float* y, int64_t n) const {
    if (!clamped_) loop_(y, y, n, alpha_, beta_);
  }

 private:
  bool clamped_;
  float low_, high_, alpha_, beta_;
  UnaryLoop loop_ = nullptr;
};

/// The bias with zeros up to whole blocks; null if there is none.
PackedBuffer packed_bias(PrepareContext& context, const OpDesc& desc, const BlockedConv& conv);

/// Each accepts the convolutions it is fast at; null, with the reason in `why`, for others.
Prepared conv_blocked_depthwise(const Simd& simd, const OpDesc& desc, const BlockedConv& conv, PrepareContext& context);
Prepared conv_blocked_winograd(const Simd& simd, const BlockedProducts& products, const OpDesc& desc, const BlockedConv& conv,
                               PrepareContext& context, std::string& why);
Prepared conv_blocked_direct(const Simd& simd, const BlockedProducts& products, const OpDesc& desc, const BlockedConv& conv,
                             PrepareContext& context);

}  // namespace serin::kernels::cpu
