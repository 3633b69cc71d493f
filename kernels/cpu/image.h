// image.h: Vector kernels of image operators (rows of Generic in table.cc, each for the operator of its name) and of some that move
// elements.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd/image.h"

namespace serin::kernels::cpu {

/// The first of the two neighbouring axes that a Resize may change; nothing if it changes others.
std::optional<size_t> resized_rows(const OpDesc& desc, std::string& why);
/// Resize of two axes that lie side by side, or of one axis.
Prepared resize(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared grid_sample(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared conv_transpose(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// ConvTranspose over three spatial axes.
Prepared conv_transpose_volume(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared deform_conv(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Col2Im over one or two spatial axes.
Prepared col2im(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Pool over three spatial axes.
Prepared pool_volume(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Pool: maxima in i8 and u8 over one or two spatial axes.
Prepared max_pool_bytes(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Where, of numbers and bool.
Prepared select(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// CenterCropPad, by runs.
Prepared center_crop_pad(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Pad, by runs.
Prepared pad(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

}  // namespace serin::kernels::cpu
