// scaler_trigger_test.cc: what a trigger of KEDA may say, and when its version must have a replica.

#include "router/scaling/scaler_trigger.h"

#include <gtest/gtest.h>

#include <utility>

namespace serin::router {
namespace {

using Metadata = std::map<std::string, std::string>;

Metadata with(Metadata more) {
  Metadata all{{"scalerAddress", "serin-router:8444"}, {"service", "digits"}, {"version", "1"}, {"threshold", "8"}};
  for (auto& [key, value] : more) all[key] = std::move(value);
  return all;
}

ScalerTrigger trigger(Metadata more = {}) {
  auto read = ScalerTrigger::read(with(std::move(more)));
  EXPECT_TRUE(read) << read.error().message;
  return *std::move(read);
}

TEST(ScalerTrigger, HasDefaults) {
  const ScalerTrigger read = trigger();
  EXPECT_EQ(read.metric->name, "serin_route_in_flight_requests");
  EXPECT_EQ(read.threshold, 8);
  EXPECT_EQ(read.activation, 0);
  EXPECT_EQ(trigger({{"threshold", "0.5"}, {"activationThreshold", "2"}}).activation, 2);
}

TEST(ScalerTrigger, NamesTheKeyThatIsWrong) {
  const std::pair<Metadata, std::string> mistakes[] = {
      {{{"service", ""}}, "service:"},
      {{{"version", ""}}, "version:"},
      {{{"metric", "qps"}}, "metric: there is no 'qps'; allowed: serin_route_in_flight_requests, serin_route_requests_per_second"},
      {{{"threshold", "0"}}, "threshold: must be above 0"},
      {{{"threshold", ""}}, "threshold: '' is not a number"},
      {{{"threshold", "1e400"}}, "threshold:"},
      {{{"activationThreshold", "-1"}}, "activationThreshold: '-1'"},
      {{{"activationTreshold", "1"}}, "unknown key 'activationTreshold'"},
  };
  for (const auto& [metadata, told] : mistakes) {
    const auto read = ScalerTrigger::read(with(metadata));
    ASSERT_FALSE(read) << told;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_NE(read.error().message.find(told), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(ScalerTrigger::read({}));
}

TEST(ScalerTrigger, FindsItsVersion) {
  const std::vector<VersionLoad> loads = {{.service = "faces", .version = "1"}, {.service = "digits", .version = "1", .in_flight = 3}};
  EXPECT_EQ(trigger().find(loads)->in_flight, 3);
  EXPECT_EQ(trigger({{"version", "3"}}).find(loads).error().message, "service 'digits' has no version '3'");
  EXPECT_EQ(trigger({{"service", "cats"}}).find(loads).error().message, "the router has no service 'cats'");
}

TEST(ScalerTrigger, IsActiveAboveItsActivationOrWhereARolloutNeedsTheVersion) {
  EXPECT_FALSE(trigger().is_active({}));
  EXPECT_TRUE(trigger().is_active({.in_flight = 1}));
  EXPECT_TRUE(trigger().is_active({.unserved = 1}));
  EXPECT_FALSE(trigger().is_active({.requests_per_second = 5})) << "answered at once: nothing is in flight";
  const ScalerTrigger above_two = trigger({{"activationThreshold", "2"}});
  EXPECT_FALSE(above_two.is_active({.in_flight = 2, .unserved = 2}));
  EXPECT_TRUE(above_two.is_active({.unserved = 3}));
  EXPECT_TRUE(above_two.is_active({.needed = true}));
  const ScalerTrigger rate = trigger({{"metric", "serin_route_requests_per_second"}, {"activationThreshold", "0.5"}});
  EXPECT_FALSE(rate.is_active({.in_flight = 9, .requests_per_second = 0.5, .unserved = 5})) << "five in ten seconds";
  EXPECT_TRUE(rate.is_active({.unserved = 6}));
  EXPECT_TRUE(rate.is_active({.requests_per_second = 0.6}));
}

}  // namespace
}  // namespace serin::router
