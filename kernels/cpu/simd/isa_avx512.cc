// isa_avx512.cc: the loops of this folder, compiled with -mavx512f -mavx512dq -mavx512bw -mavx512vl (and the AVX2 ones).

#include "kernels/cpu/simd/table.h"
#include "kernels/cpu/simd/vec_avx512.h"

namespace serin::kernels::cpu {

const Simd kSimdAvx512 = simd_table<VecAvx512>(kBlockedAvx512, kDenseAvx512, kImageAvx512);

}  // namespace serin::kernels::cpu
