// dense_portable.cc: products and attention on compiler vectors: for machines without AVX2.

#include "kernels/cpu/simd/dense_table.h"
#include "kernels/cpu/simd/vec_portable.h"

namespace serin::kernels::cpu {

const DenseLoops kDensePortable = dense_table<VecPortable>();

}  // namespace serin::kernels::cpu
