// settings_test.cc: models/<name>/serin.yaml.

#include "runtime/serving/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace serin::serving {
namespace {

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
  EXPECT_EQ(settings->queue_limit, 7u);
  EXPECT_FALSE(settings->warmup);
  EXPECT_EQ(settings->precision, Precision::kBf16);
}

TEST(ModelSettings, C4_NonsenseIsRefusedWithItsPlace) {
  for (const char* text : {"max_batch: 0", "max_batch: -1", "max_batch: 2147483648", "instances: 0", "instances: 10000", "queue_limit: 0",
                           "threads: 0", "precision: int3", "samples: inputs", "{precision: fp32, samples: inputs}"}) {
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
  const auto settings = read("precision: auto\nsamples: calibration\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(std::filesystem::path(settings->samples), std::filesystem::path(testing::TempDir()) / "calibration");
}

TEST(ModelSettings, WhatIsNotThereYetSaysSo) {
  for (const char* text : {"slo: 50ms", "max_queue_delay: 1ms", "buckets: {seq: [32]}", "labels: {stable: 1}"}) {
    const auto settings = read(text);
    ASSERT_FALSE(settings) << text;
    EXPECT_NE(settings.error().message.find("not supported yet"), std::string::npos) << settings.error().message;
  }
}

}  // namespace
}  // namespace serin::serving
