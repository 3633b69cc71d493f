// quant_portable.cc: the loops over quantised tensors, compiled with plain C++.

#include "kernels/cpu/simd/quant_portable.h"

#include "kernels/cpu/simd/quant_loops.h"

namespace serin::kernels::cpu {

const Quant kQuantPortable = quant_table<QuantVecPortable>();

}  // namespace serin::kernels::cpu
