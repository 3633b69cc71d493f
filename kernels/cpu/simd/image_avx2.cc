// image_avx2.cc: the loops of image operators, compiled with -mavx2 -mfma -mf16c.

#include "kernels/cpu/simd/image_loops.h"
#include "kernels/cpu/simd/vec_avx2.h"

namespace serin::kernels::cpu {

const ImageLoops kImageAvx2 = image_loops<VecAvx2>();

}  // namespace serin::kernels::cpu
