// movement_layers.cc: other shapes, borders, sizes of images.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

void import_flatten(Layer& layer) {
  const auto dims = layer.dims(0);
  if (!dims) return layer.unsupported("an input of unknown rank");
  if (layer.channels_first() && dims->size() > 2) return layer.unsupported("channels first");
  if (dims->size() == 1) return layer.out(layer.b().unsqueeze(layer.plain(0), {1}));
  layer.out(layer.b().reshape(layer.plain(0), {0, -1}));
}

void import_reshape(Layer& layer) {
  List shape = layer.all_integers("target_shape");
  const bool sane = std::ranges::all_of(shape, [](int64_t size) { return size >= -1 && size != 0; }) && std::ranges::count(shape, -1) <= 1;
  if (!sane || shape.size() + 1 > Shape::kMaxRank) return layer.corrupt("a target shape that is none");
  shape.insert(shape.begin(), 0);  // the batch
  layer.out(layer.b().reshape(layer.plain(0), shape));
}

void import_permute(Layer& layer) {
  List order = layer.all_integers("dims");
  const auto rank = layer.rank(0);
  order.insert(order.begin(), 0);
  List sorted = order;
  std::ranges::sort(sorted);
  bool whole = rank && order.size() == *rank;
  for (size_t i = 0; whole && i < sorted.size(); ++i) whole = sorted[i] == static_cast<int64_t>(i);
  if (!whole) return layer.corrupt("'dims' is no order of the axes");
  layer.out(layer.b().transpose(layer.plain(0), order));
}

void import_repeat(Layer& layer) {
  const int64_t count = layer.integer("n", 1);
  if (count < 1 || layer.rank(0) != 2) return layer.corrupt("repeats what is no row");
  const ValueId rows = layer.b().unsqueeze(layer.plain(0), {1});
  layer.out(layer.b().add(Op::kTile, {rows, layer.b().integers({1, count, 1})}));
}

/// Pairs of sizes: a number, a list of numbers, or a list of pairs.
std::vector<std::pair<int64_t, int64_t>> pairs_of(Layer& layer, std::string_view key, size_t spatial) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  const Json given = layer.setting(key);
  if (given.is_array() && given.size() == spatial && (*given.items().begin()).is_array()) {
    for (const Json& each : given.items()) {
      const List two = layer.integers_of(each, key);
      if (two.size() == 2) pairs.emplace_back(two[0], two[1]);
    }
  } else if (spatial == 1) {
    const List two = layer.integers_of(given, key);
    if (two.size() == 1) pairs.emplace_back(two[0], two[0]);
    if (two.size() == 2) pairs.emplace_back(two[0], two[1]);
  } else {
    for (const int64_t both : layer.integers(key, spatial, 0)) pairs.emplace_back(both, both);
  }
  const bool sane = std::ranges::all_of(
      pairs, [](const auto& pair) { return pair.first >= 0 && pair.second >= 0 && pair.first <= INT32_MAX && pair.second <= INT32_MAX; });
  if (pairs.size() == spatial && sane && layer.rank(0) == spatial + 2) return pairs;
  layer.corrupt(fmt::format("'{}' does not fit its input", key));
  return {};
}

size_t bordered_axes(const Layer& layer) {
  const size_t digit = layer.class_name().find_first_of("123");
  return digit == std::string::npos ? 2 : static_cast<size_t>(layer.class_name()[digit] - '0');
}

void import_zero_padding(Layer& layer) {
  const size_t spatial = bordered_axes(layer);
  const auto pairs = pairs_of(layer, "padding", spatial);
  if (pairs.empty()) return;
  List pads = layer.channels_first() ? List{0, 0, 0, 0} : List{0, 0};
  for (const auto& [before, after] : pairs) pads.insert(pads.end(), {before, after});
  if (!layer.channels_first()) pads.insert(pads.end(), {0, 0});
  layer.out(layer.op("Pad", {layer.value(0), layer.constant(pads)}));
}

void import_cropping(Layer& layer) {
  const size_t spatial = bordered_axes(layer);
  const auto pairs = pairs_of(layer, "cropping", spatial);
  if (pairs.empty()) return;
  const ValuePtr x = layer.value(0);
  const bool first = tf::Scope::prefers_first(*x);
  List starts, ends, axes;
  for (size_t i = 0; i < spatial; ++i) {
    starts.push_back(pairs[i].first);
    ends.push_back(pairs[i].second == 0 ? INT64_MAX : -pairs[i].second);
    axes.push_back(static_cast<int64_t>(i) + (first || layer.channels_first() ? 2 : 1));
  }
  layer.out(
      layer.map(x, [&](ValueId id) { return layer.b().add(Op::kSlice, {id}, {{"starts", starts}, {"ends", ends}, {"axes", axes}}); }));
}

void import_up_sampling(Layer& layer) {
  const size_t spatial = bordered_axes(layer);
  if (layer.rank(0) != spatial + 2) return layer.corrupt(fmt::format("its input has not {} axes", spatial + 2));
  const std::string how = layer.text("interpolation", "nearest");
  if (how != "nearest" && how != "bilinear") return layer.unsupported(fmt::format("interpolation '{}'", how));
  const List size = layer.integers("size", spatial, 2);
  std::vector<float> scales = {1, 1};
  for (const int64_t each : size) {
    if (each < 1 || each > 1024) return layer.corrupt(fmt::format("size {}", each));
    scales.push_back(static_cast<float>(each));
  }
  graph::Attributes attributes{{"mode", std::string(how == "nearest" ? "nearest" : "linear")},
                               {"coordinate_transformation_mode", std::string(how == "nearest" ? "asymmetric" : "half_pixel")}};
  if (how == "nearest") attributes.emplace("nearest_mode", std::string("floor"));
  const ValueId factors = layer.floats(scales, Shape{static_cast<int64_t>(scales.size())})->plain;
  const ValuePtr x = layer.as_float(layer.value(0));
  if (layer.channels_first()) return layer.out(layer.b().add(Op::kResize, {layer.scope().plain(*x), kNone, factors}, attributes));
  layer.out_first(layer.b().add(Op::kResize, {layer.scope().first(*x), kNone, factors}, attributes));
}

void import_resizing(Layer& layer) {
  const std::string how = layer.text("interpolation", "bilinear");
  const std::string_view node = how == "bilinear"  ? "ResizeBilinear"
                                : how == "nearest" ? "ResizeNearestNeighbor"
                                : how == "bicubic" ? "ResizeBicubic"
                                                   : "";
  if (node.empty()) return layer.unsupported(fmt::format("interpolation '{}'", how));
  for (const char* const key : {"crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"})
    if (layer.flag(key)) return layer.unsupported(key);
  if (layer.channels_first()) return layer.unsupported("channels first");
  if (layer.rank(0) != 4) return layer.unsupported("an input that is no batch of images");
  const int64_t height = layer.integer("height", 0), width = layer.integer("width", 0);
  if (height < 1 || width < 1 || height > (1 << 20) || width > (1 << 20)) return layer.corrupt("an image without pixels");
  layer.out(layer.op(node, {layer.as_float(layer.value(0)), layer.constant({height, width})}, {{"half_pixel_centers", attr(int64_t{1})}}));
}

/// The middle of larger images.
void import_center_crop(Layer& layer) {
  const int64_t height = layer.integer("height", 0), width = layer.integer("width", 0);
  if (layer.channels_first() || layer.rank(0) != 4) return layer.unsupported("other inputs than images with channels last");
  const int64_t rows = layer.size(0, 1), columns = layer.size(0, 2);
  if (height < 1 || width < 1 || height > rows || width > columns) return layer.unsupported("images that are smaller than the crop");
  const int64_t top = (rows - height) / 2, left = (columns - width) / 2;
  const ValuePtr x = layer.value(0);
  const int64_t axis = tf::Scope::prefers_first(*x) ? 2 : 1;
  layer.out(layer.map(x, [&](ValueId id) {
    return layer.b().add(Op::kSlice, {id},
                         {{"starts", List{top, left}}, {"ends", List{top + height, left + width}}, {"axes", List{axis, axis + 1}}});
  }));
}

constexpr LayerRow kMovements[] = {
    {"CenterCrop", import_center_crop},
    {"Cropping1D", import_cropping},
    {"Cropping2D", import_cropping},
    {"Cropping3D", import_cropping},
    {"Flatten", import_flatten},
    {"Permute", import_permute},
    {"RepeatVector", import_repeat},
    {"Reshape", import_reshape},
    {"Resizing", import_resizing},
    {"UpSampling1D", import_up_sampling},
    {"UpSampling2D", import_up_sampling},
    {"UpSampling3D", import_up_sampling},
    {"ZeroPadding1D", import_zero_padding},
    {"ZeroPadding2D", import_zero_padding},
    {"ZeroPadding3D", import_zero_padding},
};

}  // namespace

std::span<const LayerRow> movement_layers() { return kMovements; }

}  // namespace serin::formats::keras
