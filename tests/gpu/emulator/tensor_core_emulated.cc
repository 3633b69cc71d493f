#include "tensor_core_emulated.h"

#include <cstring>

#include "cuda_runtime.h"

namespace emulator {

namespace {

struct Multiply {
  float (*d)[4];
  const uint32_t (*a)[4];
  const uint32_t (*b)[2];
  ToFloat to_float;
};

/// Element `which` (0: the low one) of a register.
float element(const Multiply& lane, uint32_t reg, int which) { return lane.to_float(static_cast<uint16_t>(reg >> (16 * which))); }

void multiply(void* const* lanes) {
  const auto lane = [&](int i) { return *static_cast<const Multiply*>(lanes[i]); };
  float a[16][16], b[16][8];
  for (int i = 0; i < 32; ++i) {
    const Multiply own = lane(i);
    const int g = i / 4, t = i % 4;
    for (int reg = 0; reg < 4; ++reg) {
      for (int which = 0; which < 2; ++which) a[g + reg % 2 * 8][2 * t + which + reg / 2 * 8] = element(own, (*own.a)[reg], which);
    }
    for (int reg = 0; reg < 2; ++reg) {
      for (int which = 0; which < 2; ++which) b[2 * t + which + reg * 8][g] = element(own, (*own.b)[reg], which);
    }
  }
  for (int i = 0; i < 32; ++i) {
    float(&d)[4] = *lane(i).d;
    for (int e = 0; e < 4; ++e) {
      const int row = i / 4 + e / 2 * 8, column = i % 4 * 2 + e % 2;
      for (int k = 0; k < 16; ++k) d[e] += a[row][k] * b[k][column];
    }
  }
}

struct Load {
  uint32_t (*r)[4];
  const void* row;
  bool turned;
};

void load(void* const* lanes) {
  const auto lane = [&](int i) { return *static_cast<const Load*>(lanes[i]); };
  for (int matrix = 0; matrix < 4; ++matrix) {
    uint16_t elements[8][8];
    for (int row = 0; row < 8; ++row) {
      const void* const from = lane(matrix * 8 + row).row;
      if (reinterpret_cast<uintptr_t>(from) % 16 != 0) fail("a row of a matrix is not aligned to 16 bytes");
      check_shared(from, 16);
      std::memcpy(elements[row], from, 16);
    }
    for (int i = 0; i < 32; ++i) {
      const int g = i / 4, t = i % 4;
      const bool turned = lane(i).turned;
      const uint16_t low = turned ? elements[2 * t][g] : elements[g][2 * t],
                     high = turned ? elements[2 * t + 1][g] : elements[g][2 * t + 1];
      (*lane(i).r)[matrix] = low | static_cast<uint32_t>(high) << 16;
    }
  }
}

}  // namespace

void multiply_tile(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], ToFloat to_float) {
  Multiply own{&d, &a, &b, to_float};
  together(&own, multiply);
}

void load_matrices(uint32_t (&r)[4], const void* row, bool turned) {
  Load own{&r, row, turned};
  together(&own, load);
}

void begin_copy(void* to, const void* from, bool there) {
  check_global(from, there ? 16 : 1);  // the instruction takes no other address, even for nothing
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) fail("a copy is not aligned to 16 bytes");
  check_shared(to, 16);
  pending_copies().push_back({to, there ? from : nullptr, 0});
}

void close_group() {
  for (PendingCopy& copy : pending_copies()) ++copy.groups;
}

void wait_copies(int left) {
  std::erase_if(pending_copies(), [left](const PendingCopy& copy) {
    if (copy.groups <= left) return false;  // closed so many groups ago, or not at all
    if (copy.from)
      std::memcpy(copy.to, copy.from, 16);
    else
      std::memset(copy.to, 0, 16);
    return true;
  });
}

}  // namespace emulator
