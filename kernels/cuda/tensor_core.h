// tensor_core.h: The instructions of tensor cores, as PTX on a device (sm_80 or newer), and element by element on the emulated one.
//
// The emulated form is in tests/gpu/emulator/tensor_core.h. All lanes of a warp take part in each.
//
// The positions of a tile's elements among the lanes ("Parallel Thread Execution ISA", mma.m16n8k16), lane = 4 g + t:
//
//   a [16, 16]   a[0] (g, 2t) (g, 2t+1)   a[1] (g+8, 2t) ..   a[2] (g, 2t+8) ..   a[3] (g+8, 2t+8) ..
//   b [16, 8]    b[0] (2t, g) (2t+1, g)   b[1] (2t+8, g) (2t+9, g)
//   d [16, 8]    d[0] (g, 2t)  d[1] (g, 2t+1)  d[2] (g+8, 2t)  d[3] (g+8, 2t+1)
//
// Two adjacent d, rounded to 16 bits, are one a: the result of one product is an operand of the next without leaving its lane.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/float16.h"

#if !defined(__CUDACC__)
#include "tensor_core_emulated.h"
#endif

namespace serin::kernels::cuda {

/// Two elements in one register.
template <class T>
__device__ uint32_t pack_pair(float low, float high);
template <>
__device__ inline uint32_t pack_pair<Half>(float low, float high) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return to_half(low).bits | static_cast<uint32_t>(to_half(high).bits) << 16;
#endif
}
template <>
__device__ inline uint32_t pack_pair<BFloat16>(float low, float high) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return to_bfloat16(low).bits | static_cast<uint32_t>(to_bfloat16(high).bits) << 16;
#endif
}

#if defined(__CUDACC__)

/// d += a b, in f32.
template <class T>
__device__ void multiply_tile(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, Half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// Loads four matrices [8, 8] of 16-bit elements from shared memory: lane 8 m + i gives the start of row i of matrix m (16 bytes, aligned).
/// Of matrix m lane 4 g + t gets elements 2t and 2t+1 of row g; with kTurned of column g.
template <bool kTurned>
__device__ void load_matrices(uint32_t (&r)[4], const void* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTurned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/// Copies 16 bytes to shared memory, complete after wait_copies(). Writes zeros if there is nothing to copy: then `from` is any address in
/// the device's memory.
__device__ inline void begin_copy(void* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
#endif
}
/// The copies that this thread has started so far form one group.
__device__ inline void close_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until at most the last kLeft of this thread's groups are incomplete. Other threads see the data after a barrier.
template <int kLeft>
__device__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

#else

template <class T>
void multiply_tile(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emulator::multiply_tile(d, a, b, [](uint16_t bits) { return to_float(T{bits}); });
}
template <bool kTurned>
void load_matrices(uint32_t (&r)[4], const void* row) {
  emulator::load_matrices(r, row, kTurned);
}
inline void begin_copy(void* to, const void* from, bool there) { emulator::begin_copy(to, from, there); }
inline void close_group() { emulator::close_group(); }
template <int kLeft>
void wait_copies() {
  emulator::wait_copies(kLeft);
}

#endif

}  // namespace serin::kernels::cuda
