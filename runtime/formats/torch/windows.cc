// windows.cc: windows of images as columns, images of such columns, and convolutions whose windows are moved by the data.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

struct Windows {
  List kernel, dilation, padding, stride;
};

/// Two numbers for each; nothing, and an error, for others.
std::optional<Windows> windows(NodeImport& node) {
  Windows found{node.integers("kernel_size"), node.integers("dilation", {1, 1}), node.integers("padding", {0, 0}),
                node.integers("stride", {1, 1})};
  for (List* const list : {&found.kernel, &found.dilation, &found.padding, &found.stride}) {
    if (list->size() == 1) list->push_back(list->front());
    const int64_t least = list == &found.padding ? 0 : 1;
    if (list->size() == 2 && std::ranges::min(*list) >= least) continue;
    node.corrupt("windows of other than two axes, or of no length");
    return std::nullopt;
  }
  return found;
}

/// im2col: [n, c, h, w] to [n, c * kernel, windows]. A convolution of each channel with one kernel for each place of the window.
void import_columns(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const auto found = windows(node);
  if (!found) return;
  const auto channels = node.b.size(x, 1);
  constexpr int64_t kMost = 1 << 22;
  if (node.rank(x) != 4 || !channels || found->kernel[0] > kMost || found->kernel[1] > kMost)
    return node.unsupported("windows of other than images of known channels");
  const int64_t places = found->kernel[0] * found->kernel[1];
  if (places > 2048 || *channels > kMost / std::max<int64_t>(1, places * places))
    return node.unsupported(fmt::format("windows of {} places in {} channels", places, *channels));
  std::vector<float> one_hot(static_cast<size_t>(*channels * places * places), 0);
  for (int64_t i = 0; i < *channels * places; ++i) one_hot[static_cast<size_t>(i * places + i % places)] = 1;
  const ValueId weight =
      node.b.cast(node.b.constant(graph::make_constant(DType::kFloat32, Shape{*channels * places, 1, found->kernel[0], found->kernel[1]},
                                                       one_hot.data())),
                  node.b.dtype(x));
  const List pads = {found->padding[0], found->padding[1], found->padding[0], found->padding[1]};
  const ValueId y = node.b.add(
      Op::kConv, {x, weight},
      {{"kernel_shape", found->kernel}, {"strides", found->stride}, {"dilations", found->dilation}, {"pads", pads}, {"group", *channels}});
  node.give(node.b.reshape(y, {0, *channels * places, -1}));
}

/// col2im: each window's elements added to the image.
void import_image(NodeImport& node, Op op) {
  const auto found = windows(node);
  const std::vector<Size> sizes = node.sizes("output_size");
  if (!found) return;
  if (sizes.size() != 2 || node.rank(node.tensor("self")) != 3) return node.unsupported("columns of other than a batch of images");
  const List pads = {found->padding[0], found->padding[1], found->padding[0], found->padding[1]};
  node.give(node.b.add(op, {node.tensor("self"), node.shape_of(sizes), node.b.integers(found->kernel)},
                       {{"strides", found->stride}, {"dilations", found->dilation}, {"pads", pads}}));
}

/// torchvision's deform_conv2d.
void import_deformed(NodeImport& node, Op op) {
  const ValueId weight = node.tensor("weight");
  const auto height = node.b.size(weight, 2), width = node.b.size(weight, 3);
  if (!height || !width) return node.unsupported("a kernel of unknown size");
  const auto pair = [&](const char* first, const char* second, int64_t fallback) {
    return List{node.integer(first, fallback), node.integer(second, fallback)};
  };
  const List padding = pair("pad_h", "pad_w", 0);
  std::vector<ValueId> operands = {node.tensor("input"), weight, node.tensor("offset"), node.optional_tensor("bias")};
  if (node.flag("use_mask", false)) operands.push_back(node.tensor("mask"));
  node.give(node.b.add(op, operands,
                       {{"kernel_shape", List{*height, *width}},
                        {"strides", pair("stride_h", "stride_w", 1)},
                        {"dilations", pair("dilation_h", "dilation_w", 1)},
                        {"pads", List{padding[0], padding[1], padding[0], padding[1]}},
                        {"group", node.integer("groups", 1)},
                        {"offset_group", node.integer("offset_groups", 1)}}));
}

constexpr OperatorRow kWindows[] = {
    {"aten.col2im", import_image, Op::kCol2Im},
    {"aten.im2col", import_columns},
    {"torchvision.deform_conv2d", import_deformed, Op::kDeformConv},
};

}  // namespace

std::span<const OperatorRow> window_operators() { return kWindows; }

}  // namespace serin::formats::torch
