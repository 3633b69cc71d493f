// image.cc: resizing, sampling, regions, and images cut into patches.

#include <cmath>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

struct InterpolationRow {
  std::string_view name;
  const char* mode;
  size_t axes;
};

constexpr InterpolationRow kInterpolations[] = {
    {"nearest", "nearest", 2}, {"bilinear", "linear", 2}, {"bicubic", "cubic", 2}, {"linear", "linear", 1}, {"trilinear", "linear", 3},
};

const InterpolationRow& interpolation(const Node& node) {
  const std::string& type = node.source().type;
  for (const InterpolationRow& row : kInterpolations)
    if (type.starts_with(row.name) && type[row.name.size()] == '_') return row;
  return kInterpolations[0];
}

/// Which element of x an element of y is, by align_corners and align_mode.
void add_coordinates(const Node& node, const InterpolationRow& row, Attributes& attributes) {
  const bool corners = node.flag("align_corners", true), nearest = row.mode == std::string_view("nearest");
  std::string mode = corners ? "align_corners" : "half_pixel";
  if (!corners && (nearest || (row.mode == std::string_view("linear") && node.integer("align_mode", 1) == 1))) mode = "asymmetric";
  attributes.emplace("coordinate_transformation_mode", mode);
  attributes.emplace("mode", std::string(row.mode));
  if (nearest) attributes.emplace("nearest_mode", std::string(corners ? "round_prefer_ceil" : "floor"));
  if (row.mode == std::string_view("cubic")) attributes.emplace("cubic_coeff_a", -0.75);
}

/// Sizes or scales of the spatial axes come from operands, a scale, or numbers, in this order.
void import_interpolate(Node& node, Op op) {
  const ValueId x = node.in("X");
  const InterpolationRow& row = interpolation(node);
  const size_t rank = node.rank(x);
  const std::string layout = node.text("data_layout|data_format", "NCHW");
  if (rank < 3) return node.corrupt("its operand is no image");
  if (layout.ends_with('C')) return node.refuse("resizing with channels last");
  const size_t axes = rank - 2;
  Attributes attributes;
  add_coordinates(node, row, attributes);

  const ValueId computed = node.list("", "SizeTensor OutSize");
  const auto scale_tensor = node.all("Scale").empty() ? std::nullopt : node.known_number("", "Scale", 0);
  std::vector<double> scales = node.numbers("scale").value_or(std::vector<double>{});
  if (scale_tensor) scales = {*scale_tensor};
  if (scales.size() == 1) scales.resize(axes, scales[0]);
  if (computed == kNone && scales.size() == axes && scales[0] > 0) {
    scales.insert(scales.begin(), 2, 1.0);
    return node.out("Out", node.b.add(op, {x, kNone, node.floats(scales, Shape{static_cast<int64_t>(rank)})}, std::move(attributes)));
  }
  ValueId sizes = computed;
  if (sizes == kNone) {
    const char* const names[] = {"out_d", "out_h", "out_w"};
    List numbers;
    for (size_t i = 3 - std::min<size_t>(axes, 3); i < 3; ++i) numbers.push_back(node.integer(names[i], -1));
    for (const int64_t number : numbers)
      if (number <= 0) return node.corrupt("resizing without sizes or scales");
    sizes = node.b.integers(numbers);
  }
  sizes = node.concat({node.b.slice(node.shape_of(x), 0, 0, 2), sizes}, 0);
  node.out("Out", node.b.add(op, {x, kNone, kNone, sizes}, std::move(attributes)));
}

void import_pixel_shuffle(Node& node, Op op) {
  if (node.text("data_format", "NCHW") != "NCHW") return node.refuse("pixel_shuffle with channels last");
  node.out("Out", node.unary(op, node.in("X"), {{"blocksize", node.integer("upscale_factor", 1)}, {"mode", std::string("CRD")}}));
}

/// Channels in the given order.
ValueId reordered(Node& node, ValueId x, const List& order) {
  return node.binary(Op::kGather, x, node.b.integers(order), {{"axis", int64_t{1}}});
}

/// SpaceToDepth numbers its results block first; Paddle, channel first.
void import_pixel_unshuffle(Node& node, Op op) {
  const ValueId x = node.in("X");
  const int64_t factor = node.integer("downscale_factor", 1);
  const auto channels = node.b.size(x, 1);
  if (!channels || factor < 1 || factor > 64 || *channels > 65536 || node.text("data_format", "NCHW") != "NCHW")
    return node.refuse("pixel_unshuffle of this image");
  List order;
  for (int64_t c = 0; c < *channels; ++c)
    for (int64_t k = 0; k < factor * factor; ++k) order.push_back(k * *channels + c);
  node.out("Out", reordered(node, node.unary(op, x, {{"blocksize", factor}}), order));
}

void import_channel_shuffle(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  const int64_t groups = node.integer("groups|group", 1);
  const auto channels = node.b.size(x, 1);
  if (!channels || groups < 1 || *channels > 65536 || *channels % groups != 0) return node.refuse("channel_shuffle of this image");
  List order;
  for (int64_t i = 0; i < *channels / groups; ++i)
    for (int64_t g = 0; g < groups; ++g) order.push_back(g * (*channels / groups) + i);
  node.out("Out", reordered(node, x, order));
}

/// Windows as columns: a convolution whose filters choose one element each, for each channel.
void import_unfold(Node& node, Op op) {
  const ValueId x = node.in("X");
  const auto kernel = node.integers("kernel_sizes"), strides = node.integers("strides"), dilations = node.integers("dilations");
  const List pads = node.integers("paddings").value_or(List{0, 0, 0, 0});
  const auto channels = node.b.size(x, 1);
  if (!kernel || kernel->size() != 2 || (*kernel)[0] < 1 || (*kernel)[1] < 1 || !channels || *channels < 1 || pads.size() != 4)
    return node.refuse("unfold of this image");
  constexpr int64_t kMostPlaces = 4096, kMostWeights = int64_t{1} << 22;
  const int64_t window = (*kernel)[0] <= kMostPlaces / (*kernel)[1] ? (*kernel)[0] * (*kernel)[1] : kMostPlaces + 1;
  if (window > kMostPlaces || *channels > kMostWeights / (window * window)) return node.refuse("unfold with windows this large");
  std::vector<double> filters(static_cast<size_t>(window * window * *channels), 0.0);
  for (int64_t c = 0; c < *channels; ++c)
    for (int64_t k = 0; k < window; ++k) filters[static_cast<size_t>((c * window + k) * window + k)] = 1;
  const ValueId weight = node.floats(filters, Shape{*channels * window, 1, (*kernel)[0], (*kernel)[1]});
  const ValueId y = node.binary(op, x, weight,
                                {{"group", *channels},
                                 {"kernel_shape", *kernel},
                                 {"strides", strides.value_or(List{1, 1})},
                                 {"dilations", dilations.value_or(List{1, 1})},
                                 {"pads", pads}});  // top, left, bottom, right
  node.out("Y", node.b.reshape(y, {0, *channels * window, -1}));
}

/// Of the frames of each video, some channels come from the frame before and some from the one behind; zeros at both ends.
void import_temporal_shift(Node& node, Op op) {
  const ValueId x = node.in("X");
  const int64_t frames = node.integer("seg_num", 1);
  const auto channels = node.b.size(x, 1);
  if (!channels || node.rank(x) != 4 || node.text("data_format", "NCHW") != "NCHW" || frames < 1 || frames > 65536)
    return node.refuse("temporal_shift of this image");
  const double ratio = node.number("shift_ratio", 0.25), count = static_cast<double>(*channels);
  if (!(ratio >= 0 && ratio <= 0.5)) return node.corrupt("a part of the channels that they do not have");
  const auto first = static_cast<int64_t>(count * ratio), second = static_cast<int64_t>(count * 2 * ratio);
  const ValueId sizes = node.shape_of(x), rest = node.b.slice(sizes, 0, 1, 4);
  const ValueId videos = node.b.add(Op::kReshape, {x, node.concat({node.b.integers({-1, frames}), rest}, 0)});
  const ValueId padded = node.unary(op, videos, {{"pads", List{0, 1, 0, 0, 0, 0, 1, 0, 0, 0}}});
  const auto part = [&](int64_t begin, int64_t end, int64_t from) {
    return node.b.slice(node.b.slice(padded, 2, begin, end), 1, from, from + frames);
  };
  std::vector<ValueId> parts;
  if (first > 0) parts.push_back(part(0, first, 0));
  if (second > first) parts.push_back(part(first, second, 2));
  if (*channels > second) parts.push_back(part(second, *channels, 1));
  node.out("Out", node.b.add(Op::kReshape, {node.concat(parts, 2), sizes}));
}

void import_grid_sample(Node& node, Op op) {
  const std::string mode = node.text("mode", "bilinear");
  node.out("Output", node.binary(op, node.in("X"), node.in("Grid"),
                                 {{"mode", mode == "bilinear" ? std::string("linear") : mode},
                                  {"padding_mode", node.text("padding_mode", "zeros")},
                                  {"align_corners", node.integer("align_corners", 1)}}));
}

void import_affine_grid(Node& node, Op op) {
  const ValueId shape = node.list("output_shape", "OutputShape");
  if (shape == kNone) return node.corrupt("affine_grid without a shape");
  node.out("Output", node.binary(op, node.in("Theta"), shape, {{"align_corners", node.integer("align_corners", 1)}}));
}

void import_affine_channel(Node& node, Op op) {
  const ValueId x = node.in("X");
  const ValueId scaled = node.binary(Op::kMul, x, align(node, x, node.in("Scale"), 1));
  node.out("Out", node.binary(op, scaled, align(node, x, node.in("Bias"), 1)));
}

void import_deformable_conv(Node& node, Op op) {
  const List pads = node.integers("paddings").value_or(List{0, 0});
  if (pads.size() != 2) return node.refuse("deformable_conv with paddings that are not symmetric");
  node.out("Output", node.b.add(op, {node.in("Input"), node.in("Filter"), node.in("Offset"), kNone, node.maybe("Mask")},
                                {{"strides", node.integers("strides").value_or(List{1, 1})},
                                 {"dilations", node.integers("dilations").value_or(List{1, 1})},
                                 {"pads", List{pads[0], pads[1], pads[0], pads[1]}},
                                 {"group", node.integer("groups", 1)},
                                 {"offset_group", node.integer("deformable_groups", 1)}}));
}

void import_roi_align(Node& node, Op op) {
  const ValueId regions = node.in("ROIs");
  const bool aligned = node.flag("aligned", false);
  node.out("Out", node.b.add(op, {node.in("X"), regions, image_of_regions(node, regions, node.maybe("RoisNum"))},
                             {{"mode", std::string("avg")},
                              {"coordinate_transformation_mode", std::string(aligned ? "half_pixel" : "output_half_pixel")},
                              {"output_height", node.integer("pooled_height", 1)},
                              {"output_width", node.integer("pooled_width", 1)},
                              {"sampling_ratio", std::max<int64_t>(node.integer("sampling_ratio", -1), 0)},
                              {"spatial_scale", node.number("spatial_scale", 1)}}));
}

constexpr OperatorRow kImageRows[] = {
    {"affine_channel", "affine_channel", "X Scale Bias", "Out", import_affine_channel, Op::kAdd},
    {"affine_grid", "affine_grid", "Theta OutputShape", "Output", import_affine_grid, Op::kAffineGrid},
    {"bicubic_interp bicubic_interp_v2 bilinear_interp bilinear_interp_v2 linear_interp linear_interp_v2 nearest_interp nearest_interp_v2 "
     "trilinear_interp trilinear_interp_v2",
     "bicubic_interp bilinear_interp linear_interp nearest_interp trilinear_interp", "X OutSize SizeTensor Scale", "Out",
     import_interpolate, Op::kResize},
    {"channel_shuffle shuffle_channel", "channel_shuffle shuffle_channel", "X", "Out", import_channel_shuffle},
    {"deformable_conv", "deformable_conv", "Input Offset Filter Mask", "Output", import_deformable_conv, Op::kDeformConv},
    {"grid_sampler", "grid_sample", "X Grid", "Output", import_grid_sample, Op::kGridSample},
    {"pixel_shuffle", "pixel_shuffle", "X", "Out", import_pixel_shuffle, Op::kDepthToSpace},
    {"pixel_unshuffle", "pixel_unshuffle", "X", "Out", import_pixel_unshuffle, Op::kSpaceToDepth},
    {"roi_align", "roi_align", "X ROIs RoisNum", "Out", import_roi_align, Op::kRoiAlign},
    {"temporal_shift", "temporal_shift", "X", "Out", import_temporal_shift, Op::kPad},
    {"unfold", "unfold", "X", "Y", import_unfold, Op::kConv},
};

}  // namespace

std::span<const OperatorRow> image_operators() { return kImageRows; }

/// Region r belongs to the image before which r or fewer regions end.
ValueId image_of_regions(Node& node, ValueId regions, ValueId counts) {
  const ValueId total = node.b.reshape(node.size_of(regions, 0), {});
  const ValueId zero = node.b.number(DType::kInt64, 0), one = node.b.number(DType::kInt64, 1);
  const ValueId places = node.b.add(Op::kRange, {zero, total, one});
  if (counts == kNone) return node.binary(Op::kMul, places, zero);
  const ValueId ends = node.binary(Op::kCumSum, node.b.cast(counts, DType::kInt64), zero);
  const ValueId passed = node.binary(Op::kGreaterOrEqual, node.b.unsqueeze(places, {1}), node.b.unsqueeze(ends, {0}));
  return node.unary(Op::kReduceSum, node.b.cast(passed, DType::kInt64), {{"axes", List{1}}, {"keepdims", int64_t{0}}});
}

}  // namespace serin::formats::paddle
