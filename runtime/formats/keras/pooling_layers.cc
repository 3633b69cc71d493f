// pooling_layers.cc: pools over windows and over all places.

#include <fmt/format.h>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

size_t pooled_axes(const Layer& layer) {
  const size_t digit = layer.class_name().find_first_of("123");
  return digit == std::string::npos ? 2 : static_cast<size_t>(layer.class_name()[digit] - '0');
}

void import_window_pool(Layer& layer) {
  const size_t spatial = pooled_axes(layer);
  if (layer.rank(0) != spatial + 2) return layer.corrupt(fmt::format("its input has not {} axes", spatial + 2));
  const bool largest = layer.class_name().starts_with("Max"), first = layer.channels_first();
  List window = layer.integers("pool_size", spatial, 2);
  List strides = layer.is_set("strides") ? layer.integers("strides", spatial, 1) : window;
  const std::string padding = layer.text("padding", "valid");
  if (padding != "valid" && padding != "same") return layer.unsupported(fmt::format("padding '{}'", padding));
  if (spatial == 1) {
    window.insert(window.begin(), 1);
    strides.insert(strides.begin(), 1);
  }
  const auto over_axes = [&](const List& spatial_sizes) {
    List all = {1};
    if (first) all.push_back(1);
    all.insert(all.end(), spatial_sizes.begin(), spatial_sizes.end());
    if (!first) all.push_back(1);
    return all;
  };
  ValuePtr x = layer.as_float(layer.value(0));
  const int64_t raised = first ? 2 : 1;
  if (spatial == 1) x = layer.op("ExpandDims", {x, layer.constant({raised})});
  x = layer.op(largest ? (spatial == 3 ? "MaxPool3D" : "MaxPool") : (spatial == 3 ? "AvgPool3D" : "AvgPool"), {x},
               {{"ksize", attr(over_axes(window))},
                {"strides", attr(over_axes(strides))},
                {"padding", attr(padding == "same" ? std::string_view("SAME") : std::string_view("VALID"))},
                {"data_format", attr(first ? std::string_view("NCHW") : std::string_view("NHWC"))}});
  if (spatial == 1) x = layer.op("Squeeze", {x}, {{"squeeze_dims", attr(List{raised})}});
  layer.out(x);
}

/// The mean of the steps that count.
void masked_mean(Layer& layer, const ValuePtr& mask) {
  graph::Builder& b = layer.b();
  const ValueId counts = b.unsqueeze(b.cast(layer.scope().plain(*mask), DType::kFloat32), {2});
  const auto sum = [&](ValueId x) {
    return b.add(Op::kReduceSum, {x}, {{"axes", List{1}}, {"keepdims", int64_t{layer.flag("keepdims")}}});
  };
  const ValueId x = layer.scope().plain(*layer.as_float(layer.value(0)));
  layer.out(b.add(Op::kDiv, {sum(b.add(Op::kMul, {x, counts})), sum(counts)}));
}

void import_global_pool(Layer& layer) {
  const size_t spatial = pooled_axes(layer);
  if (layer.rank(0) != spatial + 2) return layer.corrupt(fmt::format("its input has not {} axes", spatial + 2));
  const bool largest = layer.class_name().starts_with("GlobalMax");
  const auto given = layer.named("mask");
  if (const ValuePtr mask = given.empty() ? layer.input(0).mask : layer.value(given[0]); mask && !largest && spatial == 1) {
    if (layer.channels_first()) return layer.unsupported("a mask with channels first");
    return masked_mean(layer, mask);
  }
  List axes;
  for (size_t i = 0; i < spatial; ++i) axes.push_back(static_cast<int64_t>(i) + (layer.channels_first() ? 2 : 1));
  layer.out(layer.op(largest ? "Max" : "Mean", {layer.as_float(layer.value(0)), layer.constant(axes)},
                     {{"keep_dims", attr(int64_t{layer.flag("keepdims")})}}));
}

constexpr LayerRow kPools[] = {
    {"AveragePooling1D", import_window_pool},       {"AveragePooling2D", import_window_pool},
    {"AveragePooling3D", import_window_pool},       {"GlobalAveragePooling1D", import_global_pool},
    {"GlobalAveragePooling2D", import_global_pool}, {"GlobalAveragePooling3D", import_global_pool},
    {"GlobalMaxPooling1D", import_global_pool},     {"GlobalMaxPooling2D", import_global_pool},
    {"GlobalMaxPooling3D", import_global_pool},     {"MaxPooling1D", import_window_pool},
    {"MaxPooling2D", import_window_pool},           {"MaxPooling3D", import_window_pool},
};

}  // namespace

std::span<const LayerRow> pooling_layers() { return kPools; }

}  // namespace serin::formats::keras
