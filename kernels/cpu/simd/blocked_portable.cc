// blocked_portable.cc: the loops over channel blocks, compiled with no flags beyond the machine's baseline.

#include "kernels/cpu/simd/blocked_table.h"
#include "kernels/cpu/simd/vec_portable.h"

namespace serin::kernels::cpu {

const BlockedLoops kBlockedPortable = blocked_table<VecPortable>();

}  // namespace serin::kernels::cpu
