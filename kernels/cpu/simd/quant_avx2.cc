// quant_avx2.cc: the loops over quantised tensors, compiled with -mavx2 -mfma -mf16c.

#include "kernels/cpu/simd/quant_avx2.h"

#include "kernels/cpu/simd/quant_loops.h"

namespace serin::kernels::cpu {

static constexpr Quant kNarrow = quant_table<QuantVecAvx2Narrow>("quant_avx2_7bit");
const Quant kQuantAvx2 = quant_table<QuantVecAvx2>("", &kNarrow);

}  // namespace serin::kernels::cpu
