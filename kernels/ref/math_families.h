// math_families.h: The reference kernels of the math family, by file; math_table.cc names them.
#pragma once

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> random_kernels();  // math_random.cc
std::span<const GenericRow> window_kernels();  // math_window.cc: Hann, Hamming, Blackman, and the Mel filter bank

// math_bits.cc
Prepared bit_shift(const GenericDesc& desc, std::string& why);
Prepared bitwise_and(const GenericDesc& desc, std::string& why);
Prepared bitwise_or(const GenericDesc& desc, std::string& why);
Prepared bitwise_xor(const GenericDesc& desc, std::string& why);
Prepared bitwise_not(const GenericDesc& desc, std::string& why);
// math_matrix.cc
Prepared cum_prod(const GenericDesc& desc, std::string& why);
Prepared det(const GenericDesc& desc, std::string& why);
Prepared eye_like(const GenericDesc& desc, std::string& why);
// math_pointwise.cc
Prepared shrink(const GenericDesc& desc, std::string& why);
Prepared prelu(const GenericDesc& desc, std::string& why);
// math_dft.cc
Prepared dft(const GenericDesc& desc, std::string& why);
Prepared stft(const GenericDesc& desc, std::string& why);

}  // namespace serin::kernels::ref
