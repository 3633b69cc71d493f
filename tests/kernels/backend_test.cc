// The table walk, shared weights, the choice of instruction set, and what is said where the plugin cannot be loaded.

#include "kernels/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

OpDesc f32_matmul(const float* weight, uint64_t id) {
  return {MatMul{}, {{DType::kFloat32, {2, 3}}, {DType::kFloat32, {3, 4}, false, weight, id}}, {{DType::kFloat32, {2, 4}}}};
}

TEST(BackendTest, PrepareNamesTheRowAndWhoRefused) {
  PackedWeights weights;
  PrepareContext context{&weights};
  const OpDesc sum_of_shorts{Binary{BinaryFn::kAdd}, {{DType::kInt16, {2}}, {DType::kInt16, {2}}}, {{DType::kInt16, {2}}}};
  const Prepared prepared = backend(Isa::kScalar).prepare(sum_of_shorts, context);
  ASSERT_TRUE(prepared.kernel);
  EXPECT_EQ(prepared.name, "ref");
  ASSERT_EQ(prepared.refusals.size(), 4u);
  EXPECT_EQ(prepared.refusals[1].kernel, "binary_f32_scalar");
  EXPECT_EQ(prepared.refusals[1].reason, "f32 only");
}

TEST(BackendTest, NobodyTakesWhatCannotBeComputed) {
  PackedWeights weights;
  PrepareContext context{&weights};
  const OpDesc exp_of_bool{Unary{UnaryFn::kExp}, {{DType::kBool, {2}}}, {{DType::kBool, {2}}}};
  const Prepared prepared = backend(Isa::kScalar).prepare(exp_of_bool, context);
  EXPECT_FALSE(prepared.kernel);
  EXPECT_EQ(prepared.refusals.size(), 4u);
  EXPECT_EQ(prepared.refusals.back().reason, "no kernel for bool");
}

TEST(BackendTest, EveryTableEndsInTheReference) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    for (const auto& rows : backend(isa).table()) {
      ASSERT_FALSE(rows.empty());
      EXPECT_EQ(rows.back().name, "ref");
    }
  }
  for (const auto& rows : reference_backend().table()) EXPECT_EQ(rows.size(), 1u);
}

TEST(BackendTest, AForcedInstructionSetIsInTheNamesOfRows) {
  EXPECT_EQ(backend(Isa::kAvx2).table()[Op(Softmax{}).index()].front().name, "softmax_f32_avx2");
  std::string note;
  make_cpu_backend({.isa = Isa::kScalar, .onednn_path = "none"}, &note);
  EXPECT_EQ(note, "cpu scalar, no oneDNN: not wanted");
  std::printf("this machine's best instruction set: %s\n", std::string(isa_name(best_isa())).c_str());
}

TEST(BackendTest, AWrongPluginPathIsSaidAndNothingElseHappens) {
  std::string note;
  const auto made = make_cpu_backend({.isa = Isa::kScalar, .onednn_path = "/nowhere/libserin_onednn.so"}, &note);
  EXPECT_THAT(note, StartsWith("cpu scalar, no oneDNN: "));
  EXPECT_THAT(note, HasSubstr("/nowhere/libserin_onednn.so"));
  for (const KernelRow& row : made->table()[Op(MatMul{}).index()]) EXPECT_NE(row.name, "onednn");
}

TEST(BackendTest, AFileThatIsNoPluginIsRefused) {
  std::string note;
  make_cpu_backend({.isa = Isa::kScalar, .onednn_path = "libz.so.1"}, &note);  // a library, but not ours
  EXPECT_THAT(note, HasSubstr("serin_onednn_plugin"));
}

TEST(BackendTest, OpenMpIsToldToSleepBeforeItIsLoaded) {
  unsetenv("OMP_WAIT_POLICY");
  make_cpu_backend({.isa = Isa::kScalar, .onednn_path = "none"});
  EXPECT_EQ(getenv("OMP_WAIT_POLICY"), nullptr);  // nothing will be loaded
  make_cpu_backend({.isa = Isa::kScalar, .onednn_path = "/nowhere/libserin_onednn.so"});
  EXPECT_STREQ(getenv("OMP_WAIT_POLICY"), "passive");
  setenv("OMP_WAIT_POLICY", "active", 1);
  make_cpu_backend({.isa = Isa::kScalar, .onednn_path = "/nowhere/libserin_onednn.so"});
  EXPECT_STREQ(getenv("OMP_WAIT_POLICY"), "active");  // the user's choice
  unsetenv("OMP_WAIT_POLICY");
}

TEST(PackedWeightsTest, OneBufferForEachIdAndLayout) {
  PackedWeights weights;
  int packed = 0;
  const auto get = [&](uint64_t id, std::string_view layout) { return weights.get(id, layout, 64, [&](std::byte*) { ++packed; }); };
  const auto a = get(1, "x");
  EXPECT_EQ(get(1, "x"), a);
  EXPECT_EQ(packed, 1);
  const auto b = get(1, "y"), c = get(2, "x");
  EXPECT_NE(b, a);
  EXPECT_NE(c, a);
  EXPECT_EQ(weights.bytes(), 3 * 64u);
}

TEST(PackedWeightsTest, IdZeroIsNeverShared) {
  PackedWeights weights;
  const auto a = weights.get(0, "x", 8, [](std::byte*) {});
  const auto b = weights.get(0, "x", 8, [](std::byte*) {});
  EXPECT_NE(a, b);
  EXPECT_EQ(weights.bytes(), 16u);
}

TEST(PackedWeightsTest, LetsGoOfWhatNobodyUses) {
  PackedWeights weights;
  int packed = 0;
  for (int i = 0; i < 3; ++i) weights.get(1, "x", 64, [&](std::byte*) { ++packed; });
  EXPECT_EQ(packed, 3);
  EXPECT_EQ(weights.bytes(), 0u);
}

TEST(PackedWeightsTest, PacksOnceHoweverManyLoadAtOnce) {
  PackedWeights weights;
  std::atomic<int> packed = 0;
  std::vector<std::shared_ptr<const PackedWeights::Buffer>> held(8);
  std::vector<std::thread> threads;
  for (auto& buffer : held) threads.emplace_back([&] { buffer = weights.get(7, "x", 1 << 16, [&](std::byte*) { ++packed; }); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(packed, 1);
  EXPECT_EQ(held.front(), held.back());
}

TEST(PackedWeightsTest, TwoKernelsOfOneModelShareAPackedMatrix) {
  PackedWeights weights;
  PrepareContext context{&weights};
  const std::vector<float> weight(12, 1.f);
  const Prepared first = backend(Isa::kScalar).prepare(f32_matmul(weight.data(), 5), context);
  const size_t bytes = weights.bytes();
  EXPECT_GE(bytes, 12 * sizeof(float));
  const Prepared second = backend(Isa::kScalar).prepare(f32_matmul(weight.data(), 5), context);
  EXPECT_EQ(weights.bytes(), bytes);
  EXPECT_EQ(first.kernel->packed_inputs(), 0b10u);
}

}  // namespace
}  // namespace serin::kernels::test
