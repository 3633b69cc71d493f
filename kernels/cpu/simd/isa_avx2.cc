// isa_avx2.cc: the loops of this folder, compiled with -mavx2 -mfma -mf16c.

#include "kernels/cpu/simd/table.h"
#include "kernels/cpu/simd/vec_avx2.h"

namespace serin::kernels::cpu {

const Simd kSimdAvx2 = simd_table<VecAvx2>(kBlockedAvx2, kDenseAvx2, kImageAvx2);

}  // namespace serin::kernels::cpu
