// deform_conv.cc: DeformConv in f32 as a product, for a block of output pixels at a time:
//
//   y[m, pixels] = weight[m, c * cells] * columns[c * cells, pixels]      columns[c, cell, pixel] = x[c] at the place that the offsets give
//
// All channels of an offset group read the same places. So the elements and weights of bilinear interpolation are found once for each cell, and each of these
// channels is gathered with them, right into the panels that the product reads.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/window.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPoints = 256;  // the most pixels of a block
constexpr int64_t kTaps = 4;      // elements that bilinear interpolation reads

/// Tap k of pixel i at [k * kPoints + i]. A tap of no weight is not looked at.
struct Taps {
  int32_t index[kTaps * kPoints];
  float weight[kTaps * kPoints];

  /// The plane at (row, column); zero around it. As kernels/ref/image_conv.cc.
  void find(int64_t i, const Image& x, double row, double column, double factor) {
    const double top = std::floor(row), left = std::floor(column);
    const bool near =
        row > -1 && row < static_cast<double>(x.h) && column > -1 && column < static_cast<double>(x.w);  // not where a place is NaN
    for (int64_t k = 0; k < kTaps; ++k) {
      const int64_t at = k * kPoints + i, down = k / 2, right = k % 2;
      index[at] = 0;
      weight[at] = 0;
      if (!near) continue;
      const int64_t r = static_cast<int64_t>(top) + down, c = static_cast<int64_t>(left) + right;
      if (r < 0 || r >= x.h || c < 0 || c >= x.w) continue;
      index[at] = static_cast<int32_t>(r * x.w + c);
      weight[at] = static_cast<float>((down ? row - top : 1 - (row - top)) * (right ? column - left : 1 - (column - left)) * factor);
    }
  }
};

class DeformConvKernel final : public Kernel {
 public:
  DeformConvKernel(const Simd& simd, const OpDesc& desc, const Window& window, int64_t groups, int64_t offset_groups, int threads)
      : loops_(*simd.image), dense_(*simd.dense), window_(window), groups_(groups), offset_groups_(offset_groups), threads_(threads) {
    depth_ = desc.inputs[1].shape[1] * window.cells();
    block_ = kPoints / dense_.panel_width * dense_.panel_width;
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(threads_) * sizeof(Taps) + static_cast<size_t>(packed_size(dense_, depth_, block_)) * sizeof(float);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Image x(in[0].shape), y(out[0].shape);
    auto* const taps = reinterpret_cast<Taps*>(stream.scratch);
    auto* const columns = reinterpret_cast<float*>(taps + threads_);
    const int64_t filters = y.c / groups_;
    const float* const bias = operand_as<float>(in, 3);
    for (int64_t image = 0; image < x.n; ++image) {
      for (int64_t group = 0; group < groups_; ++group) {
        const MatrixView weight{in[1].as<const float>() + group * filters * depth_, depth_, 1};
        float* const planes = out[0].as<float>() + (image * y.c + group * filters) * y.plane();
        for (int64_t first = 0; first < y.plane(); first += block_) {
          const int64_t count = std::min(block_, y.plane() - first);
          gather(stream, in, y, image, group, first, count, taps, columns);
          gemm(stream, dense_, filters, count, depth_, weight, columns, planes + first, y.plane(), nullptr);
        }
        if (!bias) continue;
        parallel_for(stream, filters, [&](int64_t m, int) {
          float* const plane = planes + m * y.plane();
          const float added = bias[group * filters + m];
          for (int64_t i = 0; i < y.plane(); ++i) plane[i] += added;
        });
      }
    }
    return kOk;
  }

 private:
  /// The columns of `count` pixels from `first` on, as panels. A task is a cell of an offset group.
  void gather(Stream& stream, Inputs in, const Image& y, int64_t image, int64_t group, int64_t first, int64_t count, Taps* taps,
              float* columns) const {
    const Image x(in[0].shape);
    const int64_t cells = window_.cells(), channels = x.c / groups_, shared = x.c / offset_groups_;
    const int64_t begin = group * channels, first_shift = begin / shared, shifts = (begin + channels - 1) / shared - first_shift + 1;
    parallel_for(stream, shifts * cells, [&](int64_t task, int worker) {
      const int64_t shift = first_shift + task / cells, cell = task % cells;
      Taps& found = taps[worker];
      find(in, x, y, image * offset_groups_ + shift, cell, first, count, found);
      const int64_t end = std::min(begin + channels, (shift + 1) * shared);
      for (int64_t c = std::max(begin, shift * shared); c < end; ++c) {
        const float* const plane = in[0].as<const float>() + (image * x.c + c) * x.plane();
        for (int64_t i = 0; i < count; i += dense_.panel_width) {
          float* const to = columns + i * depth_ + ((c - begin) * cells + cell) * dense_.panel_width;
          const int64_t n = std::min<int64_t>(dense_.panel_width, count - i);
          loops_.gather(plane, found.index + i, found.weight + i, kPoints, kTaps, to, n);
          std::fill(to + n, to + dense_.panel_width, 0.f);
        }
      }
    });
  }

  void find(Inputs in, const Image& x, const Image& y, int64_t shift, int64_t cell, int64_t first, int64_t count, Taps& taps) const {
    const float* const down = in[2].as<const float>() + (shift * window_.cells() + cell) * 2 * y.plane() + first;
    const float* const right = down + y.plane();
    const float* mask = operand_as<float>(in, 4);
    if (mask) mask += (shift * window_.cells() + cell) * y.plane() + first;
    const int64_t kh = cell / window_.w.kernel, kw = cell % window_.w.kernel;
    for (int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<double>(window_.h.at((first + i) / y.w, kh)),
                 column = static_cast<double>(window_.w.at((first + i) % y.w, kw));
      taps.find(i, x, row + static_cast<double>(down[i]), column + static_cast<double>(right[i]), mask ? static_cast<double>(mask[i]) : 1);
    }
    for (int64_t k = 0; k < kTaps; ++k) {  // read in whole vectors
      std::fill(taps.index + k * kPoints + count, taps.index + (k + 1) * kPoints, 0);
      std::fill(taps.weight + k * kPoints + count, taps.weight + (k + 1) * kPoints, 0.f);
    }
  }

  const ImageLoops& loops_;
  const DenseLoops& dense_;
  const Window window_;
  const int64_t groups_, offset_groups_;
  const int threads_;
  int64_t depth_ = 0, block_ = 0;
};

}  // namespace

Prepared deform_conv(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "DeformConv") return refuse(why, "not a DeformConv");
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != DType::kFloat32 && input.dtype != DType::kUndefined) return refuse(why, "only f32");
  }
  const auto kernel = op.attributes.integers("kernel_shape"), strides = op.attributes.integers("strides");
  const auto dilations = op.attributes.integers("dilations"), pads = op.attributes.integers("pads");
  const int64_t groups = op.attributes.integer("group", 1), offset_groups = op.attributes.integer("offset_group", 1);
  const Shape &x = desc.inputs[0].shape, &weight = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  if (x.rank() != 4 || kernel.size() != 2 || !Window::fits(x, 2, strides, dilations, pads)) return refuse(why, "only two spatial axes");
  const bool fits = groups >= 1 && offset_groups >= 1 && weight.rank() == 4 && x[1] == weight[1] * groups && x[1] % offset_groups == 0 &&
                    y[1] % groups == 0;
  if (!fits || x.elements() == 0 || y.elements() == 0) return refuse(why, "channels do not fit, or there are no elements");
  if (x[2] * x[3] > INT32_MAX) return refuse(why, "planes of too many elements");
  return std::make_unique<DeformConvKernel>(simd, desc, Window(kernel, strides, dilations, pads), groups, offset_groups,
                                            std::max(1, context.threads));
}

}  // namespace serin::kernels::cpu
