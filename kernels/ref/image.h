// image.h: The reference kernels of the image family; image_table.cc names them.
//
// Resizing, sampling, regions, and the convolutions and pools other than Conv and Pool.
#pragma once

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

// image_resize.cc
Prepared resize(const GenericDesc& desc, std::string& why);
// image_grid.cc
Prepared grid_sample(const GenericDesc& desc, std::string& why);
Prepared affine_grid(const GenericDesc& desc, std::string& why);
// image_regions.cc
Prepared roi_align(const GenericDesc& desc, std::string& why);
Prepared max_roi_pool(const GenericDesc& desc, std::string& why);
Prepared center_crop_pad(const GenericDesc& desc, std::string& why);
// image_conv.cc
Prepared conv_transpose(const GenericDesc& desc, std::string& why);
Prepared col2im(const GenericDesc& desc, std::string& why);
Prepared deform_conv(const GenericDesc& desc, std::string& why);
// image_pool.cc
Prepared max_pool_with_indices(const GenericDesc& desc, std::string& why);
Prepared max_unpool(const GenericDesc& desc, std::string& why);
Prepared lp_pool(const GenericDesc& desc, std::string& why);
Prepared global_lp_pool(const GenericDesc& desc, std::string& why);

}  // namespace serin::kernels::ref
