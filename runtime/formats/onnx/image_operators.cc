// image_operators.cc: lists the operators of this family that are read: resizing, sampling, regions, and the convolutions and pools other
// than Conv and Pool. Numbers are checked by shape inference, which knows the shapes they must fit.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

/// Opset 10 has scales only, and rounds in its own way; since 11 the operands are roi, scales and sizes.
void import_resize(NodeImport& node, Op op) {
  if (node.opset() >= 11) return import_plain(node, op);
  if (node.input(1) == graph::kNone || node.input_count() != 2) return node.corrupt("needs two operands before opset 11: input and scales");
  node.emit(op, {node.input(0), graph::kNone, node.input(1)},
            {{"mode", node.text("mode", "nearest")},
             {"coordinate_transformation_mode", std::string("asymmetric")},
             {"nearest_mode", std::string("simple")}});
}

/// What became Resize in opset 10. Scales: two numbers for height and width at first, an attribute in 7, an operand since 9.
void import_upsample(NodeImport& node, Op) {
  std::string mode = node.text("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  graph::ValueId scales = node.input(1);
  if (node.opset() < 9) {
    std::vector<float> values;
    if (node.opset() < 7) {
      values = {1, 1, static_cast<float>(node.number("height_scale", 1)), static_cast<float>(node.number("width_scale", 1))};
    } else if (const auto given = node.numbers("scales")) {
      values.assign(given->begin(), given->end());
    }
    if (scales != graph::kNone || values.empty()) return node.corrupt("has no scales");
    scales = node.step_constant("scales", graph::make_constant(DType::kFloat32, Shape{static_cast<int64_t>(values.size())}, values.data()));
  } else if (scales == graph::kNone) {
    return node.corrupt("has no scales");
  }
  node.emit(Op::kResize, {node.input(0), graph::kNone, scales},
            {{"mode", mode}, {"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}});
}

/// Modes were called bilinear and bicubic before opset 20.
void import_grid_sample(NodeImport& node, Op op) {
  graph::Attributes attributes = node.copied_attributes();
  std::string mode = node.text("mode", "linear");
  if (mode == "bilinear" || mode == "bicubic") mode = mode.substr(2) == "linear" ? "linear" : "cubic";
  attributes.insert_or_assign("mode", mode);
  node.emit(op, node.inputs(), std::move(attributes));
}

/// Before opset 16 boxes were not shifted by half a pixel.
void import_roi_align(NodeImport& node, Op op) {
  graph::Attributes attributes = node.copied_attributes();
  if (node.opset() < 16) attributes.insert_or_assign("coordinate_transformation_mode", std::string("output_half_pixel"));
  node.emit(op, node.inputs(), std::move(attributes));
}

/// p was a float in opset 1.
void import_lp_pool(NodeImport& node, Op op) {
  graph::Attributes attributes = node.copied_attributes();
  const auto p = attributes.find("p");
  if (const double* real = p == attributes.end() ? nullptr : std::get_if<double>(&p->second))
    p->second = *real >= 1 ? static_cast<int64_t>(std::min(*real, 1e6)) : int64_t{0};
  const int64_t* power = p == attributes.end() ? nullptr : std::get_if<int64_t>(&p->second);
  if (power && *power < 1) node.corrupt(fmt::format("p is {}, it must be at least 1", *power));
  node.emit(op, node.inputs(), std::move(attributes));
}

constexpr std::string_view kWindow = "auto_pad ceil_mode dilations kernel_shape p pads strides";

constexpr OperatorRow kImageOperators[] = {
    {"AffineGrid", 20, 2, 2, 1, import_plain, Op::kAffineGrid, "align_corners"},
    {"CenterCropPad", 18, 2, 2, 1, import_plain, Op::kCenterCropPad, "axes"},
    {"Col2Im", 18, 3, 3, 1, import_plain, Op::kCol2Im, "dilations pads strides"},
    {"ConvTranspose", 1, 2, 3, 1, import_plain, Op::kConvTranspose,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"DeformConv", 19, 3, 5, 1, import_plain, Op::kDeformConv, "dilations group kernel_shape offset_group pads strides"},
    {"DepthToSpace", 1, 1, 1, 1, import_plain, Op::kDepthToSpace, "blocksize mode"},
    {"GlobalLpPool", 1, 1, 1, 1, import_lp_pool, Op::kGlobalLpPool, "p"},
    {"GridSample", 16, 2, 2, 1, import_grid_sample, Op::kGridSample, "align_corners padding_mode"},
    {"ImageDecoder", 20, 1, 1, 1, import_plain, Op::kImageDecoder, "pixel_format"},
    {"LpPool", 1, 1, 1, 1, import_lp_pool, Op::kLpPool, kWindow},
    {"MaxRoiPool", 1, 2, 2, 1, import_plain, Op::kMaxRoiPool, "pooled_shape spatial_scale"},
    {"MaxUnpool", 9, 2, 3, 1, import_plain, Op::kMaxUnpool, "kernel_shape pads strides"},
    {"Resize", 10, 1, 4, 1, import_resize, Op::kResize,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value keep_aspect_ratio_policy mode "
     "nearest_mode"},
    {"RoiAlign", 10, 3, 3, 1, import_roi_align, Op::kRoiAlign,
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"},
    {"SpaceToDepth", 1, 1, 1, 1, import_plain, Op::kSpaceToDepth, "blocksize"},
    {"Upsample", 1, 1, 2, 1, import_upsample, Op::kResize},
};

}  // namespace

OperatorFamily image_operators() { return {"", kImageOperators}; }

}  // namespace serin::formats::onnx
