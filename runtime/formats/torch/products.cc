// products.cc: matrix products and convolutions.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

/// One number stands for all axes.
List for_axes(NodeImport& node, List values, size_t axes, std::string_view name) {
  if (values.size() == 1) values.assign(axes, values[0]);
  if (values.size() != axes) node.corrupt(fmt::format("'{}' has {} numbers for {} axes", name, values.size(), axes));
  values.resize(axes, 1);
  return values;
}

/// The weight of a linear layer is [out, in].
void import_linear(NodeImport& node, Op) {
  const ValueId x = node.tensor("input"), weight = node.tensor("weight"), bias = node.optional_tensor("bias");
  if (node.b.rank(x) == 2 && node.b.rank(weight) == 2) return node.give(node.b.add(Op::kGemm, {x, weight, bias}, {{"transB", int64_t{1}}}));
  const bool row = node.b.rank(weight) == 1;
  const ValueId product = node.b.add(Op::kMatMul, {x, row ? weight : node.scope().turned(weight)});
  node.give(bias == kNone ? product : node.b.add(Op::kAdd, {product, bias}));
}

void import_matmul(NodeImport& node, Op op) {
  const bool matrices = node.has("mat2");
  const bool vector = node.has("vec");
  const char* const second = matrices ? "mat2" : vector ? "vec" : node.has("tensor") ? "tensor" : "other";
  node.give(node.b.add(op, {node.tensor("self"), node.tensor(second)}));
}

ValueId scaled(NodeImport& node, ValueId x, double factor) {
  return factor == 1 ? x : node.b.add(Op::kMul, {x, node.b.number(node.b.dtype(x), factor)});
}

/// beta * self + alpha * a b. With beta 0 self does not count, whatever is in it.
void import_added_product(NodeImport& node, Op) {
  const bool batched = node.has("batch1"), vector = node.has("vec");
  const ValueId a = node.tensor(batched ? "batch1" : vector ? "mat" : "mat1"), c = node.tensor("self");
  ValueId b = node.tensor(batched ? "batch2" : vector ? "vec" : "mat2");
  const double beta = node.number("beta", 1), alpha = node.number("alpha", 1);
  if (!batched && node.b.rank(a) == 2 && node.b.rank(b) == 2 && beta != 0) {
    const graph::NodeId turned = node.b.graph().producer(b);  // the weight of a linear layer, in the core spelling
    Attributes factors;
    if (node.b.graph().is(turned, Op::kTranspose)) {
      factors.insert_or_assign("transB", int64_t{1});
      b = node.b.graph().input(turned, 0);
    }
    if (beta != 1) factors.insert_or_assign("beta", beta);
    if (alpha != 1) factors.insert_or_assign("alpha", alpha);
    return node.give(node.b.add(Op::kGemm, {a, b, c}, factors));
  }
  const ValueId product = scaled(node, node.b.add(Op::kMatMul, {a, b}), alpha);
  node.give(beta == 0 ? product : node.b.add(Op::kAdd, {product, scaled(node, c, beta)}));
}

void import_einsum(NodeImport& node, Op op) {
  node.give(node.b.add(op, node.tensors("tensors"), {{"equation", node.text("equation", "")}}));
}

/// The equation of a contraction: one letter for each axis, the same for two axes that are summed over.
void import_contraction(NodeImport& node, Op op) {
  const ValueId a = node.tensor("self"), b = node.tensor("other");
  const size_t left = node.rank(a), right = node.rank(b);
  if (left + right > 26) return node.unsupported(fmt::format("operands of ranks {} and {}", left, right));
  const bool named = node.has("dims_self");
  const List from = named       ? node.axes("dims_self", left)
                    : left == 0 ? List{}
                                : List{static_cast<int64_t>(left) - 1},
             to = named        ? node.axes("dims_other", right)
                  : right == 0 ? List{}
                               : List{static_cast<int64_t>(right) - 1};
  if (from.size() != to.size() && left != 0 && right != 0) return node.corrupt("sums over another number of axes");
  if (left == 0 || right == 0) return node.give(node.b.add(Op::kMul, {a, b}));
  std::string first, second, result;
  for (size_t i = 0; i < left + right; ++i) (i < left ? first : second).push_back(static_cast<char>('a' + i));
  for (size_t i = 0; i < from.size(); ++i) second[static_cast<size_t>(to[i])] = first[static_cast<size_t>(from[i])];
  for (const char letter : first)
    if (second.find(letter) == std::string::npos) result.push_back(letter);
  for (const char letter : second)
    if (first.find(letter) == std::string::npos) result.push_back(letter);
  node.give(node.b.add(op, {a, b}, {{"equation", fmt::format("{},{}->{}", first, second, result)}}));
}

/// input1 W[k] input2 for each k.
void import_bilinear(NodeImport& node, Op op) {
  const ValueId a = node.tensor("input1"), b = node.tensor("input2"), bias = node.optional_tensor("bias");
  const ValueId y = node.b.add(op, {a, node.tensor("weight"), b}, {{"equation", std::string("...i,kij,...j->...k")}});
  node.give(bias == kNone ? y : node.b.add(Op::kAdd, {y, bias}));
}

/// The product of three tensors, each with more axes of size 1, summed over axes: what a bilinear layer decomposes to.
void import_trilinear(NodeImport& node, Op op) {
  const auto part = [&](const char* name, const char* more) {
    ValueId x = node.tensor(name);
    for (const int64_t axis : node.integers(more)) x = node.b.unsqueeze(x, {axis});
    return x;
  };
  const ValueId pairs = node.b.add(Op::kMul, {part("i1", "expand1"), part("i3", "expand3")});
  node.give(node.b.add(op, {node.b.add(Op::kMul, {pairs, part("i2", "expand2")})},
                       {{"axes", node.integers("sumdim")}, {"keepdims", int64_t{0}}}));
}

void import_outer(NodeImport& node, Op) {
  node.give(node.b.add(Op::kMul, {node.b.unsqueeze(node.tensor("self"), {1}), node.b.unsqueeze(node.tensor("vec2"), {0})}));
}

/// Padding of a convolution: numbers for each axis, or "same" and "valid".
void add_padding(NodeImport& node, size_t axes, Attributes& attributes) {
  const auto found = node.node().arguments.find("padding");
  if (found != node.node().arguments.end() && found->second.kind == "as_string") {
    const std::string text = node.text("padding", "");
    if (text == "valid") return;
    if (text != "same") return node.unsupported(fmt::format("padding is '{}'", text));
    attributes.insert_or_assign("auto_pad", std::string("SAME_UPPER"));
    return;
  }
  List pads = for_axes(node, node.integers("padding", {0}), axes, "padding");
  pads.insert(pads.end(), pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  attributes.insert_or_assign("pads", pads);
}

/// The weight's spatial axes, or 0 if they are not known.
List kernel_of(NodeImport& node, ValueId weight, size_t axes) {
  List kernel;
  for (size_t i = 0; i < axes; ++i) kernel.push_back(node.b.size(weight, i + 2).value_or(0));
  return kernel;
}

/// Without a batch torch takes [channels, ...] as well.
ValueId with_batch(NodeImport& node, ValueId x, size_t rank) { return node.rank(x) + 1 == rank ? node.b.unsqueeze(x, {0}) : x; }

void give_without_batch(NodeImport& node, ValueId y, ValueId x) {
  node.give(node.b.rank(y) == node.b.rank(x) ? y : node.b.squeeze(y, {0}));
}

void convolve(NodeImport& node, bool transposed) {
  const ValueId x = node.tensor("input"), weight = node.tensor("weight"), bias = node.optional_tensor("bias");
  const size_t rank = node.rank(weight);
  if (rank < 3) return node.corrupt(fmt::format("a kernel of rank {}", rank));
  const size_t axes = rank - 2;
  const List strides = for_axes(node, node.integers("stride", {1}), axes, "stride");
  const List dilations = for_axes(node, node.integers("dilation", {1}), axes, "dilation");
  if (std::ranges::min(strides) < 1 || std::ranges::min(dilations) < 1) return node.corrupt("a stride or dilation below 1");
  Attributes attributes = {{"strides", strides},
                           {"dilations", dilations},
                           {"group", node.integer("groups", 1)},
                           {"kernel_shape", kernel_of(node, weight, axes)}};
  add_padding(node, axes, attributes);
  if (transposed)
    attributes.insert_or_assign("output_padding", for_axes(node, node.integers("output_padding", {0}), axes, "output_padding"));
  const ValueId y = node.b.add(transposed ? Op::kConvTranspose : Op::kConv, {with_batch(node, x, rank), weight, bias}, attributes);
  give_without_batch(node, y, x);
}

void import_conv(NodeImport& node, Op) { convolve(node, false); }
void import_conv_transpose(NodeImport& node, Op) { convolve(node, true); }
void import_convolution(NodeImport& node, Op) { convolve(node, node.flag("transposed", false)); }

constexpr OperatorRow kProducts[] = {
    {"aten._trilinear", import_trilinear, Op::kReduceSum},
    {"aten.addmm", import_added_product},
    {"aten.addmv", import_added_product},
    {"aten.baddbmm", import_added_product},
    {"aten.bilinear", import_bilinear, Op::kEinsum},
    {"aten.bmm", import_matmul, Op::kMatMul},
    {"aten.conv1d", import_conv},
    {"aten.conv2d", import_conv},
    {"aten.conv3d", import_conv},
    {"aten.conv_transpose1d", import_conv_transpose},
    {"aten.conv_transpose2d", import_conv_transpose},
    {"aten.conv_transpose3d", import_conv_transpose},
    {"aten.convolution", import_convolution},
    {"aten.dot", import_matmul, Op::kMatMul},
    {"aten.einsum", import_einsum, Op::kEinsum},
    {"aten.inner", import_contraction, Op::kEinsum},
    {"aten.linear", import_linear},
    {"aten.matmul", import_matmul, Op::kMatMul},
    {"aten.mm", import_matmul, Op::kMatMul},
    {"aten.mv", import_matmul, Op::kMatMul},
    {"aten.outer", import_outer},
    {"aten.tensordot", import_contraction, Op::kEinsum},
};

}  // namespace

std::span<const OperatorRow> product_operators() { return kProducts; }

}  // namespace serin::formats::torch
