// products_portable.cc: products in f64 and in integers, on compiler vectors of 16 bytes: for machines without AVX2.

#include "kernels/cpu/simd/products_loops.h"

namespace serin::kernels::cpu {

const ProductLoops kProductsPortable = product_loops<16, 4>();

}  // namespace serin::kernels::cpu
