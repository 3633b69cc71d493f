// dense_avx512.cc: products and attention on AVX-512, compiled with -mavx512f -mavx512dq -mavx512bw -mavx512vl (and the AVX2 flags).

#include "kernels/cpu/simd/dense_table.h"
#include "kernels/cpu/simd/vec_avx512.h"

namespace serin::kernels::cpu {

const DenseLoops kDenseAvx512 = dense_table<VecAvx512>();

}  // namespace serin::kernels::cpu
