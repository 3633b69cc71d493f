// conv_transpose.cc: ConvTranspose in f32 over one or two spatial axes, as a product and a sum:
//
//   columns[m, kh, kw, pixels] = weight[c, m, kh, kw]' * x[c, pixels]        then each row is added to y where its window cell lies
//
// Output channels go through in blocks whose columns fit the L2 cache, so that they are added while they are there. A weight that is known at load is
// turned around once, so that the product reads its rows as they lie.

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/window.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kColumnFloats = 1 << 18;  // 1 MiB

/// The group's weight [c, m * cells] seen as [m * cells, c].
struct GroupWeight {
  int64_t rows, channels;
  int64_t size() const { return rows * channels; }
};

void turn_around(const float* weight, const GroupWeight& group, float* turned) {
  for (int64_t row = 0; row < group.rows; ++row) {
    for (int64_t c = 0; c < group.channels; ++c) turned[row * group.channels + c] = weight[c * group.rows + row];
  }
}

class ConvTransposeKernel final : public Kernel {
 public:
  ConvTransposeKernel(const Simd& simd, const OpDesc& desc, const Window& window, int64_t groups, PrepareContext& context)
      : loops_(*simd.image), dense_(*simd.dense), window_(window), groups_(groups) {
    const Image x(desc.inputs[0].shape);
    const TensorDesc& weight = desc.inputs[1];
    weight_ = {weight.shape[1] * window.cells(), x.c / groups};
    packed_ = packed_size(dense_, weight_.channels, x.plane());
    block_ = std::clamp<int64_t>(kColumnFloats / std::max<int64_t>(1, window.cells() * x.plane()), 1, weight.shape[1]);
    columns_ = block_ * window.cells() * x.plane();
    if (!weight.constant) return;
    const std::string layout = "conv_transpose_f32_group" + std::to_string(groups);
    turned_ = packed_floats(context, weight, layout, groups * weight_.size(), [&](const float* source, float* to) {
      for (int64_t g = 0; g < groups; ++g) turn_around(source + g * weight_.size(), weight_, to + g * weight_.size());
    });
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(packed_ + columns_) * sizeof(float); }
  uint32_t packed_inputs() const override { return turned_ ? 0b10 : 0; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Image x(in[0].shape), y(out[0].shape);
    auto* packed = reinterpret_cast<float*>(stream.scratch);
    float* columns = packed + packed_;
    const int64_t cells = window_.cells(), filters = y.c / groups_;
    const std::vector<Run> along = runs(x, y);
    const float* const bias = operand_as<float>(in, 2);
    for (int64_t i = 0; i < x.n * groups_; ++i) {  // images x groups
      pack_b(dense_, {in[0].as<const float>() + i * weight_.channels * x.plane(), x.plane(), 1}, weight_.channels, x.plane(), packed);
      for (int64_t m = 0; m < filters; m += block_) {
        const int64_t count = std::min(block_, filters - m);
        gemm(stream, dense_, count * cells, x.plane(), weight_.channels, rows_of(in[1], i % groups_, m * cells), packed, columns, x.plane(),
             nullptr);
        parallel_for(stream, count, [&](int64_t k, int) {
          const int64_t plane = i * filters + m + k;
          add_columns(x, y, along, columns + k * cells * x.plane(), bias ? bias[plane % y.c] : 0.f, out[0].as<float>() + plane * y.plane());
        });
      }
    }
    return kOk;
  }

 private:
  /// The weight of a group from row `row` on.
  MatrixView rows_of(const TensorView& weight, int64_t group, int64_t row) const {
    if (turned_) return {floats(turned_) + group * weight_.size() + row * weight_.channels, weight_.channels, 1};
    return {weight.as<const float>() + group * weight_.size() + row, 1, weight_.rows};
  }

  int64_t phase_width(const Image& y) const { return (y.w + window_.w.stride - 1) / window_.w.stride; }

  /// Along a row: the elements [first, first + count) of a row of x that a window column adds from phase element `target` on.
  struct Run {
    int64_t first, count, target;
  };
  std::vector<Run> runs(const Image& x, const Image& y) const {
    std::vector<Run> result;
    const int64_t stride = window_.w.stride, width = phase_width(y);
    for (int64_t kw = 0; kw < window_.w.kernel; ++kw) {
      const auto inside = window_.w.inside(kw, y.w, x.w);
      const int64_t at = window_.w.at(inside.first, kw);  // column of y
      result.push_back({inside.first, std::max<int64_t>(0, inside.last - inside.first), at % stride * width + at / stride});
    }
    return result;
  }

  /// One plane of y from the columns [kh, kw, h, w] of its channel. Outputs that lie `stride` apart are neighbours in `phases`: each cell adds a run to
  /// one of them, and a finished row is interleaved into y.
  void add_columns(const Image& x, const Image& y, const std::vector<Run>& along, const float* columns, float bias, float* plane) const {
    const int64_t stride = window_.w.stride, width = phase_width(y), whole = y.w / stride;
    std::vector<float> phases(static_cast<size_t>(stride * width));
    for (int64_t row = 0; row < y.h; ++row, plane += y.w) {
      std::fill(phases.begin(), phases.end(), bias);
      for (int64_t kh = 0; kh < window_.h.kernel; ++kh) {
        const int64_t from = row + window_.h.pad - kh * window_.h.dilation, source = from / window_.h.stride;
        if (from < 0 || from % window_.h.stride != 0 || source >= x.h) continue;
        const float* cell = columns + (kh * window_.w.kernel * x.h + source) * x.w;
        for (const Run& run : along) {
          if (run.count > 0) loops_.add(cell + run.first, phases.data() + run.target, run.count);
          cell += x.plane();
        }
      }
      loops_.interleave(phases.data(), width, stride, plane, whole);
      for (int64_t column = whole * stride; column < y.w; ++column)
        plane[column] = phases[static_cast<size_t>(column % stride * width + column / stride)];
    }
  }

  const ImageLoops& loops_;
  const DenseLoops& dense_;
  const Window window_;
  const int64_t groups_;
  GroupWeight weight_{};
  int64_t packed_ = 0, columns_ = 0;  ///< floats
  int64_t block_ = 1;                 ///< output channels at a time
  PackedBuffer turned_;
};

}  // namespace

Prepared conv_transpose(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "ConvTranspose") return refuse(why, "not a ConvTranspose");
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != DType::kFloat32 && input.dtype != DType::kUndefined) return refuse(why, "only f32");
  }
  const auto kernel = op.attributes.integers("kernel_shape"), strides = op.attributes.integers("strides");
  const auto dilations = op.attributes.integers("dilations"), pads = op.attributes.integers("pads");
  const Shape& x = desc.inputs[0].shape;
  const Shape& weight = desc.inputs[1].shape;
  const int64_t groups = op.attributes.integer("group", 1);
  if (!Window::fits(x, kernel.size(), strides, dilations, pads)) return refuse(why, "only one or two spatial axes");
  const bool fits =
      groups >= 1 && weight.rank() == x.rank() && weight[0] == x[1] && x[1] % groups == 0 && desc.outputs[0].shape[1] == weight[1] * groups;
  if (!fits || desc.outputs[0].shape.elements() == 0 || x.elements() == 0)
    return refuse(why, "channels do not fit, or there are no elements");
  return std::make_unique<ConvTransposeKernel>(simd, desc, Window(kernel, strides, dilations, pads), groups, context);
}

}  // namespace serin::kernels::cpu
