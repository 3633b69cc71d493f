// pools.cc: windows that are reduced to one element.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

/// The number of spatial axes in the operator's name: max_pool2d.
size_t spatial_axes(const NodeImport& node) {
  const std::string& target = node.node().target;
  const size_t at = target.find("_pool");
  const char digit = at + 5 < target.size() ? target[at + 5] : '2';
  return digit == '1' ? 1 : digit == '3' ? 3 : 2;
}

List window_sizes(NodeImport& node, std::string_view name, List fallback, size_t axes) {
  List values = node.integers(name);
  if (values.empty()) values = std::move(fallback);
  if (values.size() == 1) values.assign(axes, values[0]);
  if (values.size() != axes) node.corrupt(fmt::format("'{}' has {} numbers for {} axes", name, values.size(), axes));
  values.resize(axes, 1);
  return values;
}

/// [channels, ...] gets a batch for the time of the pool.
void give_pool(NodeImport& node, Op op, ValueId x, size_t axes, Attributes attributes) {
  const bool batched = node.rank(x) != axes + 1;
  const ValueId y = node.b.add(op, {batched ? x : node.b.unsqueeze(x, {0})}, std::move(attributes));
  node.give(batched ? y : node.b.squeeze(y, {0}));
}

void import_pool(NodeImport& node, Op op) {
  const size_t axes = spatial_axes(node);
  const List kernel = window_sizes(node, "kernel_size", {1}, axes), strides = window_sizes(node, "stride", kernel, axes);
  List pads = window_sizes(node, "padding", {0}, axes);
  if (std::ranges::min(kernel) < 1 || std::ranges::min(strides) < 1) return node.corrupt("a kernel or stride below 1");
  pads.insert(pads.end(), pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  Attributes attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
  if (node.flag("ceil_mode", false)) attributes.insert_or_assign("ceil_mode", int64_t{1});
  if (op == Op::kAveragePool) {
    if (node.has("divisor_override")) return node.unsupported("a divisor other than the window");
    attributes.insert_or_assign("count_include_pad", int64_t{node.flag("count_include_pad", true)});
  } else {
    attributes.insert_or_assign("dilations", window_sizes(node, "dilation", {1}, axes));
  }
  give_pool(node, op, node.tensor("self"), axes, std::move(attributes));
}

/// max_pool2d_with_indices: the indices are for a backward pass; a node that reads them is refused.
void import_pool_with_indices(NodeImport& node, Op op) {
  import_pool(node, op);
  if (!node.results().empty()) node.give({node.results()[0], graph::kNone});
}

/// Windows that divide the input into `size` parts: equal ones as a pool; others, as in torch, overlap.
void import_adaptive_pool(NodeImport& node, Op op) {
  const size_t axes = spatial_axes(node);
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const List size = window_sizes(node, "output_size", {1}, axes);
  if (rank < axes + 1) return node.corrupt(fmt::format("a tensor of rank {}", rank));
  if (std::ranges::all_of(size, [](int64_t each) { return each == 1; }))
    return give_pool(node, op == Op::kAveragePool ? Op::kGlobalAveragePool : Op::kGlobalMaxPool, x, axes, {});
  List kernel;
  bool equal = true;
  for (size_t i = 0; i < axes; ++i) {
    const auto length = node.b.size(x, rank - axes + i);
    if (!length || size[i] < 1) return node.unsupported("parts of an axis of unknown length");
    equal = equal && *length % size[i] == 0;
    kernel.push_back(std::max<int64_t>(1, *length / size[i]));
  }
  if (equal) return give_pool(node, op, x, axes, {{"kernel_shape", kernel}, {"strides", kernel}});
  if (op != Op::kAveragePool) return node.unsupported("a maximum over parts of different lengths");
  ValueId y = x;  // the mean along an axis is a product with a matrix of shares
  for (size_t i = 0; i < axes; ++i) {
    const size_t axis = rank - axes + i;
    const int64_t length = *node.b.size(x, axis), parts = size[i];
    constexpr int64_t kMost = 1 << 24;
    if (length > kMost / parts) return node.unsupported("too many parts");
    std::vector<float> shares(static_cast<size_t>(length * parts), 0);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = part * length / parts, end = ((part + 1) * length + parts - 1) / parts;
      for (int64_t at = begin; at < end; ++at) shares[static_cast<size_t>(at * parts + part)] = 1 / static_cast<float>(end - begin);
    }
    const ValueId matrix =
        node.b.cast(node.b.constant(graph::make_constant(DType::kFloat32, Shape{length, parts}, shares.data())), node.b.dtype(x));
    List order;
    for (size_t a = 0; a < rank; ++a) order.push_back(static_cast<int64_t>(a));
    std::swap(order[axis], order[rank - 1]);
    const bool last = axis == rank - 1;
    y = node.b.add(Op::kMatMul, {last ? y : node.b.transpose(y, order), matrix});
    if (!last) y = node.b.transpose(y, order);
  }
  node.give(y);
}

constexpr OperatorRow kPools[] = {
    {"aten._adaptive_avg_pool2d", import_adaptive_pool, Op::kAveragePool},
    {"aten._adaptive_avg_pool3d", import_adaptive_pool, Op::kAveragePool},
    {"aten.adaptive_avg_pool1d", import_adaptive_pool, Op::kAveragePool},
    {"aten.adaptive_avg_pool2d", import_adaptive_pool, Op::kAveragePool},
    {"aten.adaptive_avg_pool3d", import_adaptive_pool, Op::kAveragePool},
    {"aten.adaptive_max_pool1d", import_adaptive_pool, Op::kMaxPool},
    {"aten.adaptive_max_pool2d", import_adaptive_pool, Op::kMaxPool},
    {"aten.avg_pool1d", import_pool, Op::kAveragePool},
    {"aten.avg_pool2d", import_pool, Op::kAveragePool},
    {"aten.avg_pool3d", import_pool, Op::kAveragePool},
    {"aten.max_pool1d", import_pool, Op::kMaxPool},
    {"aten.max_pool2d", import_pool, Op::kMaxPool},
    {"aten.max_pool2d_with_indices", import_pool_with_indices, Op::kMaxPool},
    {"aten.max_pool3d", import_pool, Op::kMaxPool},
    {"aten.max_pool3d_with_indices", import_pool_with_indices, Op::kMaxPool},
};

}  // namespace

std::span<const OperatorRow> pool_operators() { return kPools; }

}  // namespace serin::formats::torch
