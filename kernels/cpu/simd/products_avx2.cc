// products_avx2.cc: products in f64 and in integers, compiled with -mavx2 -mfma -mf16c.

#include "kernels/cpu/simd/products_loops.h"

namespace serin::kernels::cpu {

const ProductLoops kProductsAvx2 = product_loops<32, 6>();

}  // namespace serin::kernels::cpu
