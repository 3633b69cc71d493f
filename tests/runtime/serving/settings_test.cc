// settings_test.cc: models/<name>/serin.yaml.

#include "runtime/serving/settings/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace serin::serving {
namespace {

using namespace std::chrono_literals;

Result<ModelSettings> read(const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / ("settings_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << text;
  auto settings = read_model_settings(path);
  std::filesystem::remove(path);
  return settings;
}

TEST(ModelSettings, DefaultsWithoutAFile) {
  const auto settings = read_model_settings("/nowhere/serin.yaml");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->max_batch, 32);
  EXPECT_FALSE(settings->instances);
}

TEST(ModelSettings, ReadsWhatIsThere) {
  const auto settings = read("max_batch: 8\ninstances: 2\nthreads: 1\nqueue_limit: 7\nwarmup: false\nprecision: bf16\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->max_batch, 8);
  EXPECT_EQ(settings->instances, 2);
  EXPECT_EQ(settings->queues.levels.front().limit, 7u);
  EXPECT_FALSE(settings->warmup);
  EXPECT_EQ(settings->precision, Precision::kBf16);
}

TEST(ModelSettings, C4_NonsenseIsRefusedWithItsPlace) {
  for (const char* text :
       {"max_batch: 0",       "max_batch: -1",   "max_batch: 2147483648", "instances: 0",       "instances: 10000",
        "queue_limit: 0",     "threads: 0",      "precision: int3",       "samples: inputs",    "{precision: fp32, samples: inputs}",
        "device: gpu",        "device: 'cuda:'", "device: 'cuda:-1'",     "gpu_mem_limit: 0",   "gpu_mem_limit: lots",
        "priority: high",     "buckets: 32",     "buckets: {seq: 32}",    "buckets: {seq: []}", "buckets: {seq: [64, 32]}",
        "buckets: {seq: [0]}"}) {
    const auto settings = read(text);
    ASSERT_FALSE(settings) << text;
    EXPECT_NE(settings.error().message.find(".yaml:1:"), std::string::npos) << settings.error().message;
  }
}

TEST(ModelSettings, WhatTheFileDoesNotSayIsTheServersDefault) {
  const ModelSettings defaults{.precision = Precision::kAuto};
  EXPECT_EQ(read_model_settings("/nowhere/serin.yaml", defaults)->precision, Precision::kAuto);
}

TEST(ModelSettings, SamplesLieBesideTheFile) {
  EXPECT_EQ(read("precision: int8\nsamples: calibration\n")->precision, Precision::kInt8);
  const auto settings = read("precision: auto\nsamples: calibration\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(std::filesystem::path(settings->samples), std::filesystem::path(testing::TempDir()) / "calibration");
}

TEST(ModelSettings, SaysWhereAModelRuns) {
  const auto settings = read("device: 'cuda:1'\ngpu_mem_limit: 8589934592\npriority: max\nbuckets: {seq: [32, 128]}\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->device.kind, engine::DeviceChoice::Kind::kCuda);
  EXPECT_EQ(settings->device.index, 1);
  EXPECT_EQ(settings->gpu_mem_limit, int64_t{8} << 30);
  EXPECT_EQ(settings->priority, 1);
  EXPECT_EQ(settings->buckets.at("seq"), (std::vector<int64_t>{32, 128}));
  for (const char* device : {"cpu", "cuda", "cuda:0", "cuda:12", "auto"})
    EXPECT_EQ(engine::print_device(*engine::parse_device(device)), device);
  for (const char* device : {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:99999999999"})
    EXPECT_FALSE(engine::parse_device(device)) << device;
}

TEST(ModelSettings, NamesVersions) {
  const auto settings = read("labels: {stable: 3, canary: 4}");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->labels, (Labels{{"canary", 4}, {"stable", 3}}));
  for (const char* text : {"labels: stable", "labels: {stable: 0}", "labels: {stable: x}", "labels: {'a/b': 1}", "labels: {'a:b': 1}"})
    EXPECT_FALSE(read(text)) << text;
}

TEST(ModelSettings, NamesSignatures) {
  const auto settings = read("signatures: [embed, serving_default]");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->signatures, (std::vector<std::string>{"embed", "serving_default"}));
  for (const char* text : {"signatures: embed", "signatures: []", "signatures: [a, b, a]", "signatures: [{a: b}]"})
    EXPECT_FALSE(read(text)) << text;
}

TEST(ModelSettings, SaysHowRequestsWait) {
  const auto settings = read(
      "{slo: 50ms, max_queue_delay: 2ms, queue_limit: 64, queue_timeout: 1s, priority_levels: 3, default_priority_level: 2,"
      " priority_queues: {1: {queue_limit: 8, queue_timeout_action: delay}}}");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->slo, 50ms);
  EXPECT_EQ(settings->max_queue_delay, 2ms);
  const QueuePolicy common{.limit = 64, .timeout = 1s};
  EXPECT_EQ(settings->queues.levels, (std::vector<QueuePolicy>{{.limit = 8, .timeout = 1s, .delay = true}, common, common}));
  EXPECT_EQ(settings->queues.standard, 2u);
  for (const char* text : {"slo: fast", "slo: -1ms", "max_queue_delay: 11s", "queue_timeout: 3", "queue_timeout_action: drop",
                           "priority_levels: 0", "priority_levels: 2", "{priority_levels: 2, default_priority_level: 3}",
                           "priority_queues: 3", "priority_queues: {2: {queue_limit: 8}}", "priority_queues: {1: {limit: 8}}"}) {
    const auto refused = read(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().message.find(".yaml:1:"), std::string::npos) << refused.error().message;
  }
}

TEST(ModelSettings, NamesRequestsToWarmWith) {
  const auto settings =
      read("warmup: [{name: a, batch_size: 4, count: 2, inputs: {x: {dtype: FP32, dims: [3], random: true}, y: {file: y.bin}}}]");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_TRUE(settings->warmup);
  ASSERT_EQ(settings->warmup_requests.size(), 1u);
  const WarmupRequest& request = settings->warmup_requests[0];
  EXPECT_EQ(request.batch_size, 4);
  EXPECT_EQ(request.inputs.at("x").dims, std::vector<int64_t>{3});
  EXPECT_EQ(request.inputs.at("y").data.file, (std::filesystem::path(testing::TempDir()) / "warmup/y.bin").string());
  for (const char* text :
       {"warmup: [{inputs: {}}]", "warmup: [{name: a, inputs: {x: {}}}]", "warmup: [{name: a, inputs: {x: {zero: true, random: true}}}]",
        "warmup: [{name: a, inputs: {x: {file: ../y}}}]", "warmup: [{name: a, inputs: {x: {dtype: FP31, zero: true}}}]", "warmup: []"})
    EXPECT_FALSE(read(text)) << text;
}

}  // namespace
}  // namespace serin::serving
