// quant_avx512vnni.cc: the loops over quantised tensors, compiled with -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx512vnni (and the AVX2 ones).

#include "kernels/cpu/simd/quant_avx512vnni.h"

#include "kernels/cpu/simd/quant_loops.h"

namespace serin::kernels::cpu {

const Quant kQuantAvx512Vnni = quant_table<QuantVecAvx512Vnni>();

}  // namespace serin::kernels::cpu
