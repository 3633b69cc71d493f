#include <gmock/gmock.h>

#include <thread>

#include "runtime/formats/model_file.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::model_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kTwoSymbols = "x: f32[batch,seq]\ny = Softmax(x, axis=1)\nreturn y\n";

TEST(Model, SaysWhatItTakesAndGives) {
  const auto model = model_of("x: f32[batch,64]\nfc = MatMul(x, w[64,10])\nreturn fc as logits\n");
  ASSERT_EQ(model->inputs().size(), 1u);
  EXPECT_EQ(model->inputs()[0].name, "x");
  EXPECT_EQ(model->inputs()[0].shape, (Shape{-1, 64}));
  EXPECT_EQ(graph::print(model->inputs()[0].dims), "[batch,64]");
  EXPECT_EQ(model->outputs()[0].name, "logits");
  EXPECT_EQ(model->outputs()[0].shape, (Shape{-1, 10}));
  EXPECT_THAT(model->symbols(), ElementsAre("batch"));
  EXPECT_TRUE(model->batchable().yes) << model->batchable().why_not;
}

TEST(Model, KeepsTheOutputNamesOfTheFileInEachBucket) {
  const auto model = model_of("x: f32[batch,64]\nfc = Neg(x)\nreturn fc as logits\n");
  const auto executor = *model->executor({{"batch", 2}});
  EXPECT_EQ(executor->outputs()[0].name, "logits");
  EXPECT_EQ(executor->outputs()[0].shape, (Shape{2, 64}));
}

// Right at one batch only: it is served with that one, and says why not with others.
TEST(Model, WhatFitsOneBatchOnlyIsLoadedForIt) {
  const auto rnn = model_of("x: f32[t,n,5]\ny, h = RNN(x, w[1,4,5], r[1,4,4], _, _, first[1,3,4], hidden_size=4)\nreturn h\n");
  EXPECT_THAT(rnn->batchable().why_not, HasSubstr("not every size fits: node 'y' (RNN): a first state has shape [1,3,4], the batch is 1"));
  const auto reshape = model_of("x: f32[n,4]\nr = Reshape(x, i64{6,8})\nreturn r\n");
  EXPECT_THAT(reshape->batchable().why_not, HasSubstr("not every size fits: node 'r' (Reshape): cannot reshape [1,4] to [6,8]"));
  const auto answer = [](Model& model, const Shape& shape) {
    const auto x = test::random_tensor(shape, 1);
    return model.run(std::vector<Value>{Value::of(graph::make_constant(DType::kFloat32, shape, x.view().data))});
  };
  ASSERT_TRUE(answer(*rnn, {2, 3, 5}));
  EXPECT_EQ(answer(*rnn, {2, 3, 5})->front().tensor->shape, (Shape{1, 3, 4}));
  EXPECT_THAT(answer(*rnn, {2, 2, 5}).error().message, HasSubstr("a first state has shape [1,3,4], the batch is 2"));
  EXPECT_EQ(answer(*reshape, {12, 4})->front().tensor->shape, (Shape{6, 8}));
  EXPECT_FALSE(answer(*reshape, {11, 4}));
}

TEST(Model, EverySymbolMustHaveASize) {
  const auto model = model_of(kTwoSymbols);
  EXPECT_EQ(model->executor({{"batch", 1}}).error().message, "dimension 'seq' has no size");
  EXPECT_EQ(model->executor({{"batch", 1}, {"seq", -1}}).error().message, "dimension 'seq' cannot be -1");
  EXPECT_EQ(model->executor({{"batch", 1}, {"seq", 1}, {"width", 3}}).error().message,
            "the model has no dimension 'width'; it has: batch, seq");
}

TEST(Model, PlansAreFoundByExactShapesAndTheOldestGoesFirst) {
  const auto model = model_of(kTwoSymbols, test::reference(), {.max_plans = 2});
  const auto plan = [&](int64_t batch, int64_t seq) { ASSERT_TRUE(model->executor({{"batch", batch}, {"seq", seq}})); };
  const auto counters = [&] {
    const Model::CacheCounters c = model->plan_cache();
    return std::vector<uint64_t>{c.hits, c.misses, c.evictions};
  };
  plan(2, 3);
  plan(3, 2);  // the same product, the same set of numbers: another plan
  EXPECT_THAT(counters(), ElementsAre(0, 2, 0));
  plan(2, 3);
  EXPECT_THAT(counters(), ElementsAre(1, 2, 0));
  plan(4, 4);  // evicts 3, 2
  plan(2, 3);
  EXPECT_THAT(counters(), ElementsAre(2, 3, 1));
  plan(3, 2);
  EXPECT_THAT(counters(), ElementsAre(2, 4, 2));
}

TEST(Model, AnExecutorOutlivesItsPlansPlaceInTheCacheAndTheModel) {
  auto model = model_of("x: f32[n,2]\ny = MatMul(x, w:f32[2,1]{1.0,2.0})\nreturn y\n", test::best(), {.max_plans = 1});
  auto executor = *model->executor({{"n", 1}});
  ASSERT_TRUE(model->executor({{"n", 2}}));
  model.reset();
  EXPECT_THAT(test::run(*executor, {test::Tensor(Shape{1, 2}, std::vector<float>{3, 4})}).at(0).values<float>(), ElementsAre(11));
}

TEST(Model, ManyShapesDoNotGrowTheWeights) {
  const auto model = model_of("x: f32[n,64]\ny = MatMul(x, w[64,64])\nreturn y\n", test::best(), {.max_plans = 4});
  for (int64_t n = 1; n <= 8; ++n) ASSERT_TRUE(model->executor({{"n", n}}));
  const size_t bytes = model->weight_bytes();
  for (int64_t n = 9; n <= 40; ++n) ASSERT_TRUE(model->executor({{"n", n}}));
  EXPECT_LE(model->weight_bytes(), bytes);
}

TEST(Model, SeveralThreadsGetPlansAtOnce) {
  const auto model = model_of(kTwoSymbols);
  const auto work = [&model](int64_t start) {
    for (int64_t i = 0; i < 20; ++i) {
      auto executor = model->executor({{"batch", 1 + (start + i) % 3}, {"seq", 4}});
      ASSERT_TRUE(executor);
      test::run(**executor, {test::random_tensor((*executor)->inputs()[0].shape, 1)});
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int64_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  const Model::CacheCounters counters = model->plan_cache();
  EXPECT_EQ(counters.hits + counters.misses, 80u);
}

TEST(Model, ShapesThatOnlyLargerSizesAllowAreNoReasonToRefuse) {
  EXPECT_EQ(test::refusal_of("x: f32[batch,1,h,w]\ny = Conv(x, k[1,1,3,3])\nreturn y\n"), "accepted");
}

TEST(Model, ABucketAboveTheMemoryLimitIsRefusedWithItsBytes) {
  const auto model =
      model_of("x: f32[n,1]\nt = Transpose(x, perm=[1,0])\ns = Mul(x, t)\ny = Softmax(s, axis=1)\nz = ReduceSum(y)\nreturn z\n");
  ASSERT_TRUE(model->executor({{"n", 16}}));
  const auto executor = model->executor({{"n", 100000}});
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().code, Code::kTooLarge);
  EXPECT_EQ(executor.error().message, "these sizes need an arena of 80000000000 bytes, more than the limit of 8589934592");
}

TEST(Model, InputsThatNoPlanTakesAreWhyItIsInterpreted) {
  EXPECT_EQ(model_of("x: f32[...]\ny = Neg(x)\nreturn y\n")->why_interpreted(), "input 'x' does not say how many dimensions it has");
  EXPECT_EQ(model_of("x: sequence(f32[2])\nreturn x\n")->why_interpreted(), "input 'x' is not a tensor");
  EXPECT_EQ(model_of("x: str[2]\nreturn x\n")->why_interpreted(), "input 'x' holds strings");
}

TEST(Model, FilesOfUnknownFormatsAreRefusedWithThoseThatAreRead) {
  const auto model = Model::load("weights.odd", test::reference(), {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message, std::string("weights.odd: models of these formats are read: ") + formats::kReadableFormats);
}

}  // namespace
}  // namespace serin::engine
