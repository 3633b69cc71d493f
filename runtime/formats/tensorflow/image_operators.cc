// image_operators.cc: convolutions, pools and normalisations of images, with channels first whatever the file has.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

/// What the attributes say about the spatial axes.
struct WindowAttrs {
  List kernel, strides, dilations, pads;  ///< pads: begins, then ends
  bool same = false, known = true;        ///< known: `pads` is right; otherwise auto_pad
};

/// Spatial entries of a list of one number for each axis of the image.
List spatial_part(NodeImport& n, std::string_view key, size_t spatial) {
  const List all = n.integers(key);
  if (all.empty()) return List(spatial, 1);
  const bool fits = all.size() == spatial + 2 && std::ranges::all_of(all, [](int64_t v) { return v >= 1 && v <= INT32_MAX; });
  if (!fits || all[0] != 1 || all[n.channels_first() ? 1 : spatial + 1] != 1) {
    n.unsupported(fmt::format("{} is [{}]", key, fmt::join(all, ",")));
    return List(spatial, 1);
  }
  const auto begin = all.begin() + (n.channels_first() ? 2 : 1);
  return {begin, begin + static_cast<std::ptrdiff_t>(spatial)};
}

/// Pads for "SAME": the result has ceil(size / stride) places, and the odd pad goes to the end.
void same_pads(NodeImport& n, WindowAttrs& window, const std::vector<std::optional<int64_t>>& sizes) {
  const size_t spatial = sizes.size();
  window.pads.assign(2 * spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t total = 0;
    if (sizes[i])
      total = std::max<int64_t>(((*sizes[i] + window.strides[i] - 1) / window.strides[i] - 1) * window.strides[i] + reach - *sizes[i], 0);
    else if (window.strides[i] == 1)
      total = reach - 1;
    else
      window.known = false;
    window.pads[i] = total / 2;
    window.pads[spatial + i] = total - total / 2;
  }
  if (!window.known && n.text("padding") != "SAME") n.unsupported("padding of an unknown size");
}

WindowAttrs read_window(NodeImport& n, const List& kernel, const std::vector<std::optional<int64_t>>& sizes) {
  const size_t spatial = sizes.size();
  WindowAttrs window{kernel, spatial_part(n, "strides", spatial), spatial_part(n, "dilations", spatial), List(2 * spatial, 0)};
  const std::string_view padding = n.text("padding");
  if (padding == "SAME") {
    window.same = true;
    same_pads(n, window, sizes);
  } else if (padding == "EXPLICIT") {
    const List all = n.integers("explicit_paddings");
    if (all.size() != 2 * (spatial + 2)) {
      n.corrupt(fmt::format("has {} explicit paddings", all.size()));
      return window;
    }
    const size_t from = n.channels_first() ? 2 : 1;
    for (size_t i = 0; i < spatial; ++i) {
      window.pads[i] = all[2 * (from + i)];
      window.pads[spatial + i] = all[2 * (from + i) + 1];
    }
    if (std::ranges::any_of(window.pads, [](int64_t pad) { return pad < 0 || pad > INT32_MAX; })) n.corrupt("negative explicit paddings");
  } else if (padding != "VALID") {
    n.corrupt(fmt::format("padding is '{}'", padding));
  }
  return window;
}

graph::Attributes window_attributes_of(const WindowAttrs& window) {
  graph::Attributes attributes{{"kernel_shape", window.kernel}, {"strides", window.strides}, {"dilations", window.dilations}};
  if (window.known)
    attributes.emplace("pads", window.pads);
  else
    attributes.emplace("auto_pad", std::string("SAME_UPPER"));
  return attributes;
}

/// An image with its channels first.
struct Image {
  ValueId id = kNone;
  std::vector<std::optional<int64_t>> sizes;  ///< of the spatial axes
  std::optional<int64_t> channels;
};

/// A line with an axis of size 1 in front is kept as that: first(x) with the axis, not the Transpose of both.
void keep_line(NodeImport& n, Value& value) {
  const graph::Graph& graph = n.scope().graph();
  if (value.first != kNone || value.plain == kNone) return;
  const graph::NodeId widened = graph.producer(value.plain);
  if (!graph.is(widened, Op::kUnsqueeze) || graph.node(widened).integers("axes") != List{1}) return;
  const ValuePtr line = plain_value(graph.input(widened, 0));
  if (n.builder().rank(line->plain) == 3) value.first = n.builder().unsqueeze(n.scope().first(*line), {2});
}

/// The line of an image of height 1; kNone otherwise.
ValueId line_of(NodeImport& n, ValueId image) {
  const graph::Graph& graph = n.scope().graph();
  const graph::NodeId widened = graph.producer(image);
  const bool is_line = graph.is(widened, Op::kUnsqueeze) && graph.node(widened).integers("axes") == List{2} && n.builder().rank(image) == 4;
  return is_line ? graph.input(widened, 0) : kNone;
}

Image image_operand(NodeImport& n, size_t i, std::optional<size_t> spatial = std::nullopt) {
  if (!n.channels_first()) keep_line(n, *n.value(i));
  Image image{n.channels_first() ? n.in(i) : n.first(i), {}, {}};
  graph::Builder& b = n.builder();
  const auto rank = b.rank(image.id);
  if (!rank || *rank < 3 || (spatial && *rank != *spatial + 2)) {
    n.unsupported(fmt::format("operand {} has no image's rank", i));
    image.sizes.resize(spatial.value_or(2));
    return image;
  }
  image.channels = b.size(image.id, 1);
  for (size_t axis = 2; axis < *rank; ++axis) image.sizes.push_back(b.size(image.id, axis));
  return image;
}

/// A convolution whose image was taken apart may become a dilated one (space_operators.cc).
void note_taken_apart(NodeImport& n, const WindowAttrs& window, ValueId weight, int64_t group) {
  const auto apart = n.value(0)->apart;
  const bool plain = std::ranges::all_of(window.strides, [](int64_t v) { return v == 1; }) &&
                     std::ranges::all_of(window.pads, [](int64_t v) { return v == 0; });
  if (!apart || !plain || apart->block.size() != window.kernel.size() || n.channels_first()) return;
  TakenApart noted = *apart;
  noted.weight = weight;
  noted.kernel = window.kernel;
  noted.group = group;
  n.note_taken_apart(std::make_shared<const TakenApart>(std::move(noted)));
}

/// A convolution of an image; of a line if its height is 1.
ValueId convolve(NodeImport& n, const Image& image, ValueId weight, const WindowAttrs& window, int64_t group) {
  graph::Builder& b = n.builder();
  graph::Attributes attributes = window_attributes_of(window);
  attributes.emplace("group", group);
  const ValueId line = line_of(n, image.id);
  const graph::ConstantPtr constant = n.scope().graph().constant(weight);
  const bool flat = line != kNone && constant && window.known && window.kernel[0] == 1 && window.pads[0] == 0 && window.pads[2] == 0;
  if (!flat) return b.add(Op::kConv, {image.id, weight}, std::move(attributes));
  const ValueId narrow = n.scope().reshaped(weight, Shape{constant->shape[0], constant->shape[1], constant->shape[3]});
  for (const char* const key : {"kernel_shape", "strides", "dilations", "pads"}) {
    auto& values = std::get<List>(attributes.at(key));
    values = key == std::string_view("pads") ? List{values[1], values[3]} : List{values[1]};
  }
  return b.unsqueeze(b.add(Op::kConv, {line, narrow}, std::move(attributes)), {2});
}

void image_out(NodeImport& n, ValueId id) { n.channels_first() ? n.out(id) : n.out_first(id); }

/// Spatial sizes of a filter [h, w, in, out].
List kernel_of(NodeImport& n, size_t i, size_t spatial) {
  List kernel;
  const ValueId id = n.in(i);
  for (size_t axis = 0; axis < spatial; ++axis) {
    const auto size = n.builder().size(id, axis);
    if (!size || *size < 1 || *size > INT32_MAX) n.unsupported("a filter of unknown size");
    kernel.push_back(std::clamp<int64_t>(size.value_or(1), 1, INT32_MAX));
  }
  return kernel;
}

/// The pads of a Pad before a "VALID" window become the window's.
void take_up_padding(NodeImport& n, Image& image, WindowAttrs& window) {
  const auto found = n.scope().padded.find(image.id);
  if (found == n.scope().padded.end() || n.text("padding") != "VALID" || found->second.pads.size() != window.pads.size()) return;
  image.id = found->second.x;
  window.pads = found->second.pads;
}

void import_conv(NodeImport& n, Op) {
  const size_t spatial = n.def().op == "Conv3D" ? 3 : 2;
  Image image = image_operand(n, 0, spatial);
  if (n.rank(1) != spatial + 2) return n.corrupt("the filter has a wrong rank");
  WindowAttrs window = read_window(n, kernel_of(n, 1, spatial), image.sizes);
  take_up_padding(n, image, window);
  const auto taken = n.builder().size(n.in(1), spatial);
  if (!taken || *taken < 1 || !image.channels || *image.channels % *taken != 0) return n.unsupported("channels that do not fit the filter");
  List order = {static_cast<int64_t>(spatial) + 1, static_cast<int64_t>(spatial)};
  for (size_t axis = 0; axis < spatial; ++axis) order.push_back(static_cast<int64_t>(axis));
  const ValueId weight = n.scope().permuted(n.in(1), order);
  image_out(n, convolve(n, image, weight, window, *image.channels / *taken));
  note_taken_apart(n, window, weight, *image.channels / *taken);
}

/// The filter is [h, w, channels, multiplier]; output channel c * multiplier + m is of input channel c.
void import_depthwise(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  Image image = image_operand(n, 0, 2);
  if (n.rank(1) != 4) return n.corrupt("the filter has a wrong rank");
  WindowAttrs window = read_window(n, kernel_of(n, 1, 2), image.sizes);
  take_up_padding(n, image, window);
  const auto channels = b.size(n.in(1), 2), multiplier = b.size(n.in(1), 3);
  if (!channels || !multiplier || channels != image.channels) return n.unsupported("channels that do not fit the filter");
  ValueId weight = n.scope().permuted(n.in(1), {2, 3, 0, 1});
  if (n.scope().graph().constant(weight))
    weight = n.scope().reshaped(weight, Shape{*channels * *multiplier, 1, window.kernel[0], window.kernel[1]});
  else
    weight = b.reshape(weight, {*channels * *multiplier, 1, window.kernel[0], window.kernel[1]});
  image_out(n, convolve(n, image, weight, window, *channels));
  note_taken_apart(n, window, weight, *channels);
}

/// Operands: the size of the result, the filter [h, w, out, in], the image.
void import_conv_transpose(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const size_t spatial = n.def().op == "Conv2DBackpropInput" ? 2 : 3;
  const Image image = image_operand(n, 2, spatial);
  if (n.rank(1) != spatial + 2) return n.corrupt("the filter has a wrong rank");
  const List kernel = kernel_of(n, 1, spatial);
  const graph::Dims* const wanted = b.elements(n.in(0));
  if (!wanted || wanted->size() != spatial + 2) return n.unsupported("the size of the result depends on the data");
  std::vector<std::optional<int64_t>> sizes;
  sizes.reserve(spatial);
  for (size_t i = 0; i < spatial; ++i) sizes.push_back((*wanted)[i + (n.channels_first() ? 2 : 1)].value());
  const WindowAttrs window = read_window(n, kernel, sizes);
  if (std::ranges::any_of(window.dilations, [](int64_t v) { return v != 1; })) return n.unsupported("a dilated transposed convolution");
  List output_padding;
  for (size_t i = 0; i < spatial; ++i) {  // (in - 1) * stride + kernel - pads + output_padding = out
    if (!sizes[i] || !image.sizes[i]) {
      if (!window.same || window.strides[i] < kernel[i])
        output_padding.push_back(0);
      else
        output_padding.push_back(window.strides[i] - kernel[i]);
      continue;
    }
    output_padding.push_back(*sizes[i] - (*image.sizes[i] - 1) * window.strides[i] - kernel[i] + window.pads[i] + window.pads[spatial + i]);
  }
  if (std::ranges::any_of(output_padding, [](int64_t pad) { return pad < 0; })) return n.corrupt("the size of the result fits no image");
  List order = {static_cast<int64_t>(spatial) + 1, static_cast<int64_t>(spatial)};
  for (size_t axis = 0; axis < spatial; ++axis) order.push_back(static_cast<int64_t>(axis));
  graph::Attributes attributes = window_attributes_of(window);
  attributes.emplace("group", int64_t{1});
  if (window.known)
    attributes.emplace("output_padding", output_padding);
  else
    attributes["pads"] = List(2 * spatial, 0);
  if (!window.known && !std::ranges::all_of(kernel, [&](int64_t k) { return k == window.strides[0]; }))
    return n.unsupported("a transposed convolution of an image of unknown size");
  attributes.erase("auto_pad");
  image_out(n, b.add(Op::kConvTranspose, {image.id, n.scope().permuted(n.in(1), order)}, std::move(attributes)));
}

/// Whether no element is below zero, so that zeros around it win no maximum.
bool never_negative(const graph::Graph& graph, ValueId id) {
  const graph::NodeId producer = graph.producer(id);
  if (producer == kNone) return false;
  const graph::Node& node = graph.node(producer);
  return node.op == Op::kRelu || node.op == Op::kSigmoid || (node.op == Op::kClip && node.number("min", -1) >= 0);
}

void import_pool(NodeImport& n, Op op) {
  Image image = image_operand(n, 0);
  WindowAttrs window = read_window(n, spatial_part(n, "ksize", image.sizes.size()), image.sizes);
  const auto padded = n.scope().padded.find(image.id);
  if (op == Op::kMaxPool && padded != n.scope().padded.end() && never_negative(n.scope().graph(), padded->second.x)) {
    const List& pads = padded->second.pads;
    bool shorter = pads.size() == window.pads.size();
    for (size_t i = 0; shorter && i < pads.size(); ++i) shorter = pads[i] < window.kernel[i % window.kernel.size()];
    if (shorter) take_up_padding(n, image, window);
  }
  graph::Attributes attributes = window_attributes_of(window);
  attributes.erase("dilations");
  attributes.emplace("ceil_mode", int64_t{0});
  if (op == Op::kAveragePool) attributes.emplace("count_include_pad", int64_t{0});
  image_out(n, n.builder().add(op, {image.id}, std::move(attributes)));
}

void import_batch_norm(NodeImport& n, Op op) {
  if (n.integer("is_training", 1) != 0) return n.unsupported("is_training: export the model for inference");
  const Image image = image_operand(n, 0);
  image_out(n, n.builder().add(op, {image.id, n.in(1), n.in(2), n.in(3), n.in(4)}, {{"epsilon", n.number("epsilon", 1e-4F)}}));
  for (size_t i = 1; i < 6; ++i) n.out(n.in(i < 3 ? i + 2 : 3));  // statistics, which inference passes on
}

void import_lrn(NodeImport& n, Op op) {
  const int64_t radius = n.integer("depth_radius", 5);
  if (radius < 0 || radius > 1'000'000) return n.corrupt(fmt::format("depth_radius is {}", radius));
  const auto size = 2 * radius + 1;
  const double alpha = n.number("alpha", 1) * static_cast<double>(size);
  n.out_first(n.builder().add(op, {n.first(0)},
                              {{"size", size}, {"alpha", alpha}, {"beta", n.number("beta", 0.5)}, {"bias", n.number("bias", 1)}}));
}

void import_resize(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const ValueId x = n.first(0);
  const bool nearest = n.def().op == "ResizeNearestNeighbor", cubic = n.def().op == "ResizeBicubic";
  const bool corners = n.flag("align_corners"), half = n.flag("half_pixel_centers");
  graph::Attributes attributes{{"mode", std::string(nearest ? "nearest" : cubic ? "cubic" : "linear")}};
  const std::string mode = corners ? "align_corners" : !half ? "asymmetric" : nearest ? "tf_half_pixel_for_nn" : "half_pixel";
  attributes.emplace("coordinate_transformation_mode", mode);
  if (nearest) attributes.emplace("nearest_mode", std::string(corners ? "round_prefer_ceil" : "floor"));
  if (cubic) {
    attributes.emplace("cubic_coeff_a", half ? -0.5 : -0.75);
    if (half) attributes.emplace("exclude_outside", int64_t{1});
  }
  const ValueId sizes = b.add(Op::kConcat, {b.slice(b.add(Op::kShape, {x}), 0, 0, 2), n.i64(1)}, {{"axis", int64_t{0}}});
  const ValueId resized = b.add(op, {x, kNone, kNone, sizes}, std::move(attributes));
  n.out_first(nearest ? resized : b.cast(resized, DType::kFloat32));
}

void import_depth_to_space(NodeImport& n, Op op) {
  if (n.channels_first()) return n.unsupported("data_format NCHW");
  graph::Attributes attributes{{"blocksize", n.integer("block_size", 0)}};
  if (op == Op::kDepthToSpace) attributes.emplace("mode", std::string("DCR"));
  n.out_first(n.builder().add(op, {n.first(0)}, std::move(attributes)));
}

constexpr std::string_view kBatchNormOutputs = "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3";

constexpr OperatorRow kImages[] = {
    {"AvgPool", 1, 1, import_pool, Op::kAveragePool},
    {"AvgPool3D", 1, 1, import_pool, Op::kAveragePool},
    {"Conv2D", 2, 2, import_conv},
    {"Conv2DBackpropInput", 3, 3, import_conv_transpose},
    {"Conv3D", 2, 2, import_conv},
    {"Conv3DBackpropInputV2", 3, 3, import_conv_transpose},
    {"DepthToSpace", 1, 1, import_depth_to_space, Op::kDepthToSpace},
    {"DepthwiseConv2dNative", 2, 2, import_depthwise},
    {"FusedBatchNorm", 5, 5, import_batch_norm, Op::kBatchNormalization, kBatchNormOutputs},
    {"FusedBatchNormV2", 5, 5, import_batch_norm, Op::kBatchNormalization, kBatchNormOutputs},
    {"FusedBatchNormV3", 5, 5, import_batch_norm, Op::kBatchNormalization, kBatchNormOutputs},
    {"LRN", 1, 1, import_lrn, Op::kLRN},
    {"MaxPool", 1, 1, import_pool, Op::kMaxPool},
    {"MaxPool3D", 1, 1, import_pool, Op::kMaxPool},
    {"ResizeBicubic", 2, 2, import_resize, Op::kResize},
    {"ResizeBilinear", 2, 2, import_resize, Op::kResize},
    {"ResizeNearestNeighbor", 2, 2, import_resize, Op::kResize},
    {"SpaceToDepth", 1, 1, import_depth_to_space, Op::kSpaceToDepth},
};

}  // namespace

std::span<const OperatorRow> image_operators() { return kImages; }

}  // namespace serin::formats::tf
