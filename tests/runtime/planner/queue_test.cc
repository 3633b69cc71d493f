// queue_test.cc: the bound is never below a simulation of a real queue, and not far above it.

#include "runtime/planner/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace serin::planner {
namespace {

using ::testing::HasSubstr;

/// Latencies at a server that takes what waits, at most `rows`, as soon as it is idle.
std::vector<double> simulate(const BatchServer& server, double rate, size_t requests, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(rate);
  std::vector<double> arrivals(requests), latencies;
  double now = 0;
  for (double& arrival : arrivals) arrival = now += gap(random);
  double idle_at = 0;
  for (size_t next = 0; next < requests;) {
    const double start = std::max(idle_at, arrivals[next]);
    idle_at = start + server.seconds;
    for (size_t taken = 0; next < requests && taken < static_cast<size_t>(server.rows) && arrivals[next] <= start; ++taken, ++next)
      latencies.push_back(idle_at - arrivals[next]);
  }
  return latencies;
}

double quantile(std::vector<double> values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

TEST(Queue, NoLatencyOfASimulatedServerIsAboveTheBound) {
  for (const double rows : {1.0, 2.0, 8.0, 32.0})
    for (const double busy : {0.05, 0.3, 0.6, 0.85})
      for (const double share : {0.5, 0.95, 0.99, 0.999}) {
        const BatchServer server{rows, 0.01};
        const double rate = busy * rows / server.seconds;
        const double simulated = quantile(simulate(server, rate, 400'000, 7), share);
        const double bound = latency(server, rate, share);
        EXPECT_GE(bound, simulated * 0.98) << rows << " rows, busy " << busy << ", share " << share;  // 2 %: of a finite simulation
        EXPECT_LE(bound, 2.5 * simulated + server.seconds) << rows << " rows, busy " << busy << ", share " << share;
      }
}

TEST(Queue, MostRequestsAreInTimeAndMoreAreNot) {
  const BatchServer server{8, 0.012};
  const Slo slo{.share = 0.99, .seconds = 0.05};
  const double rate = most_requests(server, slo);
  EXPECT_LE(late_share(server, rate, slo.seconds), 1 - slo.share + 1e-9);
  EXPECT_GT(late_share(server, rate * 1.02, slo.seconds), 1 - slo.share);
  EXPECT_NEAR(latency(server, rate, slo.share), slo.seconds, 1e-6);
  EXPECT_LE(quantile(simulate(server, rate, 400'000, 1), 0.99), slo.seconds);
}

TEST(Queue, WhatIsSlowerThanTheLimitAnswersNothingInTime) {
  EXPECT_EQ(most_requests({1, 0.06}, {.share = 0.99, .seconds = 0.05}), 0);
  EXPECT_EQ(most_requests({8, 0.06}, {.share = 0.99, .seconds = 0.05}), 0);
  EXPECT_GT(most_requests({1, 0.04}, {.share = 0.99, .seconds = 0.05}), 0);
  EXPECT_DOUBLE_EQ(most_requests({4, 0.001}, {.share = 0.99, .seconds = 10}), kMostBusy * 4 / 0.001);
}

TEST(Queue, AServerThatCannotKeepUpIsLateWithoutEnd) {
  EXPECT_EQ(late_share({1, 0.01}, 100, 1e6), 1);
  EXPECT_TRUE(std::isinf(latency({1, 0.01}, 101, 0.99)));
  EXPECT_NEAR(latency({1, 0.01}, 1e-6, 0.5), 0.01, 1e-6);  // a request that comes alone
}

TEST(Slo, IsReadWithAndWithoutSpaces) {
  for (const char* text : {"p99<=50ms", "p99 < 50 ms", "50ms", " p99<=0.05s"}) {
    const auto slo = parse_slo(text);
    ASSERT_TRUE(slo) << text << ": " << slo.error().message;
    EXPECT_DOUBLE_EQ(slo->share, 0.99) << text;
    EXPECT_DOUBLE_EQ(slo->seconds, 0.05) << text;
  }
  EXPECT_DOUBLE_EQ(parse_slo("p99.9<=2s")->share, 0.999);
  EXPECT_EQ(parse_slo("p95<=500us")->print(), "p95 <= 500us");
  for (const char* text : {"", "p99", "p99<=", "p99<=50", "p100<=50ms", "p10<=50ms", "q99<=50ms", "p99<=-1ms", "p99<=0ms", "fast"}) {
    const auto slo = parse_slo(text);
    ASSERT_FALSE(slo) << text;
    EXPECT_THAT(slo.error().message, HasSubstr("p99<=50ms"));
  }
}

}  // namespace
}  // namespace serin::planner
