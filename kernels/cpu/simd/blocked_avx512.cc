// blocked_avx512.cc: the loops over channel blocks, compiled with -mavx512f -mavx512dq -mavx512bw -mavx512vl (and the AVX2 ones).

#include "kernels/cpu/simd/blocked_table.h"
#include "kernels/cpu/simd/vec_avx512.h"

namespace serin::kernels::cpu {

const BlockedLoops kBlockedAvx512 = blocked_table<VecAvx512>();

}  // namespace serin::kernels::cpu
