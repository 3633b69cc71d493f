// planner_test.cc: for every model of the repository, every batch, precision and number of instances, what was planned is what a load holds, byte for byte.

#include "runtime/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "kernels/backend.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/engine.h"
#include "runtime/planner/report.h"
#include "runtime/samples/int8.h"

namespace serin::planner {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const kernels::Backend& backend() {
  static const auto made = kernels::make_cpu_backend({});
  return *made;
}
const kernels::Backend* bf16_backend() {
  static const auto made = kernels::multiplies_bf16() ? kernels::make_cpu_backend({.bf16 = true}) : nullptr;
  return made.get();
}
Planner planner() { return Planner({.backend = backend(), .bf16_backend = bf16_backend(), .note = "cpu", .cores = 2}); }

std::vector<std::string> models() {
  std::vector<std::string> found;
  for (const std::string root : {SERIN_MODELS, SERIN_TEST_DATA, SERIN_MODELS "/../services"})
    for (const auto& entry : fs::recursive_directory_iterator(root))
      if (entry.path().filename() == "model.onnx" && entry.path().string().find("/bad/") == std::string::npos)
        found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// As `serve` loads it.
Result<std::shared_ptr<engine::Model>> load(const std::string& path, serving::Precision precision, int threads) {
  engine::LoadOptions options;
  options.threads = threads;
  options.max_plans = 256;
  if (precision == serving::Precision::kInt8) {
    SERIN_TRY(graph::Graph graph, engine::read_model(path));
    SERIN_TRY(samples::Int8Model made, samples::int8_model(std::move(graph), backend(), options, {"", {}, 1}));
    return std::move(made.model);
  }
  return engine::Model::load(path, precision == serving::Precision::kBf16 ? *bf16_backend() : backend(), options);
}

struct Count {
  int rows = 0, models = 0, under = 0;
};

/// Loads what was planned, makes the executors of all instances, and compares.
void compare(const ModelAnswer& planned, const std::string& path, serving::Precision precision, Count& count) {
  const auto model = load(path, precision, planned.threads);
  ASSERT_TRUE(model) << model.error().message;
  std::vector<std::unique_ptr<engine::Executor>> executors;
  for (int instance = 0; instance < planned.instances; ++instance)
    for (const Bucket& bucket : planned.buckets) {
      auto executor = (*model)->executor(bucket.sizes);
      ASSERT_TRUE(executor) << executor.error().message;
      EXPECT_EQ(bucket.arena, (*executor)->arena_bytes());
      count.under += bucket.arena < (*executor)->arena_bytes();
      ++count.rows;
      executors.push_back(std::move(*executor));
    }
  const engine::WeightBytes held = (*model)->weights();
  EXPECT_EQ(planned.weights.constants, held.constants);
  EXPECT_EQ(planned.weights.packed, held.packed);
  count.under += planned.weights.constants + planned.weights.packed < held.constants + held.packed;
  ++count.rows;
}

TEST(Planner, PlansTheBytesThatALoadHolds) {
  Count count;
  for (const std::string& path : models())
    for (const serving::Precision precision : {serving::Precision::kFp32, serving::Precision::kInt8, serving::Precision::kBf16})
      for (const int threads : {1, 2})
        for (const int instances : {1, 3}) {
          if (precision == serving::Precision::kBf16 && !bf16_backend()) continue;
          SCOPED_TRACE(path + " " + serving::print_precision(precision));
          Question question{.batches = {1, 3, 8}, .instances = instances, .threads = threads, .precision = precision};
          auto answer = planner().plan({path}, question);
          if (!answer && answer.error().message.find("has no size") != std::string::npos) {
            question.sizes = {{"seq", {8, 16}}};
            answer = planner().plan({path}, question);
          }
          if (!answer && answer.error().message.find("has no size") != std::string::npos) continue;  // others are sized by their own tests
          ASSERT_TRUE(answer) << answer.error().message;
          ASSERT_THAT(answer->models, SizeIs(1));
          if (!answer->models[0].not_planned.empty()) continue;
          compare(answer->models[0], path, precision, count);
          ++count.models;
        }
  std::printf("%d rows of %d loads: bytes planned = bytes held, rate of under-estimates %.4f\n", count.rows, count.models,
              static_cast<double>(count.under) / count.rows);
  EXPECT_GE(count.rows, 200);
}

TEST(Planner, NamesWhatTheQuestionGotWrong) {
  const std::string digits = SERIN_MODELS "/digits/1/model.onnx";
  const auto error_of = [](const std::vector<std::string>& places, const Question& question) {
    const auto answer = planner().plan(places, question);
    return answer ? std::string() : answer.error().message;
  };
  EXPECT_THAT(error_of({testing::TempDir() + "/serin_no_such_place"}, {}), HasSubstr("serin_no_such_place: no such folder or file"));
  EXPECT_THAT(error_of({digits}, {.sizes = {{"seq", {8}}}}), HasSubstr("no model has a dimension 'seq'"));
  EXPECT_THAT(error_of({digits}, {.sizes = {{"batch", {8}}}}), HasSubstr("--batch"));
  EXPECT_THAT(error_of({digits}, {.precision = serving::Precision::kFp16}), HasSubstr("precision fp16: only a device computes in it"));
}

TEST(Planner, AddsUpSeveralModels) {
  const auto one = planner().plan({SERIN_MODELS "/digits/1/model.onnx"}, {.batches = {4}});
  const auto all = planner().plan({SERIN_MODELS}, {.batches = {4}});
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(one->models[0].buckets, SizeIs(2));  // and that of one row, which is run before the version is ready
  EXPECT_GE(all->total(), all->base + all->models[0].steady());
  EXPECT_GT(all->total(), one->total());
}

TEST(Planner, ReadsNoWeights) {
  const auto answer = planner().plan({SERIN_MODELS "/digits/2/model.onnx"}, {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_GT(answer->models[0].weights_at_load, answer->models[0].weights.packed);  // one is there plain while it is packed
  EXPECT_THAT(print_text(*answer, 3), HasSubstr("no weights read"));
  EXPECT_THAT(print_json(*answer), HasSubstr("\"schema\":\"serin.plan/1\""));
}

}  // namespace
}  // namespace serin::planner
