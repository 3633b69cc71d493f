#include "runtime/base/aligned_buffer.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace serin {
namespace {

TEST(AlignedBuffer, IsAlignedAndHoldsAllItsBytes) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{100'000}, size_t{40} << 20}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment, 0U);
    ASSERT_EQ(buffer.size(), bytes);
    std::memset(buffer.data(), 1, AlignedBuffer::rounded_up(bytes));  // a sanitizer finds a byte too far
  }
}

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer from(128);
  std::byte* const data = from.data();
  AlignedBuffer to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(from.data(), nullptr);  // NOLINT(bugprone-use-after-move): a buffer without memory
  EXPECT_EQ(from.size(), 0U);
  from = std::move(to);
  EXPECT_EQ(from.data(), data);
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// As requests come and go: each leaves a block between others that stay.
TEST(AlignedBuffer, TakesTheBlockThatOneOfItsSizeHasLeft) {
  constexpr size_t kBytes = size_t{1} << 20, kBetween = size_t{64} << 10;
  ::mallopt(M_MMAP_THRESHOLD, 16 << 20);  // as `serin serve` sets it
  std::vector<AlignedBuffer> buffers, between;
  for (int i = 0; i < 20; ++i) {
    buffers.emplace_back(kBytes);
    between.emplace_back(kBetween);
  }
  const size_t before = ::mallinfo2().arena;
  for (AlignedBuffer& buffer : buffers) {
    buffer = AlignedBuffer();
    buffer = AlignedBuffer(kBytes);
  }
  EXPECT_LT(::mallinfo2().arena - before, kBytes * 2);
}
#endif

}  // namespace
}  // namespace serin
