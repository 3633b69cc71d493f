// image_table.cc: lists the operators of this family that have a reference kernel: resizing, sampling, regions, and convolutions other than
// Conv.

#include "kernels/ref/image.h"

namespace serin::kernels::ref {

std::span<const GenericRow> image_kernels() {
  static constexpr GenericRow kRows[] = {
      {"AffineGrid", affine_grid},
      {"CenterCropPad", center_crop_pad},
      {"Col2Im", col2im},
      {"ConvTranspose", conv_transpose},
      {"DeformConv", deform_conv},
      {"GlobalLpPool", global_lp_pool},
      {"GridSample", grid_sample},
      {"LpPool", lp_pool},
      {"MaxPoolWithIndices", max_pool_with_indices},
      {"MaxRoiPool", max_roi_pool},
      {"MaxUnpool", max_unpool},
      {"Resize", resize},
      {"RoiAlign", roi_align},
  };
  return kRows;
}

}  // namespace serin::kernels::ref
