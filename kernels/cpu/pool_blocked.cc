// pool_blocked.cc: Pool and the mean of whole images on channel blocks: each block of each image is by itself.

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/cpu/conv_blocked.h"
#include "kernels/cpu/parallel.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

Prepared pool_blocked(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Pool& op = std::get<Pool>(desc.op);
  const Shape& x = desc.inputs[0].shape;
  const Shape& y = desc.outputs[0].shape;
  const BlockedLoops& loops = *simd.blocked;
  if (x.rank() != 5 || y.rank() != 5 || op.kernel.size() != 2 || x[4] != loops.width) return refuse(why, "not in channel blocks");
  if (op.strides.size() != 2 || op.dilations.size() != 2 || op.pads.size() != 4) return refuse(why, "only two spatial axes");
  if (op.strides[0] < 1 || op.strides[1] < 1 || op.dilations[0] < 1 || op.dilations[1] < 1)
    return refuse(why, "a stride or dilation below 1");
  const int64_t blocks = y[0] * y[1], x_step = x[2] * x[3] * x[4], y_step = y[2] * y[3] * y[4];
  const BlockedPlane plane{
      nullptr,         nullptr,         x[2],       x[3],      y[2], y[3], op.kernel[0], op.kernel[1], op.strides[0], op.strides[1],
      op.dilations[0], op.dilations[1], op.pads[0], op.pads[1]};
  return make_kernel([op, plane, blocks, x_step, y_step, &loops](Stream& stream, Inputs in, Outputs out) -> Fault {
    parallel_for(stream, blocks, [&](int64_t i, int) {
      BlockedPlane at = plane;
      at.x = in[0].as<const float>() + i * x_step;
      at.y = out[0].as<float>() + i * y_step;
      if (op.average)
        loops.pool_mean(at, op.count_include_pad, op.pads[2], op.pads[3]);
      else
        loops.pool_max(at);
    });
    return kOk;
  });
}

Prepared mean_blocked(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Reduce& op = std::get<Reduce>(desc.op);
  const Shape& x = desc.inputs[0].shape;
  const BlockedLoops& loops = *simd.blocked;
  const bool fits = op.fn == ReduceFn::kMean && x.rank() == 5 && x[4] == loops.width && op.axes == std::vector<int64_t>{2, 3};
  if (!fits || is_bounded(desc)) return refuse(why, "not the mean of images in channel blocks");
  const int64_t blocks = x[0] * x[1], pixels = x[2] * x[3];
  return make_kernel([blocks, pixels, &loops](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Stream alone{stream.scratch};
    parallel_for(blocks * pixels < 4096 ? alone : stream, blocks, [&](int64_t i, int) {
      loops.mean(in[0].as<const float>() + i * pixels * loops.width, out[0].as<float>() + i * loops.width, pixels);
    });
    return kOk;
  });
}

/// x [n, blocks, h, w, b] times a factor for each channel [n, blocks, 1, 1, b]: what squeeze-and-excitation ends with.
Prepared scale_blocked(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why) || is_bounded(desc)) return refuse(why, "f32 of fixed shapes only");
  const BlockedLoops& loops = *simd.blocked;
  const Shape& y = desc.outputs[0].shape;
  if (std::get<Binary>(desc.op).fn != BinaryFn::kMul || desc.inputs.size() != 2 || y.rank() != 5 || y[4] != loops.width) {
    return refuse(why, "not a product in channel blocks");
  }
  const Shape factor{y[0], y[1], 1, 1, y[4]};
  const size_t at = desc.inputs[0].shape == factor ? 0 : 1;  // of the factor
  if (!(desc.inputs[at].shape == factor) || !(desc.inputs[1 - at].shape == y)) return refuse(why, "not one factor for each channel");
  const int64_t blocks = y[0] * y[1], pixels = y[2] * y[3];
  return make_kernel([blocks, pixels, at, &loops](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Stream alone{stream.scratch};
    parallel_for(blocks * pixels < 4096 ? alone : stream, blocks, [&](int64_t i, int) {
      const int64_t plane = i * pixels * loops.width;
      loops.scale(in[1 - at].as<const float>() + plane, in[at].as<const float>() + i * loops.width, out[0].as<float>() + plane, pixels);
    });
    return kOk;
  });
}

/// With known statistics: x * factor + shift, one each for a channel. Those that fill up the last block are zeros.
Prepared batch_norm_blocked(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why) || is_bounded(desc)) return refuse(why, "f32 of fixed shapes only");
  const BlockedLoops& loops = *simd.blocked;
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() != 5 || x[4] != loops.width || desc.inputs.size() != 5) return refuse(why, "not in channel blocks");
  const int64_t c = desc.inputs[1].shape.elements();
  for (size_t i = 1; i < 5; ++i) {
    if (!desc.inputs[i].constant || desc.inputs[i].shape.elements() != c) return refuse(why, "statistics are not known at load");
  }
  // A volume [n, c, depth, height, width] may end in the width of a block, too: its second axis is c, that of blocks is shorter (or c is 1).
  if (x[1] == c) return refuse(why, "a volume, not in channel blocks");
  if (c > x[1] * x[4]) return refuse(why, "more statistics than channels");
  const auto at = [&](size_t input, int64_t channel) { return static_cast<double>(desc.inputs[input].constant.as<float>()[channel]); };
  const double epsilon = static_cast<double>(std::get<BatchNorm>(desc.op).epsilon);
  std::vector<float> factor(static_cast<size_t>(x[1] * x[4]), 0.f), shift = factor;
  for (int64_t channel = 0; channel < c; ++channel) {
    const double f = at(1, channel) / std::sqrt(at(4, channel) + epsilon);
    factor[static_cast<size_t>(channel)] = static_cast<float>(f);
    shift[static_cast<size_t>(channel)] = static_cast<float>(at(2, channel) - at(3, channel) * f);
  }
  const int64_t blocks = x[1], images = x[0], pixels = x[2] * x[3];
  return make_kernel([=, &loops, factor = std::move(factor), shift = std::move(shift)](Stream& stream, Inputs in, Outputs out) -> Fault {
    parallel_for(stream, images * blocks, [&](int64_t i, int) {
      const int64_t plane = i * pixels * loops.width, channel = i % blocks * loops.width;
      loops.affine(in[0].as<const float>() + plane, factor.data() + channel, shift.data() + channel, out[0].as<float>() + plane, pixels);
    });
    return kOk;
  });
}

Prepared channel_blocks(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why) || is_bounded(desc)) return refuse(why, "f32 of fixed shapes only");
  const BlockedLoops& loops = *simd.blocked;
  const bool to_blocks = desc.outputs[0].shape.rank() == 5;
  const Shape& plain = to_blocks ? desc.inputs[0].shape : desc.outputs[0].shape;
  const Shape& blocked = to_blocks ? desc.outputs[0].shape : desc.inputs[0].shape;
  if (plain.rank() != 4 || blocked.rank() != 5 || blocked[4] != loops.width) return refuse(why, "not channel blocks of the right size");
  const int64_t c = plain[1], pixels = plain[2] * plain[3], b = loops.width, blocks = blocked[1];
  if (pixels > INT32_MAX / b) return refuse(why, "an image too large for 32-bit steps");
  return make_kernel([=, n = plain[0], &loops](Stream& stream, Inputs in, Outputs out) -> Fault {
    parallel_for(stream, n * blocks, [&](int64_t i, int) {
      const int64_t block = i % blocks, count = std::min(b, c - block * b);
      const int64_t plain_at = (i / blocks * c + block * b) * pixels, blocked_at = i * pixels * b;
      if (to_blocks)
        loops.from_plain(in[0].as<const float>() + plain_at, pixels, count, pixels, out[0].as<float>() + blocked_at);
      else
        loops.to_plain(in[0].as<const float>() + blocked_at, count, pixels, out[0].as<float>() + plain_at, pixels);
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
