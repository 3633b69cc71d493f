// quant_avx2.cc: the loops over quantised tensors, compiled with -mavx2 -mfma -mf16c.

#include "kernels/cpu/simd/quant_avx2.h"

#include "kernels/cpu/simd/quant_loops.h"

namespace serin::kernels::cpu {

const Quant kQuantAvx2 = quant_table<QuantVecAvx2>();

}  // namespace serin::kernels::cpu
