// metrics_test.cc: the page that Prometheus reads.

#include "runtime/base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace serin::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, CountsFromManyThreadsAddUp) {
  Registry registry;
  const auto counter = registry.counter("requests_total", "Requests.", {{"model", "digits"}});
  std::vector<std::thread> threads;
  threads.reserve(12);
  for (int t = 0; t < 12; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) counter->add();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter->value(), 120'000u);
  EXPECT_THAT(registry.render(), HasSubstr("requests_total{model=\"digits\"} 120000\n"));
}

TEST(Metrics, ACounterMayBeFinerThanThePage) {
  Registry registry;
  const auto counter = registry.counter("busy_us", "Microseconds.", {}, /*unit=*/1000);
  for (int i = 0; i < 10; ++i) counter->add(300);  // each less than one on the page
  EXPECT_EQ(counter->value(), 3000u);
  EXPECT_THAT(registry.render(), HasSubstr("busy_us 3\n"));
}

TEST(Metrics, SummariesHaveQuantiles) {
  Registry registry;
  const Summary::Quantile quantiles[] = {{0.5, 0.01}, {0.99, 0.001}};
  const auto summary = registry.summary("taken_us", "Microseconds.", {{"model", "digits"}}, quantiles);
  for (int i = 1; i <= 1000; ++i) summary->observe(i);
  const std::string page = registry.render();
  EXPECT_THAT(page, HasSubstr("# TYPE taken_us summary\n"));
  EXPECT_THAT(page, HasSubstr("taken_us_count{model=\"digits\"} 1000\n"));
  EXPECT_THAT(page, HasSubstr("taken_us_sum{model=\"digits\"} 500500\n"));
  const auto value_of = [&](std::string_view key) { return std::stod(page.substr(page.find(key) + key.size())); };
  EXPECT_NEAR(value_of("{model=\"digits\",quantile=\"0.5\"} "), 500, 20);
  EXPECT_NEAR(value_of("{model=\"digits\",quantile=\"0.99\"} "), 990, 3);
}

TEST(Metrics, TheSameNameAndLabelsAreTheSameSeries) {
  Registry registry;
  const auto a = registry.counter("c", "h", {{"x", "1"}});
  const auto b = registry.counter("c", "h", {{"x", "1"}});
  EXPECT_EQ(a, b);
}

TEST(Metrics, ASeriesLeavesThePageWithItsOwner) {
  Registry registry;
  auto gauge = registry.gauge("loaded", "h", {{"model", "gone"}});
  EXPECT_THAT(registry.render(), HasSubstr("gone"));
  gauge.reset();
  EXPECT_THAT(registry.render(), Not(HasSubstr("gone")));
}

TEST(Metrics, HistogramBucketsAreCumulativeAndEndAtInfinity) {
  Registry registry;
  const std::array bounds = {0.1, 1.0};
  const auto histogram = registry.histogram("latency_seconds", "h", {}, bounds);
  for (const double value : {0.05, 0.1, 0.5, 30.0}) histogram->observe(value);
  const std::string page = registry.render();
  EXPECT_THAT(page, HasSubstr("latency_seconds_bucket{le=\"0.1\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("latency_seconds_bucket{le=\"1\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("latency_seconds_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("latency_seconds_count 4\n"));
}

TEST(Metrics, CallbacksAreReadWhenScraped) {
  Registry registry;
  double value = 1;
  const auto handle = registry.gauge_callback("queue", "h", {}, [&] { return value; });
  value = 42;
  EXPECT_THAT(registry.render(), HasSubstr("queue 42\n"));
}

TEST(Metrics, LabelsAreEscaped) {
  Registry registry;
  const auto counter = registry.counter("c", "h", {{"model", "a\"b\n"}});
  EXPECT_THAT(registry.render(), HasSubstr("model=\"a\\\"b\\n\""));
}

}  // namespace
}  // namespace serin::metrics
