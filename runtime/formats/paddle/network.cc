// network.cc: convolutions, pools and normalisations.
//
// Paddle counts paddings as [h, w] or [h begin, h end, w begin, w end]. SAME puts the odd element at the end. Images with channels last are
// transposed around the operator; filters have channels first in either case.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

bool channels_last(const Node& node) {
  const std::string layout = node.text("data_format|data_layout", "NCHW");
  return layout.size() > 1 && layout.ends_with('C') && layout != "NC";
}

/// [n, spatial..., c] <-> [n, c, spatial...]
ValueId moved_channels(Node& node, ValueId x, bool to_front) {
  List order(node.rank(x));
  std::iota(order.begin(), order.end(), 0);
  if (order.size() > 2) {
    if (to_front)
      std::rotate(order.begin() + 1, order.end() - 1, order.end());
    else
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  }
  return node.b.transpose(x, order);
}

ValueId image(Node& node, std::string_view slot) {
  const ValueId x = node.in(slot);
  return channels_last(node) ? moved_channels(node, x, true) : x;
}

void out_image(Node& node, std::string_view slot, ValueId x) { node.out(slot, channels_last(node) ? moved_channels(node, x, false) : x); }

List repeated(const Node& node, std::string_view name, size_t axes, int64_t fallback) {
  List values = node.integers(name).value_or(List(axes, fallback));
  if (values.size() == 1) values.resize(axes, values[0]);
  if (values.size() != axes) node.corrupt("attribute '" + std::string(name) + "' has another number of axes");
  values.resize(axes, fallback);
  return values;
}

/// pads or auto_pad.
void add_padding(const Node& node, size_t axes, Attributes& attributes) {
  const std::string algorithm = node.text("padding_algorithm", "EXPLICIT");
  if (algorithm == "SAME") {
    attributes.insert_or_assign("auto_pad", std::string("SAME_UPPER"));
    if (attributes.contains("dilations")) attributes.insert_or_assign("dilations", List(axes, 1));
    return;
  }
  List given = node.integers("paddings").value_or(List(axes, 0)), pads(2 * axes, 0);
  if (algorithm == "VALID") given.assign(axes, 0);
  if (given.size() == 1) given.resize(axes, given[0]);
  if (given.size() == 2 * axes + 4) given.erase(given.begin(), given.begin() + 4);  // with those of batch and channels, which are zero
  if (given.size() != axes && given.size() != 2 * axes) return node.corrupt("attribute 'paddings' has another number of axes");
  for (size_t i = 0; i < axes; ++i) {
    pads[i] = given.size() == axes ? given[i] : given[2 * i];
    pads[axes + i] = given.size() == axes ? given[i] : given[2 * i + 1];
  }
  attributes.insert_or_assign("pads", pads);
}

size_t spatial_axes(const Node& node, ValueId x) {
  const size_t rank = node.rank(x);
  if (rank < 3) node.corrupt("its operand is no image");
  return rank < 3 ? 1 : rank - 2;
}

Attributes conv_attributes(const Node& node, ValueId weight, size_t axes) {
  List kernel;
  for (size_t i = 0; i < axes; ++i) kernel.push_back(node.b.size(weight, i + 2).value_or(0));
  Attributes attributes{{"dilations", repeated(node, "dilations", axes, 1)},
                        {"group", node.integer("groups", 1)},
                        {"kernel_shape", kernel},
                        {"strides", repeated(node, "strides", axes, 1)}};
  add_padding(node, axes, attributes);
  return attributes;
}

void import_conv(Node& node, Op op) {
  const ValueId x = image(node, "Input"), weight = node.in("Filter");
  ValueId y = node.b.add(op, {x, weight, node.maybe("Bias")}, conv_attributes(node, weight, spatial_axes(node, x)));
  if (const ValueId residual = node.maybe("ResidualData"); residual != kNone) y = node.binary(Op::kAdd, y, residual);
  if (node.has("activation|fuse_activation")) y = activate(node, node.text("activation|fuse_activation", ""), y);
  out_image(node, "Output", y);
}

constexpr int64_t kFarthest = int64_t{1} << 30;  // so that the arithmetic on sizes stays within 64 bits

void import_conv_transpose(Node& node, Op op) {
  const ValueId x = image(node, "Input"), weight = node.in("Filter");
  const size_t axes = spatial_axes(node, x);
  Attributes attributes = conv_attributes(node, weight, axes);
  List extra = node.integers("output_padding").value_or(List{});
  if (const List size = node.known_list("output_size", "OutputSizeTensor OutputSizeTensorList").value_or(List{}); !size.empty()) {
    const auto* const pads = std::get_if<List>(&attributes.find("pads")->second);
    if (!pads || size.size() != axes) return node.refuse("an output size with this padding");
    const List &strides = std::get<List>(attributes["strides"]), &dilations = std::get<List>(attributes["dilations"]);
    extra.assign(axes, 0);
    for (size_t i = 0; i < axes; ++i) {
      const auto from = node.b.size(x, i + 2), kernel = node.b.size(weight, i + 2);
      if (!from || !kernel) return node.refuse("an output size where the input's is unknown");
      for (const int64_t each : {size[i], *from, *kernel, strides[i], dilations[i], (*pads)[i], (*pads)[axes + i]})
        if (each < -kFarthest || each > kFarthest) return node.refuse("an output size that no image has");
      extra[i] = size[i] - ((*from - 1) * strides[i] - (*pads)[i] - (*pads)[axes + i] + dilations[i] * (*kernel - 1) + 1);
    }
  }
  if (!extra.empty()) {
    if (extra.size() == 1) extra.resize(axes, extra[0]);
    attributes.emplace("output_padding", extra);
  }
  out_image(node, "Output", node.b.add(op, {x, weight, node.maybe("Bias")}, std::move(attributes)));
}

/// One axis of an adaptive average: row i of the matrix averages the elements from floor(i in / out) to ceil((i + 1) in / out).
ValueId averages(Node& node, int64_t from, int64_t to) {
  std::vector<double> matrix(static_cast<size_t>(from * to), 0.0);
  for (int64_t i = 0; i < to; ++i) {
    const int64_t begin = i * from / to, end = ((i + 1) * from + to - 1) / to;
    for (int64_t j = begin; j < end; ++j) matrix[static_cast<size_t>(i * from + j)] = 1.0 / static_cast<double>(end - begin);
  }
  return node.floats(matrix, Shape{to, from});
}

ValueId greatest(Node& node, ValueId x, int64_t axis, int64_t from, int64_t to) {
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < to; ++i) {
    const ValueId part = node.b.slice(x, axis, i * from / to, ((i + 1) * from + to - 1) / to);
    parts.push_back(node.unary(Op::kReduceMax, part, {{"axes", List{axis}}, {"keepdims", int64_t{1}}}));
  }
  return node.concat(parts, axis);
}

constexpr int64_t kMostBins = 1024;

/// So many windows along an axis whose size the request decides.
ValueId cut_into(Node& node, ValueId x, int64_t axis, int64_t bins, bool maximum) {
  const ValueId size = node.size_of(x, axis), all = node.b.number(DType::kInt64, static_cast<double>(bins));
  const auto times = [&](int64_t factor) { return node.binary(Op::kMul, size, node.b.integers({factor})); };
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < bins; ++i) {
    const ValueId begin = node.binary(Op::kDiv, times(i), all);
    const ValueId end = node.binary(Op::kDiv, node.binary(Op::kAdd, times(i + 1), node.b.integers({bins - 1})), all);
    const ValueId part = node.b.add(Op::kSlice, {x, begin, end, node.b.integers({axis})});
    parts.push_back(node.unary(maximum ? Op::kReduceMax : Op::kReduceMean, part, {{"axes", List{axis}}, {"keepdims", int64_t{1}}}));
  }
  return node.concat(parts, axis);
}

void import_adaptive_pool(Node& node, ValueId x, const List& bins, bool maximum) {
  constexpr int64_t kMostCuts = 64;
  const size_t axes = bins.size();
  List from(axes), window(axes);
  bool whole = true, known = true, even = true;
  for (size_t i = 0; i < axes; ++i) {
    const auto size = node.b.size(x, i + 2);
    from[i] = size.value_or(0);
    whole &= bins[i] == 1;
    known &= size.has_value() && bins[i] > 0 && bins[i] <= kMostBins && *size > 0 && *size <= kMostBins;
    even &= known && from[i] % bins[i] == 0;
    window[i] = even ? from[i] / bins[i] : 0;
  }
  if (whole) return out_image(node, "Out", node.unary(maximum ? Op::kGlobalMaxPool : Op::kGlobalAveragePool, x));
  if (!known && std::ranges::any_of(bins, [](int64_t each) { return each < 1 || each > kMostCuts; }))
    return node.refuse(fmt::format("an adaptive pool to more than {} elements where sizes are unknown", kMostCuts));
  if (!known) {
    for (size_t i = 0; i < axes; ++i) x = cut_into(node, x, static_cast<int64_t>(i) + 2, bins[i], maximum);
    return out_image(node, "Out", x);
  }
  if (even) {
    const Attributes attributes{{"kernel_shape", window}, {"strides", window}};
    return out_image(node, "Out", node.unary(maximum ? Op::kMaxPool : Op::kAveragePool, x, attributes));
  }
  if (maximum) {
    for (size_t i = 0; i < axes; ++i) x = greatest(node, x, static_cast<int64_t>(i) + 2, from[i], bins[i]);
    return out_image(node, "Out", x);
  }
  if (axes != 2) return node.refuse("an adaptive pool of a volume into windows of several sizes");
  const ValueId rows = node.binary(Op::kMatMul, averages(node, from[0], bins[0]), x);
  out_image(node, "Out", node.binary(Op::kMatMul, rows, node.b.transpose(averages(node, from[1], bins[1]), {1, 0})));
}

void import_pool(Node& node, Op /*op*/) {
  const ValueId x = image(node, "X");
  const size_t axes = spatial_axes(node, x);
  const std::string type = node.source().type;
  const bool maximum = type.starts_with("max_pool") || node.text("pooling_type", "max") == "max";
  List kernel = node.known_list("ksize|kernel_size", "KernelSize").value_or(List{});
  if (node.flag("global_pooling")) kernel.assign(axes, 1);
  if (kernel.size() == 1) kernel.resize(axes, kernel[0]);
  if (kernel.size() != axes) return node.corrupt("a window with another number of axes");
  const bool adaptive = node.flag("adaptive") || node.flag("global_pooling");
  if (node.wants("Mask") && adaptive) return node.refuse("an adaptive pool with indices");
  if (adaptive) return import_adaptive_pool(node, x, kernel, maximum);
  Attributes attributes{
      {"kernel_shape", kernel}, {"strides", repeated(node, "strides", axes, 1)}, {"ceil_mode", int64_t{node.flag("ceil_mode")}}};
  add_padding(node, axes, attributes);
  if (!maximum) attributes.emplace("count_include_pad", int64_t{!node.flag("exclusive", true)});
  if (!node.wants("Mask")) return out_image(node, "Out", node.unary(maximum ? Op::kMaxPool : Op::kAveragePool, x, std::move(attributes)));
  // Indices count within one channel; ONNX's count from the start of the tensor.
  const auto results = node.b.add_with_results(Op::kMaxPoolWithIndices, 2, {x}, std::move(attributes));
  ValueId area = node.b.reshape(node.unary(Op::kReduceProd, node.b.slice(node.shape_of(x), 0, 2, static_cast<int64_t>(axes) + 2)), {});
  out_image(node, "Out", results[0]);
  node.out("Mask",
           node.b.cast(node.binary(Op::kMod, results[1], area), node.out_dtype("Mask") == DType::kInt64 ? DType::kInt64 : DType::kInt32));
}

void import_batch_norm(Node& node, Op op) {
  const ValueId x = image(node, "X");
  ValueId y = node.b.add(op, {x, node.in("Scale"), node.in("Bias"), node.in("Mean"), node.in("Variance")},
                         {{"epsilon", node.number("epsilon", 1e-5)}});
  if (node.source().type.starts_with("fused_")) y = activate(node, node.text("act_type", "relu"), y);
  out_image(node, "Y", y);
}

/// A parameter of a normalisation, or so many ones or zeros.
ValueId parameter(Node& node, std::string_view slot, std::optional<int64_t> count, double fallback) {
  if (const ValueId given = node.maybe(slot); given != kNone) return given;
  if (!count || *count < 0 || *count > (int64_t{1} << 20)) {
    node.refuse("a normalisation of an unknown number of elements without parameters");
    return node.b.number(DType::kFloat32, fallback);
  }
  return node.floats(std::vector<double>(static_cast<size_t>(*count), fallback), Shape{*count});
}

void import_layer_norm(Node& node, Op op) {
  const ValueId x = node.in("X");
  const size_t rank = node.rank(x);
  const int64_t axis = node.axis(node.integer("begin_norm_axis", 1), rank);
  List sizes;
  std::optional<int64_t> count = 1;
  for (size_t i = static_cast<size_t>(axis); i < rank; ++i) {
    const auto size = node.b.size(x, i);
    sizes.push_back(size.value_or(-1));
    count = size && count && *count <= (int64_t{1} << 20) ? std::optional(*count * *size) : std::nullopt;
  }
  ValueId scale = parameter(node, "Scale", count, 1), bias = node.maybe("Bias");
  if (sizes.size() > 1) {
    scale = node.b.reshape(scale, sizes);
    if (bias != kNone) bias = node.b.reshape(bias, sizes);
  }
  node.out("Y",
           node.b.add(op, {x, scale, bias},
                      {{"axis", axis == static_cast<int64_t>(rank) - 1 ? int64_t{-1} : axis}, {"epsilon", node.number("epsilon", 1e-5)}}));
}

/// group_norm and instance_norm.
void import_channel_norm(Node& node, Op op) {
  const ValueId x = image(node, "X");
  const auto channels = node.b.size(x, 1);
  Attributes attributes{{"epsilon", node.number("epsilon", 1e-5)}};
  if (op == Op::kGroupNormalization) attributes.emplace("num_groups", node.integer("groups", 1));
  out_image(node, "Y",
            node.b.add(op, {x, parameter(node, "Scale", channels, 1), parameter(node, "Bias", channels, 0)}, std::move(attributes)));
}

/// ONNX divides alpha by the number of channels in a window; Paddle does not.
void import_lrn(Node& node, Op op) {
  const int64_t n = node.integer("n", 5);
  out_image(node, "Out",
            node.unary(op, image(node, "X"),
                       {{"size", n},
                        {"alpha", node.number("alpha", 1e-4) * static_cast<double>(n)},
                        {"beta", node.number("beta", 0.75)},
                        {"bias", node.number("k", 1)}}));
}

/// Each element goes to its place in the plane of its channel; the others are zero.
void import_unpool(Node& node, Op op) {
  const ValueId x = node.in("X"), size = node.list("output_size", "OutputSize");
  if (size == kNone || node.b.size(size, 0) != 2) return node.refuse("an unpooling of other than images");
  const ValueId planes = node.b.slice(node.shape_of(x), 0, 0, 2);
  const ValueId area = node.unary(Op::kReduceProd, size, {{"axes", List{0}}, {"keepdims", int64_t{1}}});
  const ValueId zeros = node.binary(Op::kExpand, node.b.number(node.b.dtype(x), 0), node.concat({planes, area}, 0));
  const ValueId places = node.b.cast(node.b.reshape(node.in("Indices"), {0, 0, -1}), DType::kInt64);
  const ValueId filled = node.b.add(op, {zeros, places, node.b.reshape(x, {0, 0, -1})}, {{"axis", int64_t{2}}});
  node.out("Out", node.binary(Op::kReshape, filled, node.concat({planes, size}, 0)));
}

constexpr OperatorRow kNetworkRows[] = {
    {"batch_norm sync_batch_norm", "batch_norm sync_batch_norm", "X Mean Variance Scale Bias", "Y", import_batch_norm,
     Op::kBatchNormalization},
    {"fused_batch_norm_act", "fused_batch_norm_act", "X Scale Bias Mean Variance", "Y", import_batch_norm, Op::kBatchNormalization},
    {"conv2d conv3d depthwise_conv2d", "conv2d conv3d depthwise_conv2d", "Input Filter", "Output", import_conv, Op::kConv},
    {"conv2d_fusion fused_conv2d_add_act", "fused_conv2d_add_act", "Input Filter Bias ResidualData", "Output", import_conv, Op::kConv},
    {"conv2d_transpose conv3d_transpose depthwise_conv2d_transpose", "conv2d_transpose conv3d_transpose depthwise_conv2d_transpose",
     "Input Filter OutputSizeTensor", "Output", import_conv_transpose, Op::kConvTranspose},
    {"", "conv2d_transpose_bias", "Input Filter Bias OutputSizeTensor", "Output", import_conv_transpose, Op::kConvTranspose},
    {"group_norm", "group_norm", "X Scale Bias", "Y", import_channel_norm, Op::kGroupNormalization},
    {"instance_norm", "instance_norm", "X Scale Bias", "Y", import_channel_norm, Op::kInstanceNormalization},
    {"layer_norm", "layer_norm", "X Scale Bias", "Y", import_layer_norm, Op::kLayerNormalization},
    {"lrn", "lrn", "X", "Out MidOut", import_lrn, Op::kLRN},
    {"max_pool2d_with_index max_pool3d_with_index", "max_pool2d_with_index max_pool3d_with_index", "X", "Out Mask", import_pool},
    {"pool2d pool3d", "pool2d pool3d", "X KernelSize", "Out", import_pool},
    {"unpool", "unpool", "X Indices OutputSize", "Out", import_unpool, Op::kScatterElements},
};

}  // namespace

std::span<const OperatorRow> network_operators() { return kNetworkRows; }

}  // namespace serin::formats::paddle
