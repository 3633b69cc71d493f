// generic.h: Vector kernels of operators known by name (kernels::Generic), built from the loops of simd.h.
#pragma once

#include "kernels/cpu/cpu.h"

namespace serin::kernels::cpu {

/// InstanceNormalization, GroupNormalization, MeanVarianceNormalization, RMSNormalization, LRN.
Prepared norms(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared prelu(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// TopK, GatherElements, Hardmax, ReduceLogSumExp.
Prepared top_k(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared gather_elements(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared hardmax(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// MaxPool with the index of each maximum.
Prepared max_pool_indices(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared log_sum_exp(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

/// Reduce: the largest and the smallest integers over axes side by side.
Prepared reduce_integers(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared arg_max(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared cum_sum(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// MatMul in f64 and in integers of 32 and 64 bits.
Prepared matmul_plain(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

/// 16-bit floats, computed as f32.
Prepared unary_half(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared binary_half(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

/// Binary on integers of 32 and 64 bits, on f64 and bool, Mod of f32, and Unary with bool results: plain loops, the same for all
/// instruction sets.
Prepared unary_plain(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared binary_plain(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

}  // namespace serin::kernels::cpu
