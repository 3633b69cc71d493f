// conv_transpose_volume.cc: ConvTranspose in f32 over three spatial axes, the upsampling of volumetric U-Nets. As over two (conv_transpose.cc) it is a product,
// whose columns are added to y where their cells lie:
//
//   columns[m, kd, kh, kw, voxels] = weight[c, m, kd, kh, kw]' * x[c, voxels]
//
// Output channels go through in blocks whose columns fit the L2 cache.

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr size_t kAxes = 3;
constexpr int64_t kColumnFloats = 1 << 18;  // 1 MiB
using Sizes = std::array<int64_t, kAxes>;

struct VolumeWindow {
  Sizes kernel{}, strides{}, dilations{}, pads{};
  int64_t cells() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Where along `axis` the cell `k` of element `i` lies.
  int64_t at(size_t axis, int64_t i, int64_t k) const { return i * strides[axis] + k * dilations[axis] - pads[axis]; }
  /// The elements of x, [first, last), whose cell `k` lies within y.
  std::pair<int64_t, int64_t> inside(size_t axis, int64_t k, int64_t x, int64_t y) const {
    int64_t first = 0, last = x;
    while (first < last && at(axis, first, k) < 0) ++first;
    while (last > first && at(axis, last - 1, k) >= y) --last;
    return {first, last};
  }
};

Sizes spatial(const Shape& shape) { return {shape[2], shape[3], shape[4]}; }

class ConvTransposeVolume final : public Kernel {
 public:
  ConvTransposeVolume(const Simd& simd, const OpDesc& desc, const VolumeWindow& window, int64_t groups)
      : dense_(*simd.dense), window_(window), groups_(groups) {
    const Shape &x = desc.inputs[0].shape, &weight = desc.inputs[1].shape;
    channels_ = x[1] / groups, filters_ = weight[1];
    const int64_t voxels = product(x, 2, x.rank());
    block_ = std::clamp<int64_t>(kColumnFloats / std::max<int64_t>(1, window.cells() * voxels), 1, filters_);
    packed_ = packed_size(dense_, channels_, voxels);
    columns_ = block_ * window.cells() * voxels;
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(packed_ + columns_) * sizeof(float); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Shape &x = in[0].shape, &y = out[0].shape;
    const int64_t voxels = product(x, 2, x.rank()), results = product(y, 2, y.rank()), rows = filters_ * window_.cells();
    auto* packed = reinterpret_cast<float*>(stream.scratch);
    float* const columns = packed + packed_;
    const float* const bias = operand_as<float>(in, 2);
    for (int64_t i = 0; i < x[0] * groups_; ++i) {  // images x groups
      const float* const weight = in[1].as<const float>() + i % groups_ * channels_ * rows;
      pack_b(dense_, {in[0].as<const float>() + i * channels_ * voxels, voxels, 1}, channels_, voxels, packed);
      for (int64_t m = 0; m < filters_; m += block_) {
        const int64_t count = std::min(block_, filters_ - m);
        gemm(stream, dense_, count * window_.cells(), voxels, channels_, {weight + m * window_.cells(), 1, rows}, packed, columns, voxels,
             nullptr);
        parallel_for(stream, count, [&](int64_t k, int) {
          const int64_t filter = i * filters_ + m + k;
          float* const volume = out[0].as<float>() + filter * results;
          std::fill_n(volume, results, bias ? bias[filter % y[1]] : 0.f);
          add_columns(spatial(x), spatial(y), columns + k * window_.cells() * voxels, volume);
        });
      }
    }
    return kOk;
  }

 private:
  /// One channel of y from its columns [kd, kh, kw, d, h, w].
  void add_columns(const Sizes& x, const Sizes& y, const float* columns, float* volume) const {
    for (int64_t cell = 0; cell < window_.cells(); ++cell, columns += x[0] * x[1] * x[2]) {
      const Sizes k{cell / (window_.kernel[1] * window_.kernel[2]), cell / window_.kernel[2] % window_.kernel[1], cell % window_.kernel[2]};
      std::array<std::pair<int64_t, int64_t>, kAxes> range;
      for (size_t axis = 0; axis < kAxes; ++axis) range[axis] = window_.inside(axis, k[axis], x[axis], y[axis]);
      const auto [first, last] = range[2];
      if (first == last) continue;
      for (int64_t d = range[0].first; d < range[0].second; ++d) {
        for (int64_t h = range[1].first; h < range[1].second; ++h) {
          float* const to = volume + (window_.at(0, d, k[0]) * y[1] + window_.at(1, h, k[1])) * y[2] + window_.at(2, first, k[2]);
          add_apart(columns + (d * x[1] + h) * x[2] + first, last - first, window_.strides[2], to);
        }
      }
    }
  }

  static void add_apart(const float* from, int64_t count, int64_t stride, float* to) {
    for (int64_t i = 0; i < count; ++i) to[i * stride] += from[i];
  }

  const DenseLoops& dense_;
  const VolumeWindow window_;
  const int64_t groups_;
  int64_t channels_ = 0, filters_ = 0;  ///< of a group
  int64_t packed_ = 0, columns_ = 0;    ///< floats
  int64_t block_ = 1;                   ///< output channels at a time
};

}  // namespace

Prepared conv_transpose_volume(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "ConvTranspose") return refuse(why, "not a ConvTranspose");
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != DType::kFloat32 && input.dtype != DType::kUndefined) return refuse(why, "only f32");
  }
  const Shape &x = desc.inputs[0].shape, &weight = desc.inputs[1].shape;
  const auto kernel = op.attributes.integers("kernel_shape"), strides = op.attributes.integers("strides");
  const auto dilations = op.attributes.integers("dilations"), pads = op.attributes.integers("pads");
  const int64_t groups = op.attributes.integer("group", 1);
  if (x.rank() != kAxes + 2 || weight.rank() != x.rank() || kernel.size() != kAxes || strides.size() != kAxes ||
      dilations.size() != kAxes || pads.size() != 2 * kAxes)
    return refuse(why, "only three spatial axes");
  if (groups < 1 || weight[0] != x[1] || x[1] % groups != 0 || desc.outputs[0].shape[1] != weight[1] * groups ||
      desc.outputs[0].shape.elements() == 0 || x.elements() == 0)
    return refuse(why, "channels do not fit, or there are no elements");
  VolumeWindow window;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    window.kernel[axis] = kernel[axis], window.strides[axis] = strides[axis];
    window.dilations[axis] = dilations[axis], window.pads[axis] = pads[axis];
  }
  return std::make_unique<ConvTransposeVolume>(simd, desc, window, groups);
}

}  // namespace serin::kernels::cpu
