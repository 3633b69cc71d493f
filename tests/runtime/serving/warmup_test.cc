// warmup_test.cc: requests that a version is warmed with before it is ready.

#include "runtime/serving/scheduling/warmup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/serving/repository/version.h"

namespace serin::serving {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const protocol::Signature kModel = {"model 'm' version 1", {{"x", DType::kFloat32, {-1, 2}}, {"s", DType::kString, {-1, 1}}}, {}};

class Warmup : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Filling file(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return {Filling::Kind::kFile, (folder_ / name).string()};
  }
  std::string refusal(WarmupRequest request) {
    auto job = warmup_job(request, kModel, /*batchable=*/true);
    return job ? "was accepted" : job.error().message;
  }

  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / ("warmup_" + std::to_string(::getpid()));
};

TEST_F(Warmup, FilesHoldTheBytesOfOneRowAsTheyTravel) {
  const std::string floats("\0\0\x80\x3f\0\0\0\x40", 8);
  const auto job = warmup_job({.name = "a",
                               .batch_size = 3,
                               .inputs = {{"x", {.data = file("x", floats)}}, {"s", {.data = file("s", std::string("\2\0\0\0hi", 6))}}}},
                              kModel, true);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ((*job)->rows, 3);
  EXPECT_THAT((*job)->inputs[0].span<float>(), ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_THAT((*job)->inputs[1].span<std::string>(), ElementsAre("hi", "hi", "hi"));
}

TEST_F(Warmup, ALongerFileGivesItsFirstBytes) {
  const std::string floats("\0\0\x80\x3f\0\0\0\x40more", 12);
  const auto job = warmup_job({.name = "a", .inputs = {{"x", {.data = file("x", floats)}}, {"s", {}}}}, kModel, true);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_THAT((*job)->inputs[0].span<float>(), ElementsAre(1, 2));
  EXPECT_THAT(refusal({.name = "a", .inputs = {{"s", {.data = file("s", std::string("\2\0\0\0hi, and more", 16))}}, {"x", {}}}}),
              HasSubstr("'s'"));  // texts have no size but their own
}

TEST_F(Warmup, RandomIsTheSameInEveryRunAndZeroIsZero) {
  const auto make = [](Filling::Kind kind) {
    return *warmup_job({.name = "a", .batch_size = 2, .inputs = {{"x", {.data = {kind, {}}}}, {"s", {}}}}, kModel, true);
  };
  const JobPtr one = make(Filling::Kind::kRandom), two = make(Filling::Kind::kRandom);
  EXPECT_THAT(one->inputs[0].span<float>(), testing::ElementsAreArray(two->inputs[0].span<float>()));
  EXPECT_THAT(one->inputs[0].span<float>(), testing::Not(testing::Contains(0)));
  EXPECT_THAT(make(Filling::Kind::kZero)->inputs[0].span<float>(), Each(0));
}

TEST_F(Warmup, WhatNoClientCouldSendIsRefused) {
  EXPECT_THAT(refusal({.name = "a", .inputs = {{"x", {}}}}), HasSubstr("input 's' is missing"));
  EXPECT_THAT(refusal({.name = "a", .inputs = {{"y", {}}}}), HasSubstr("unexpected inference input 'y'"));
  EXPECT_THAT(refusal({.name = "a", .inputs = {{"x", {.dtype = DType::kInt64}}}}), HasSubstr("expects 'FP32'"));
  EXPECT_THAT(refusal({.name = "a", .inputs = {{"x", {.dims = {3}}}}}), HasSubstr("the request has [1,3]"));
  EXPECT_THAT(refusal({.name = "a", .inputs = {{"x", {.data = file("short", "abc")}}, {"s", {}}}}), HasSubstr("short: "));
  EXPECT_THAT(refusal({.name = "a", .inputs = {{"x", {.data = {Filling::Kind::kFile, (folder_ / "none").string()}}}, {"s", {}}}}),
              HasSubstr("none: cannot be read"));
}

TEST_F(Warmup, OneThatFailsFailsTheLoadByItsName) {
  const auto backend = kernels::make_cpu_backend({.onednn_path = "none"});
  metrics::Registry metrics;
  Host host{.backend = *backend, .metrics = metrics, .boot = 1, .pool = ComputePool(1)};
  const SchedulerFactory schedulers(host);
  const auto load = [&](WarmupRequest request) {
    ModelSettings settings;
    settings.max_batch = 4;
    settings.warmup_requests = {std::move(request)};
    const auto version = Version::load("digits", "1", std::string(SERIN_MODELS) + "/digits/1/model.onnx", settings, host, schedulers);
    return version ? std::string() : version.error().message;
  };
  EXPECT_EQ(load({.name = "good", .batch_size = 3, .count = 2, .inputs = {{"pixels", {.data = {Filling::Kind::kRandom, {}}}}}}), "");
  EXPECT_THAT(load({.name = "wide", .inputs = {{"pixels", {.dims = {65}}}}}),
              HasSubstr("model 'digits' version 1: warm-up request 'wide': model 'digits' version 1: input 'pixels' expects"));
  EXPECT_THAT(load({.name = "large", .batch_size = 5, .inputs = {{"pixels", {}}}}),
              HasSubstr("warm-up request 'large': batch_size 5 is over max_batch"));
}

}  // namespace
}  // namespace serin::serving
