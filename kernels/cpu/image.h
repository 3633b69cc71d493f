// image.h: Vector kernels of image operators (rows of Generic in table.cc, each for the operator of its name) and of some that move
// elements.
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd/image.h"

namespace serin::kernels::cpu {

/// Resize of the last two axes, or of one of them.
Prepared resize(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared grid_sample(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared conv_transpose(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// ConvTranspose over three spatial axes.
Prepared conv_transpose_volume(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared deform_conv(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Pool over three spatial axes.
Prepared pool_volume(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Pool: maxima in i8 and u8 over one or two spatial axes.
Prepared max_pool_bytes(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Where, of numbers and bool.
Prepared select(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Pad, by runs.
Prepared pad(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

}  // namespace serin::kernels::cpu
