// The tables of `serin bench --profile`, from times that are given.

#include "runtime/cli/tools/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace serin::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StepTime step(const std::string& node, const std::string& op, const std::string& kernel, int64_t flops, int64_t bytes, double ms) {
  StepTime time;
  time.step.node = node, time.step.op = op, time.step.kernel = kernel;
  time.step.flops = flops, time.step.bytes = bytes;
  time.step.outputs.resize(1);
  time.step.outputs[0].dtype = "f32", time.step.outputs[0].shape = "[2,3]";
  time.ms = ms;
  return time;
}

TEST(Profile, AddsStepsOfAKernelUpAndPutsTheSlowestFirst) {
  const std::vector<StepTime> times = {step("a", "Softmax", "softmax_f32", 0, 3'000'000, 1),
                                       step("b", "Gemm", "gemm_f32", 400'000'000, 2'000'000, 2),
                                       step("c", "Gemm", "gemm_f32", 600'000'000, 2'000'000, 2)};
  EXPECT_EQ(profile_table(times), R"(       ms   share  steps  GFLOP/s    GB/s
     4.00   80.0%      2      250    1.00  Gemm gemm_f32
     1.00   20.0%      1        0    3.00  Softmax softmax_f32
     5.00  100.0%      3      200    1.40  in all

the slowest steps
     2.00   40.0%      1      200    1.00  Gemm f32[2,3] b
     2.00   40.0%      1      300    1.00  Gemm f32[2,3] c
     1.00   20.0%      1        0    3.00  Softmax f32[2,3] a
)");
}

TEST(Profile, NamesTheSlowestStepsOnly) {
  std::vector<StepTime> times;
  for (int i = 0; i < 40; ++i) times.push_back(step("node" + std::to_string(i) + ".", "Add", "binary_f32", 1, 1, i));
  const std::string table = profile_table(times);
  EXPECT_THAT(table, HasSubstr("node39."));
  EXPECT_THAT(table, Not(HasSubstr("node0.")));
}

TEST(Profile, SaysNothingOfSpeedWhereNoTimePassed) {
  EXPECT_THAT(profile_table({step("a", "Add", "binary_f32", 10, 10, 0)}),
              HasSubstr("        0    0.0%      1        0       0  Add binary_f32"));
  EXPECT_THAT(profile_table({}), HasSubstr("in all"));
}

TEST(Profile, HasARowForEachStepInOrder) {
  const auto rows = profile_rows({step("a", "Add", "binary_f32", 10, 20, 0.5), step("b", "Gemm", "gemm_f32", 30, 40, 0.25)});
  EXPECT_EQ(boost::json::serialize(rows[0]), R"({"node":"a","op":"Add","kernel":"binary_f32","ms":5E-1,"flops":10,"bytes":20})");
  EXPECT_EQ(rows.size(), 2u);
}

}  // namespace
}  // namespace serin::cli
