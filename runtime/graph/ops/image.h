// image.h: shape rules for resizing, sampling, regions, and convolutions and pools other than Conv.
//
// image_rules.cc maps operators to rules.
#pragma once

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

/// The axes in attribute `axes`, in its order, each once; all axes if it is absent.
Result<std::vector<size_t>> listed_axes(const Context& c, size_t rank);

// image_resize.cc
Status infer_resize(Context& c);
Status infer_grid_sample(Context& c);
Status infer_affine_grid(Context& c);
// image_regions.cc
Status infer_roi_align(Context& c);
Status infer_max_roi_pool(Context& c);
Status infer_center_crop_pad(Context& c);
Status infer_depth_to_space(Context& c);
Status infer_space_to_depth(Context& c);
// image_window.cc
Status infer_conv_transpose(Context& c);
Status infer_deform_conv(Context& c);
Status infer_col2im(Context& c);
Status infer_max_pool_with_indices(Context& c);
Status infer_max_unpool(Context& c);

}  // namespace serin::graph
