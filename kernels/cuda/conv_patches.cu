// conv_patches.cu: Conv whose windows neither overlap nor leave gaps (the patches of a vision transformer, the halved images of a ConvNeXt), channels last: the
// pixels of each window are copied side by side, and one product with the weights as they lie follows, by whichever row of MatMul takes it. It has bias,
// residual and activation. Libraries walk over such windows pixel by pixel, with three channels far from what tensor cores need.
//
//   x [images, rows * h, columns * w, channels] -> patches [images * rows * columns, h * w * channels], times weight [filters, h * w * channels]
//
// Within a window a line of w * channels elements lies together in x as well, so a copy is of whole pieces of 16 bytes where a line is a multiple of them, and
// neighbouring threads write neighbouring pieces.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"

namespace serin::kernels::cuda {

namespace {

/// Lengths in bytes.
struct Windowed {
  int64_t images = 0, rows = 0, columns = 0;  ///< windows: of an image and of a line of them
  int64_t height = 0, line = 0;               ///< of a window: its lines, and the length of one
  int64_t x_line = 0, x_image = 0;

  int64_t patch() const { return height * line; }
  int64_t patches() const { return images * rows * columns; }
};

/// The same in pieces.
struct Copies {
  int64_t pieces = 0;
  Division patch, line, columns, rows;
  int64_t height = 0, x_line = 0, x_image = 0;

  Copies(const Windowed& w, int64_t piece)
      : pieces(w.patches() * w.patch() / piece),
        patch(w.patch() / piece, pieces),
        line(w.line / piece, pieces),
        columns(w.columns, pieces),
        rows(w.rows, pieces),
        height(w.height),
        x_line(w.x_line / piece),
        x_image(w.x_image / piece) {}
};

template <class P>
__global__ void copy_patches(Copies g, const P* x, P* patches) {
  for (int64_t i = first_element(); i < g.pieces; i += element_step()) {
    const int64_t window = g.patch.quotient(i), within = i - window * g.patch.d;
    const int64_t line = g.line.quotient(within), before = g.columns.quotient(window), image = g.rows.quotient(before);
    const int64_t column = window - before * g.columns.d, row = before - image * g.rows.d;
    patches[i] = x[image * g.x_image + (row * g.height + line) * g.x_line + column * g.line.d + (within - line * g.line.d)];
  }
}

template <class P>
Fault copy(const Windowed& w, const Stream& stream, const void* x, std::byte* patches) {
  const Copies g(w, sizeof(P));
  return launch(stream, {blocks_for(g.pieces, kBlockThreads), kBlockThreads}, copy_patches<P>, g, static_cast<const P*>(x),
                reinterpret_cast<P*>(patches));
}

class Patches final : public Kernel {
 public:
  Patches(const Windowed& windows, Product product, DType dtype, const Shape& patches, const Shape& weight, const Shape& y, bool residual)
      : windows_(windows),
        product_(std::move(product)),
        dtype_(dtype),
        patches_(patches),
        weight_(weight),
        y_(y),
        residual_(residual),
        name_("conv_patches_cuda" + (product_.name().empty() ? "" : "+" + std::string(product_.name()))) {}

  std::string_view name() const override { return name_; }
  size_t scratch_bytes() const override { return patch_bytes() + product_.scratch_bytes(); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    if (Fault fault = copy_from(stream, in[0].data)) return fault;
    std::array<TensorView, 4> operands;  // patches, weight, and bias and residual where there are any
    std::ranges::copy(in, operands.begin());
    operands[0] = {dtype_, patches_, stream.scratch};
    operands[1].shape = weight_;
    if (residual_) operands[in.size() - 1].shape = y_;
    return product_.run(stream, std::span(operands).first(in.size()), {dtype_, y_, out[0].data}, stream.scratch + patch_bytes());
  }

 private:
  size_t patch_bytes() const { return (static_cast<size_t>(windows_.patches() * windows_.patch()) + 255) / 256 * 256; }

  /// In the widest pieces that lines and address allow: 16 bytes, two elements of 16 bits (14 x 14 windows), or one.
  Fault copy_from(const Stream& stream, const void* x) const {
    const auto fits = [&](size_t piece) {
      const auto bytes = static_cast<int64_t>(piece);
      return windows_.line % bytes == 0 && windows_.x_line % bytes == 0 && reinterpret_cast<uintptr_t>(x) % piece == 0;
    };
    if (fits(sizeof(Piece))) return copy<Piece>(windows_, stream, x, stream.scratch);
    if (fits(sizeof(uint32_t))) return copy<uint32_t>(windows_, stream, x, stream.scratch);
    return copy<uint16_t>(windows_, stream, x, stream.scratch);
  }

  const Windowed windows_;
  const Product product_;
  const DType dtype_;
  const Shape patches_, weight_, y_;
  const bool residual_;
  const std::string name_;
};

}  // namespace

Prepared prepare_conv_patches(const Products& products, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Conv>(desc.op);
  const Shape &x = desc.inputs[0].shape, &weight = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  const DType dtype = desc.outputs[0].dtype;
  if (!op.channels_last || op.strides.size() != 2 || x.rank() != 4) return refuse(why, "channels are not last, or not two spatial axes");
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16) return refuse(why, "only f32, f16 and bf16");
  if (!ref::one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  if (op.group != 1) return refuse(why, "groups");
  if (op.dilations != std::vector<int64_t>{1, 1}) return refuse(why, "dilated");
  if (op.pads != std::vector<int64_t>{0, 0, 0, 0}) return refuse(why, "padded");
  const int64_t height = weight[1], width = weight[2], channels = x[3];
  if (op.strides != std::vector<int64_t>{height, width}) return refuse(why, "windows overlap, or leave gaps");
  if (height * width == 1) return refuse(why, "its window is one pixel: nothing is to be rearranged");
  if (op.epilogue.residual && desc.inputs.back().shape != y) return refuse(why, "the residual broadcasts");
  if (y.elements() == 0 || x.elements() == 0) return refuse(why, "there are no elements");

  const auto size = static_cast<int64_t>(dtype_size(dtype));
  const Windowed windows{x[0], y[1], y[2], height, width * channels * size, x[2] * channels * size, x[1] * x[2] * channels * size};
  const Shape patches{windows.patches(), height * width * channels}, filters{weight[0], height * width * channels},
      results{windows.patches(), weight[0]};
  std::vector<Shape> operands{patches, filters};
  if (op.bias) operands.push_back(desc.inputs[2].shape);
  if (op.epilogue.residual) operands.push_back(results);
  auto found = products.prepare(MatMul{false, true, 1.f, op.bias, op.epilogue}, dtype, operands, results, context, why);
  if (!found) return nullptr;
  return std::make_unique<Patches>(windows, std::move(*found), dtype, patches, filters, results, op.epilogue.residual);
}

}  // namespace serin::kernels::cuda
