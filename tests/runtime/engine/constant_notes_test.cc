#include "runtime/engine/plan/constant_notes.h"

#include <gtest/gtest.h>

#include <span>

namespace serin::engine {
namespace {

graph::ConstantPtr weight(int64_t floats) {
  return graph::make_constant(DType::kFloat32, Shape{floats}, [](std::span<std::byte>) -> Status { return {}; });
}

class ConstantNotesTest : public ::testing::Test {
 protected:
  static constexpr int64_t kFloats = 100'000;
  static constexpr size_t kBytes = 4 * kFloats;

  size_t most(size_t packed, int threads = 1) const { return notes_.most_while_packing(packed, threads); }
  void pack(const graph::ConstantPtr& one, size_t all) { notes_.packed(std::span(&one, 1), all); }

  const graph::ConstantPtr first_ = weight(kFloats), second_ = weight(kFloats);
  ConstantNotes notes_;
};

TEST_F(ConstantNotesTest, AWeightOfAFileIsPlainOnlyWhileItIsPacked) {
  pack(first_, kBytes);
  pack(second_, 2 * kBytes);
  EXPECT_EQ(most(2 * kBytes), 3 * kBytes);
  EXPECT_EQ(most(2 * kBytes, 4), 6 * kBytes);  // one of each thread
}

TEST_F(ConstantNotesTest, FoldedWeightsAreInMemoryUntilTheyArePacked) {
  notes_.waits(*first_);
  notes_.waits(*second_);
  EXPECT_EQ(most(0), 2 * kBytes);
  pack(first_, kBytes / 2);  // such as bf16: both plain ones are there meanwhile
  EXPECT_EQ(most(kBytes / 2), 2 * kBytes + kBytes / 2);
  pack(second_, kBytes);  // the first one has gone
  EXPECT_EQ(most(kBytes), 2 * kBytes + kBytes / 2);
}

TEST_F(ConstantNotesTest, AWeightThatIsPackedAlreadyIsNotReadAgain) {
  pack(first_, kBytes);
  pack(first_, kBytes);
  EXPECT_EQ(most(kBytes), 2 * kBytes);
}

}  // namespace
}  // namespace serin::engine
