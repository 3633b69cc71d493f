// tensor_core_bytes.h: Products of bytes by tensor cores, summed in 32 bits: as PTX on a device, element by element on the emulated one.
//
// All lanes of a warp take part.
//
// The positions of a tile's elements among the lanes ("Parallel Thread Execution ISA", mma.m16n8k32), lane = 4 g + t, four elements in a
// register:
//
//   a [16, 32]   a[0] (g, 4t)..   a[1] (g+8, 4t)..   a[2] (g, 4t+16)..   a[3] (g+8, 4t+16)..
//   b [32, 8]    b[0] (4t, g)..   b[1] (4t+16, g)..
//   d [16, 8]    d[0] (g, 2t)  d[1] (g, 2t+1)  d[2] (g+8, 2t)  d[3] (g+8, 2t+1)
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace serin::kernels::cuda {

#if defined(__CUDACC__)

/// d += a b, of signed bytes.
__device__ inline void multiply_bytes(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int half = 0; half < 2; ++half) {  // of k; the upper and the lower rows
    for (int rows = 0; rows < 2; ++rows) {
      asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+r"(d[2 * rows]), "+r"(d[2 * rows + 1])
          : "r"(a[2 * half + rows]), "r"(b[half]));
    }
  }
#endif
}

#else

namespace emulated {

struct ByteProduct {
  int (*d)[4];
  const uint32_t (*a)[4];
  const uint32_t (*b)[2];
};

inline void multiply(void* const* lanes) {
  const auto lane = [&](int i) { return *static_cast<const ByteProduct*>(lanes[i]); };
  int a[16][32], b[32][8];
  for (int i = 0; i < 32; ++i) {
    const int g = i / 4, t = i % 4;
    for (int e = 0; e < 4; ++e) {
      for (int reg = 0; reg < 4; ++reg) a[g + reg % 2 * 8][4 * t + e + reg / 2 * 16] = static_cast<int8_t>((*lane(i).a)[reg] >> (8 * e));
      for (int reg = 0; reg < 2; ++reg) b[4 * t + e + reg * 16][g] = static_cast<int8_t>((*lane(i).b)[reg] >> (8 * e));
    }
  }
  for (int i = 0; i < 32; ++i) {
    for (int e = 0; e < 4; ++e) {
      for (int k = 0; k < 32; ++k) (*lane(i).d)[e] += a[i / 4 + e / 2 * 8][k] * b[k][i % 4 * 2 + e % 2];
    }
  }
}

}  // namespace emulated

inline void multiply_bytes(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emulated::ByteProduct own{&d, &a, &b};
  emulator::together(&own, emulated::multiply);
}

#endif

}  // namespace serin::kernels::cuda
