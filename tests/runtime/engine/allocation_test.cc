// No allocation in our code once an executor has run: counted in this program's own malloc, through which operator new goes as well.
//
// A library's own are counted apart: oneDNN takes small blocks for each primitive it executes, and there is nothing to be done about it from here.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "tests/runtime/base/counted_malloc.h"
#include "tests/runtime/engine/fixtures.h"

namespace {
thread_local int64_t allocations = 0;
}

void serin::test::count_allocation() { ++allocations; }

namespace serin::engine {
namespace {

/// Allocations of one run after two others.
int64_t allocations_of_a_run(const test::Fixture& fixture, const kernels::Backend& backend) {
  const auto model = Model::load(fixture.model, backend, {});
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return -1;
  const auto inputs = test::read_tensors(fixture.data_sets.front(), "input");
  const auto executor = (*model)->executor(*bindings_for((*model)->inputs(), test::views(inputs)));
  EXPECT_TRUE(executor) << executor.error().message;
  if (!executor) return -1;
  const std::vector<TensorView> in = test::views(inputs);
  const std::vector<test::Tensor> outputs = test::make_outputs(**executor);
  std::vector<TensorView> out = test::views(outputs);
  bool good = (*executor)->run(in, out).has_value() && (*executor)->run(in, out).has_value();
  const int64_t before = allocations;
  good = (*executor)->run(in, out).has_value() && good;
  const int64_t made = allocations - before;
  EXPECT_TRUE(good);
  return made;
}

class Allocation : public ::testing::TestWithParam<test::Fixture> {};

TEST_P(Allocation, TheCounterCounts) {
  const int64_t before = allocations;
  const auto memory = std::make_unique<std::array<int, 100>>();
  EXPECT_GT(allocations, before);
}

TEST_P(Allocation, NoneOnReferenceKernels) {
  if (GetParam().name == "digits_4" && std::getenv("SERIN_LONG") == nullptr)
    GTEST_SKIP() << "takes the plain kernels half a minute: --long";
  EXPECT_EQ(allocations_of_a_run(GetParam(), test::reference()), 0);
}

TEST_P(Allocation, NoneOnOurOwnKernels) {
  const auto backend = kernels::make_cpu_backend({.onednn_path = "none"});
  EXPECT_EQ(allocations_of_a_run(GetParam(), *backend), 0);
}

TEST_P(Allocation, OneDnnsOwnAreFewAndDoNotGrow) {
  const int64_t first = allocations_of_a_run(GetParam(), test::best()), second = allocations_of_a_run(GetParam(), test::best());
  EXPECT_EQ(first, second);
  RecordProperty("allocations", std::to_string(first));
}

INSTANTIATE_TEST_SUITE_P(All, Allocation, ::testing::ValuesIn(test::fixtures()), [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace serin::engine
