// generic.h: vector kernels of operators that are known by name (kernels::Generic): they are put together from the loops of simd.h.
#pragma once

#include "kernels/cpu/cpu.h"

namespace serin::kernels::cpu {

/// InstanceNormalization, GroupNormalization, RMSNormalization, LRN.
Prepared norms(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Celu, Mish, PRelu, Selu, Softsign.
Prepared activations(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

/// Binary on integers of 32 and 64 bits, on bool, and Pow: plain loops, the same for every instruction set.
Prepared binary_plain(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

}  // namespace serin::kernels::cpu
