// endpoints_test.cc: which endpoint gets a request.

#include "router/proxy/endpoints.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace serin::router {
namespace {

struct Three {
  metrics::Registry registry;
  Endpoints endpoints{"digits", config(), /*first_index=*/5, registry};

  static VersionConfig config() {
    VersionConfig version;
    version.name = "2";
    for (uint16_t port : {8001, 8002, 8003})
      version.endpoints.push_back({.url = "http://127.0.0.1:" + std::to_string(port), .origin = {"127.0.0.1", port}, .path = ""});
    return version;
  }
  EndpointState& at(size_t i) { return *endpoints.all()[i]; }
  std::set<uint32_t> chosen(const EndpointState* avoid = nullptr) {
    std::set<uint32_t> indices;
    for (uint64_t random = 0; random < 30; ++random) indices.insert(endpoints.choose(random, avoid).index);
    return indices;
  }
};

using Indices = std::set<uint32_t>;

TEST(Endpoints, IndicesGoOnFromTheVersionBefore) {
  Three three;
  EXPECT_EQ(three.at(0).index, 5u);
  EXPECT_EQ(three.at(2).index, 7u);
}

TEST(Endpoints, EveryoneIsHealthyUntilACheckSaysOtherwise) {
  Three three;
  EXPECT_EQ(three.endpoints.healthy(), 3u);
  EXPECT_EQ(three.chosen(), (Indices{5, 6, 7}));
}

TEST(Endpoints, TheLeastBusyIsChosenAndTiesAreBrokenByTheDraw) {
  Three three;
  three.at(0).in_flight = 2;
  three.at(1).in_flight = 1;
  three.at(2).in_flight = 1;
  EXPECT_EQ(three.chosen(), (Indices{6, 7}));
}

TEST(Endpoints, AnUnhealthyOneIsLeftOutHoweverBusyTheOthersAre) {
  Three three;
  three.at(0).healthy = false;
  three.at(1).in_flight = 1000;
  three.at(2).in_flight = 1000;
  EXPECT_EQ(three.endpoints.healthy(), 2u);
  EXPECT_EQ(three.chosen(), (Indices{6, 7}));
}

TEST(Endpoints, WhereNoneIsHealthyOneIsTriedAllTheSame) {
  Three three;
  for (size_t i = 0; i < 3; ++i) three.at(i).healthy = false;
  EXPECT_EQ(three.endpoints.healthy(), 0u);
  EXPECT_EQ(three.chosen(), (Indices{5, 6, 7}));
}

TEST(Endpoints, TheOneToAvoidIsTakenOnlyWhereItIsAlone) {
  Three three;
  EXPECT_EQ(three.chosen(&three.at(1)), (Indices{5, 7}));
  three.at(0).healthy = false;
  three.at(2).healthy = false;
  EXPECT_EQ(three.chosen(&three.at(1)), (Indices{5, 7})) << "another try elsewhere beats the one that just failed";
}

}  // namespace
}  // namespace serin::router
