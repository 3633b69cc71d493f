// tensor_core_emulated.h: what kernels/cuda/tensor_core.h asks of a warp, element by element, as the PTX manual says where each one lies. It is its own
// reading of the manual: the kernel finds its elements by one, this by the other.
//
// Copies to shared memory are made when they are waited for, not before: a kernel that forgets to wait reads what was there.
#pragma once

#include <cstdint>

namespace emulator {

using ToFloat = float (*)(uint16_t bits);

/// d [16, 8] += a [16, 16] b [16, 8].
void multiply_tile(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], ToFloat to_float);
void load_matrices(uint32_t (&r)[4], const void* row, bool turned);

/// Not there: zeros.
void begin_copy(void* to, const void* from, bool there);
void close_group();
void wait_copies(int left);

}  // namespace emulator
