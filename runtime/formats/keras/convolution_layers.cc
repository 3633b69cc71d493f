// convolution_layers.cc: convolutions. Lines are images of height 1, as TensorFlow's own layers have them.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

/// Spatial axes: the digit in the class, Conv2D.
size_t spatial_axes(const Layer& layer) {
  const size_t digit = layer.class_name().find_first_of("123");
  return digit == std::string::npos ? 2 : static_cast<size_t>(layer.class_name()[digit] - '0');
}

/// One entry for each axis of an image, of which the spatial ones are given.
List over_axes(const List& spatial, bool channels_first) {
  List all = {1};
  if (channels_first) all.push_back(1);
  all.insert(all.end(), spatial.begin(), spatial.end());
  if (!channels_first) all.push_back(1);
  return all;
}

ValuePtr with_bias(Layer& layer, ValuePtr x, size_t index, int64_t channels) {
  if (!layer.flag("use_bias", true)) return x;
  const ValuePtr bias = layer.weight(index, {channels}, "the bias");
  return layer.op("BiasAdd", {std::move(x), bias}, {{"data_format", attr(layer.channels_first() ? "NCHW" : "NHWC")}});
}

/// Padding "causal" of a line: zeros before it.
ValuePtr before_line(Layer& layer, const ValuePtr& x, int64_t zeros) {
  if (zeros == 0) return x;
  const List pads = layer.channels_first() ? List{0, 0, 0, 0, zeros, 0} : List{0, 0, zeros, 0, 0, 0};
  return layer.op("Pad", {x, layer.constant(pads)});
}

struct Window {
  List strides, dilations;
  std::string padding;
};

Window window_of(Layer& layer, size_t spatial) {
  Window window{layer.integers("strides", spatial, 1), layer.integers("dilation_rate", spatial, 1), layer.text("padding", "valid")};
  for (const List* list : {&window.strides, &window.dilations})
    for (const int64_t value : *list)
      if (value < 1 || value > INT32_MAX) layer.corrupt("a stride or dilation below 1");
  return window;
}

tf::Attrs attrs_of(Layer& layer, const Window& window) {
  const bool first = layer.channels_first();
  const std::string_view padding = window.padding == "same" ? "SAME" : "VALID";
  if (window.padding != "same" && window.padding != "valid") layer.unsupported(fmt::format("padding '{}'", window.padding));
  return {{"strides", attr(over_axes(window.strides, first))},
          {"dilations", attr(over_axes(window.dilations, first))},
          {"padding", attr(padding)},
          {"data_format", attr(first ? std::string_view("NCHW") : std::string_view("NHWC"))}};
}

/// A filter [k, in, out] as [1, k, in, out].
ValuePtr raised(Layer& layer, const ValuePtr& filter) {
  const graph::ConstantPtr constant = layer.scope().graph().constant(filter->plain);
  if (!constant || constant->shape.rank() != 3) {
    if (!layer.failed()) layer.corrupt("its filter has not three axes");
    return filter;
  }
  return tf::plain_value(layer.scope().reshaped(filter->plain, Shape{1, constant->shape[0], constant->shape[1], constant->shape[2]}));
}

/// A convolution by one of TensorFlow's nodes for images; `filter` has the spatial axes of the layer.
ValuePtr convolve(Layer& layer, std::string_view node, ValuePtr x, ValuePtr filter, Window window, size_t spatial, int64_t kernel) {
  if (spatial != 1) return layer.op(node, {std::move(x), std::move(filter)}, attrs_of(layer, window));
  if (window.padding == "causal") {
    x = before_line(layer, x, (kernel - 1) * window.dilations[0]);
    window.padding = "valid";
  }
  window.strides.insert(window.strides.begin(), node == "DepthwiseConv2dNative" ? window.strides[0] : 1);
  window.dilations.insert(window.dilations.begin(), 1);
  const int64_t axis = layer.channels_first() ? 2 : 1;
  x = layer.op("ExpandDims", {std::move(x), layer.constant({axis})});
  x = layer.op(node, {std::move(x), raised(layer, filter)}, attrs_of(layer, window));
  return layer.op("Squeeze", {std::move(x)}, {{"squeeze_dims", attr(List{axis})}});
}

int64_t channels_of(Layer& layer) { return layer.size(0, layer.channels_first() ? 1 : -1); }

/// A filter whose spatial sizes are `kernel`, and then `in` and `out`.
ValuePtr filter_of(Layer& layer, size_t index, const List& kernel, int64_t in, int64_t out, std::string_view what) {
  switch (kernel.size()) {
    case 1: return layer.weight(index, {kernel[0], in, out}, what);
    case 2: return layer.weight(index, {kernel[0], kernel[1], in, out}, what);
    default: return layer.weight(index, {kernel[0], kernel[1], kernel[2], in, out}, what);
  }
}

bool has_rank(Layer& layer, size_t spatial) {
  if (layer.rank(0) == spatial + 2) return true;
  if (!layer.failed()) layer.corrupt(fmt::format("its input has not {} axes", spatial + 2));
  return false;
}

void import_convolution(Layer& layer) {
  const size_t spatial = spatial_axes(layer);
  if (!has_rank(layer, spatial)) return;
  const int64_t groups = layer.integer("groups", 1), filters = layer.integer("filters", 0), channels = channels_of(layer);
  const List kernel = layer.integers("kernel_size", spatial, 1);
  if (groups < 1 || filters < 1 || channels % groups != 0) return layer.corrupt("filters and groups that fit no channels");
  const ValuePtr filter = filter_of(layer, 0, kernel, channels / groups, filters, "the filter");
  const ValuePtr x = convolve(layer, spatial == 3 ? "Conv3D" : "Conv2D", layer.as_float(layer.value(0)), filter, window_of(layer, spatial),
                              spatial, kernel[0]);
  layer.out(layer.activate(with_bias(layer, x, 1, filters), layer.setting("activation")));
}

void import_depthwise(Layer& layer) {
  const size_t spatial = spatial_axes(layer);
  if (!has_rank(layer, spatial)) return;
  const int64_t channels = channels_of(layer), multiplier = layer.integer("depth_multiplier", 1);
  const List kernel = layer.integers("kernel_size", spatial, 1);
  const ValuePtr filter = filter_of(layer, 0, kernel, channels, multiplier, "the filter");
  const ValuePtr x =
      convolve(layer, "DepthwiseConv2dNative", layer.as_float(layer.value(0)), filter, window_of(layer, spatial), spatial, kernel[0]);
  layer.out(layer.activate(with_bias(layer, x, 1, channels * multiplier), layer.setting("activation")));
}

/// A filter for each channel, then one of a single place over all channels.
void import_separable(Layer& layer) {
  const size_t spatial = spatial_axes(layer);
  if (!has_rank(layer, spatial)) return;
  const int64_t channels = channels_of(layer), multiplier = layer.integer("depth_multiplier", 1), filters = layer.integer("filters", 0);
  const List kernel = layer.integers("kernel_size", spatial, 1);
  const ValuePtr depthwise = filter_of(layer, 0, kernel, channels, multiplier, "the depthwise filter");
  const ValuePtr pointwise = filter_of(layer, 1, List(spatial, 1), channels * multiplier, filters, "the pointwise filter");
  ValuePtr x =
      convolve(layer, "DepthwiseConv2dNative", layer.as_float(layer.value(0)), depthwise, window_of(layer, spatial), spatial, kernel[0]);
  x = convolve(layer, "Conv2D", x, pointwise, {List(spatial, 1), List(spatial, 1), "valid"}, spatial, 1);
  layer.out(layer.activate(with_bias(layer, x, 2, filters), layer.setting("activation")));
}

/// The size is (in - 1) * stride + kernel for "valid", at least in * stride; in * stride for "same".
void import_transposed(Layer& layer) {
  const size_t spatial = spatial_axes(layer);
  if (!has_rank(layer, spatial)) return;
  graph::Builder& b = layer.b();
  const int64_t channels = channels_of(layer), filters = layer.integer("filters", 0);
  const List kernel = layer.integers("kernel_size", spatial, 1);
  const Window window = window_of(layer, spatial);
  if (layer.integer("groups", 1) != 1) return layer.unsupported("groups in a transposed convolution");
  if (window.padding != "same" && window.padding != "valid") return layer.unsupported(fmt::format("padding '{}'", window.padding));
  const bool given = layer.is_set("output_padding");
  List more = layer.integers("output_padding", spatial, 0), pads(2 * spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = window.dilations[i] * (kernel[i] - 1) + 1, stride = window.strides[i];
    if (window.padding == "valid") {
      if (!given) more[i] = std::max<int64_t>(stride - reach, 0);
      continue;
    }
    // So that the result has in * stride places; with output_padding that many more than (in - 1) * stride + kernel % 2.
    const int64_t wanted = given ? 2 * (reach / 2) - more[i] : reach - stride, all = std::max<int64_t>(wanted, 0);
    more[i] = std::max<int64_t>(-wanted, 0);
    pads[i] = all / 2;
    pads[spatial + i] = all - all / 2;
  }
  const ValuePtr filter = filter_of(layer, 0, kernel, filters, channels, "the filter");
  if (layer.failed()) return;
  List order = {static_cast<int64_t>(spatial) + 1, static_cast<int64_t>(spatial)};
  for (size_t axis = 0; axis < spatial; ++axis) order.push_back(static_cast<int64_t>(axis));
  const ValueId weight = layer.scope().permuted(filter->plain, order);
  const ValuePtr x = layer.as_float(layer.value(0));
  const ValueId image = layer.channels_first() ? layer.scope().plain(*x) : layer.scope().first(*x);
  const ValueId result = b.add(Op::kConvTranspose, {image, weight},
                               {{"kernel_shape", kernel},
                                {"strides", window.strides},
                                {"dilations", window.dilations},
                                {"pads", pads},
                                {"output_padding", more},
                                {"group", int64_t{1}}});
  auto made = std::make_shared<tf::Value>();
  (layer.channels_first() ? made->plain : made->first) = result;
  layer.out(layer.activate(with_bias(layer, made, 1, filters), layer.setting("activation")));
}

constexpr LayerRow kConvolutions[] = {
    {"Conv1D", import_convolution},         {"Conv2D", import_convolution},         {"Conv3D", import_convolution},
    {"Conv1DTranspose", import_transposed}, {"Conv2DTranspose", import_transposed}, {"Conv3DTranspose", import_transposed},
    {"DepthwiseConv1D", import_depthwise},  {"DepthwiseConv2D", import_depthwise},  {"SeparableConv1D", import_separable},
    {"SeparableConv2D", import_separable},
};

}  // namespace

std::span<const LayerRow> convolution_layers() { return kConvolutions; }

}  // namespace serin::formats::keras
