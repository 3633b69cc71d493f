// image_rules.cc: shape rules of one family: resizing, sampling, regions, convolutions beside Conv.

#include "runtime/graph/ops/families.h"
#include "runtime/graph/ops/image.h"

namespace serin::graph {

std::span<const OpRules> image_rules() {
  static constexpr OpRules kRules[] = {
      {Op::kAffineGrid, infer_affine_grid, nullptr},
      {Op::kCenterCropPad, infer_center_crop_pad, nullptr},
      {Op::kCol2Im, infer_col2im, nullptr},
      {Op::kConvTranspose, infer_conv_transpose, nullptr},
      {Op::kDeformConv, infer_deform_conv, nullptr},
      {Op::kDepthToSpace, infer_depth_to_space, nullptr},
      {Op::kGlobalLpPool, infer_global_pool, nullptr},
      {Op::kGridSample, infer_grid_sample, nullptr},
      {Op::kLpPool, infer_pool, nullptr},
      {Op::kMaxPoolWithIndices, infer_max_pool_with_indices, nullptr},
      {Op::kMaxRoiPool, infer_max_roi_pool, nullptr},
      {Op::kMaxUnpool, infer_max_unpool, nullptr},
      {Op::kResize, infer_resize, nullptr},
      {Op::kRoiAlign, infer_roi_align, nullptr},
      {Op::kSpaceToDepth, infer_space_to_depth, nullptr},
  };
  return kRules;
}

}  // namespace serin::graph
