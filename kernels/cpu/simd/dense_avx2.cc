// dense_avx2.cc: products and attention on AVX2, compiled with -mavx2 -mfma -mf16c.

#include "kernels/cpu/simd/dense_table.h"
#include "kernels/cpu/simd/vec_avx2.h"

namespace serin::kernels::cpu {

const DenseLoops kDenseAvx2 = dense_table<VecAvx2>();

}  // namespace serin::kernels::cpu
