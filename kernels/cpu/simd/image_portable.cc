// image_portable.cc: the loops of image operators, on compiler vectors: for machines without AVX2.

#include "kernels/cpu/simd/image_loops.h"
#include "kernels/cpu/simd/vec_portable.h"

namespace serin::kernels::cpu {

const ImageLoops kImagePortable = image_loops<VecPortable>();

}  // namespace serin::kernels::cpu
