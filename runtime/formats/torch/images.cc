// images.cc: resizing and sampling of images.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;

/// upsample_nearest2d, upsample_bilinear2d, upsample_bicubic2d: to given sizes, or by given factors.
void import_upsample(NodeImport& node, Op op) {
  const std::string& target = node.node().target;
  if (target.find("_aa") != std::string::npos && target.find("bi") == std::string::npos) return node.unsupported("an unknown filter");
  const ValueId x = node.tensor(node.has("self") ? "self" : "input");
  const size_t rank = node.rank(x);
  if (rank < 3) return node.corrupt(fmt::format("an image of rank {}", rank));
  const bool nearest = target.find("nearest") != std::string::npos, exact = target.find("nearest_exact") != std::string::npos;
  const bool cubic = target.find("bicubic") != std::string::npos, corners = node.flag("align_corners", false);
  Attributes attributes = {{"mode", std::string(nearest ? "nearest"
                                                : cubic ? "cubic"
                                                        : "linear")},
                           {"coordinate_transformation_mode", std::string(corners             ? "align_corners"
                                                                          : nearest && !exact ? "asymmetric"
                                                                          : nearest           ? "half_pixel"
                                                                                              : "pytorch_half_pixel")}};
  if (nearest) attributes.insert_or_assign("nearest_mode", std::string(exact ? "round_prefer_ceil" : "floor"));
  if (cubic) attributes.insert_or_assign("cubic_coeff_a", -0.75);
  if (target.find("_aa") != std::string::npos) attributes.insert_or_assign("antialias", int64_t{1});
  std::vector<double> factors = node.numbers("scale_factors");
  if (factors.empty())
    for (const char* name : {"scales_d", "scales_h", "scales_w", "scales"})
      if (const auto factor = node.optional_number(name)) factors.push_back(*factor);
  std::vector<Size> sizes = node.sizes("output_size");
  const bool by_factor = factors.size() == rank - 2;
  if (by_factor && sizes.size() == rank - 2) {  // both: the sizes are those of the example
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto length = node.b.size(x, i + 2);
      if (length && sizes[i].number && *length * factors[i] != static_cast<double>(*sizes[i].number))
        return node.unsupported("factors that contradict the sizes");
    }
  }
  if (by_factor && (sizes.empty() || corners == false)) {
    std::vector<float> scales(rank, 1);
    for (size_t i = 0; i < factors.size(); ++i) scales[i + 2] = static_cast<float>(factors[i]);
    const ValueId operand = node.b.constant(graph::make_constant(DType::kFloat32, Shape{static_cast<int64_t>(rank)}, scales.data()));
    return node.give(node.b.add(op, {x, kNone, operand}, attributes));
  }
  if (sizes.size() != rank - 2) return node.unsupported("sizes that are not given");
  std::vector<Size> shape;
  for (size_t i = 0; i < 2; ++i) {
    const auto length = node.b.size(x, i);
    shape.push_back(length ? Size{length, kNone} : Size{std::nullopt, node.sized(x, i)});
  }
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  node.give(node.b.add(op, {x, kNone, kNone, node.shape_of(shape)}, attributes));
}

void import_grid_sampler(NodeImport& node, Op op) {
  constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t mode = node.integer("interpolation_mode", 0), padding = node.integer("padding_mode", 0);
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) return node.corrupt("an unknown mode");
  node.give(node.b.add(op, {node.tensor("input"), node.tensor("grid")},
                       {{"mode", std::string(kModes[mode])},
                        {"padding_mode", std::string(kPaddings[padding])},
                        {"align_corners", int64_t{node.flag("align_corners", false)}}}));
}

/// Boxes x1 y1 x2 y2 and their scores; the result lists the boxes that stay, the best first.
void import_suppression(NodeImport& node, Op op) {
  const ValueId boxes = node.b.unsqueeze(node.tensor("dets"), {0}), scores = node.b.unsqueeze(node.tensor("scores"), {0, 1});
  const ValueId most = node.b.reshape(node.sized(boxes, 1), {1});
  const std::vector<float> threshold = {static_cast<float>(node.number("iou_threshold", 0.5))};
  const ValueId limit = node.b.constant(graph::make_constant(DType::kFloat32, Shape{1}, threshold.data()));
  const ValueId kept = node.b.add(op, {boxes, scores, most, limit});  // [n, 3]: batch, class, box
  node.give(node.b.squeeze(sliced(node.b, kept, 1, 2, 3), {1}));
}

void import_roi_align(NodeImport& node, Op op) {
  const ValueId rois = node.tensor("rois");  // [n, 5]: image, x1, y1, x2, y2
  const ValueId image = node.b.cast(node.b.squeeze(sliced(node.b, rois, 1, 0, 1), {1}), DType::kInt64);
  node.give(
      node.b.add(op, {node.tensor("input"), sliced(node.b, rois, 1, 1, 5), image},
                 {{"mode", std::string("avg")},
                  {"output_height", node.integer("pooled_height", 1)},
                  {"output_width", node.integer("pooled_width", 1)},
                  {"sampling_ratio", std::max<int64_t>(0, node.integer("sampling_ratio", 0))},
                  {"spatial_scale", node.number("spatial_scale", 1)},
                  {"coordinate_transformation_mode", std::string(node.flag("aligned", false) ? "half_pixel" : "output_half_pixel")}}));
}

/// The places of pixels of an image of -1 .. 1, turned and moved by a matrix for each item: the grid of grid_sampler.
void import_affine_grid(NodeImport& node, Op op) {
  const std::vector<Size> size = node.sizes("size");
  const auto height = size.size() == 4 ? size[2].number : std::nullopt, width = size.size() == 4 ? size[3].number : std::nullopt;
  constexpr int64_t kMost = 1 << 24;
  if (!height || !width || *height < 1 || *width < 1 || *height > kMost / *width)
    return node.unsupported("a grid that is no plane of known size");
  const bool corners = node.flag("align_corners", false);
  const auto place = [corners](int64_t i, int64_t count) {
    const auto n = static_cast<double>(count);
    if (corners) return count == 1 ? 0.0 : 2 * static_cast<double>(i) / (n - 1) - 1;
    return (2 * static_cast<double>(i) + 1) / n - 1;
  };
  std::vector<float> places;
  for (int64_t y = 0; y < *height; ++y)
    for (int64_t x = 0; x < *width; ++x)
      places.insert(places.end(), {static_cast<float>(place(x, *width)), static_cast<float>(place(y, *height)), 1});
  const ValueId points = node.b.constant(graph::make_constant(DType::kFloat32, Shape{*height * *width, 3}, places.data()));
  const ValueId matrices = node.b.transpose(node.tensor("theta"), {0, 2, 1});
  const ValueId moved = node.b.add(op, {node.b.cast(points, node.result_dtype()), matrices});
  node.give(node.b.reshape(moved, {0, *height, *width, 2}));
}

constexpr OperatorRow kImages[] = {
    {"aten.affine_grid_generator", import_affine_grid, Op::kMatMul},

    {"aten._upsample_bicubic2d_aa", import_upsample, Op::kResize},    {"aten._upsample_bilinear2d_aa", import_upsample, Op::kResize},
    {"aten._upsample_nearest_exact1d", import_upsample, Op::kResize}, {"aten._upsample_nearest_exact2d", import_upsample, Op::kResize},
    {"aten.grid_sampler", import_grid_sampler, Op::kGridSample},      {"aten.grid_sampler_2d", import_grid_sampler, Op::kGridSample},
    {"aten.upsample_bicubic2d", import_upsample, Op::kResize},        {"aten.upsample_bilinear2d", import_upsample, Op::kResize},
    {"aten.upsample_linear1d", import_upsample, Op::kResize},         {"aten.upsample_nearest1d", import_upsample, Op::kResize},
    {"aten.upsample_nearest2d", import_upsample, Op::kResize},        {"aten.upsample_nearest3d", import_upsample, Op::kResize},
    {"aten.upsample_trilinear3d", import_upsample, Op::kResize},      {"torchvision.nms", import_suppression, Op::kNonMaxSuppression},
    {"torchvision.roi_align", import_roi_align, Op::kRoiAlign},
};

}  // namespace

std::span<const OperatorRow> image_operators() { return kImages; }

}  // namespace serin::formats::torch
