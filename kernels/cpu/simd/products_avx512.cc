// products_avx512.cc: products in f64 and in integers, compiled for AVX-512.

#include "kernels/cpu/simd/products_loops.h"

namespace serin::kernels::cpu {

const ProductLoops kProductsAvx512 = product_loops<64, 8>();

}  // namespace serin::kernels::cpu
