// image_avx512.cc: the loops of image operators, compiled for AVX-512.

#include "kernels/cpu/simd/image_loops.h"
#include "kernels/cpu/simd/vec_avx512.h"

namespace serin::kernels::cpu {

const ImageLoops kImageAvx512 = image_loops<VecAvx512>();

}  // namespace serin::kernels::cpu
