// isa_portable.cc: the loops of this folder, compiled with no flags beyond the machine's baseline.

#include "kernels/cpu/simd/table.h"
#include "kernels/cpu/simd/vec_portable.h"

namespace serin::kernels::cpu {

const Simd kSimdPortable = simd_table<VecPortable>(kBlockedPortable, kDensePortable, kImagePortable);

}  // namespace serin::kernels::cpu
