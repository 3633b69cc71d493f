// blocked_avx2.cc: the loops over channel blocks, compiled with -mavx2 -mfma -mf16c.

#include "kernels/cpu/simd/blocked_table.h"
#include "kernels/cpu/simd/vec_avx2.h"

namespace serin::kernels::cpu {

const BlockedLoops kBlockedAvx2 = blocked_table<VecAvx2>();

}  // namespace serin::kernels::cpu
