// endpoint_slices_test.cc: which addresses of EndpointSlices get requests.

#include "router/kubernetes/endpoint_slices.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace serin::kubernetes {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kMost = 256;

/// A slice of the service "digits" with the ports http, 8000, and grpc, 8001.
EndpointSlice slice(const std::string& name, const std::string& endpoints, const std::string& type = "IPv4",
                    const std::string& ports = R"([{"name": "http", "port": 8000}, {"name": "grpc", "port": 8001, "protocol": "TCP"}])") {
  const std::string text = fmt::format(
      R"({{"metadata": {{"name": "{}", "labels": {{"kubernetes.io/service-name": "digits", "version": "2"}}}},
           "addressType": "{}", "ports": {}, "endpoints": {}}})",
      name, type, ports, endpoints);
  auto read = read_slice(json::parse(text).as_object());
  EXPECT_TRUE(read) << text;
  return read.value_or(EndpointSlice());
}

std::string endpoint(const std::string& address, const std::string& conditions = "{}", const std::string& more = "") {
  return fmt::format(R"({{"addresses": ["{}"], "conditions": {}{}}})", address, conditions, more);
}

std::string hint(const std::string& zone) { return fmt::format(R"(, "hints": {{"forZones": [{{"name": "{}"}}]}})", zone); }

const std::string kReady = R"({"ready": true, "serving": true, "terminating": false})";
const std::string kDraining = R"({"ready": false, "serving": true, "terminating": true})";
const std::string kStarting = R"({"ready": false, "serving": false, "terminating": false})";

SliceSelection digits(const std::string& port = "http") {
  return {.name_space = "", .labels = {{kServiceLabel, "digits"}}, .port = port, .grpc_port = ""};
}

SliceAddresses choose(const std::vector<EndpointSlice>& slices, const SliceSelection& selection = digits(), std::string_view zone = "",
                      size_t most = kMost) {
  Slices all;
  for (const EndpointSlice& each : slices) all.emplace(each.name, each);
  return choose_addresses(all, selection, {.zone = std::string(zone), .leaving = {"node-that-ends"}}, most);
}

std::vector<std::string> hosts(const SliceAddresses& found) {
  std::vector<std::string> all;
  for (const SliceAddress& address : found.addresses) all.push_back(address.host);
  return all;
}

TEST(EndpointSlices, ReadyOnesGetRequestsAndWhatIsNotSaidCountsAsReady) {
  const auto found =
      choose({slice("a", "[" + endpoint("10.0.0.2", kReady) + "," + endpoint("10.0.0.1") + "," + endpoint("10.0.0.3", kStarting) + "," +
                             endpoint("10.0.0.4", kDraining) + "," + endpoint("10.0.0.5", R"({"ready": null})") + "]")});
  EXPECT_THAT(hosts(found), ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.5"));
  EXPECT_EQ(found.addresses[0].port, 8000);
  EXPECT_EQ(found.addresses[0].grpc_port, 0);
  EXPECT_EQ(found.remark, "");
}

TEST(EndpointSlices, DrainingOnesGetRequestsOnlyWhereNoneIsReady) {
  EXPECT_THAT(hosts(choose({slice("a", "[" + endpoint("10.0.0.1", kDraining) + "," + endpoint("10.0.0.2", kStarting) + "]")})),
              ElementsAre("10.0.0.1"));
  const std::string not_serving = R"({"ready": false, "serving": false, "terminating": true})";
  EXPECT_THAT(hosts(choose({slice("a", "[" + endpoint("10.0.0.1", not_serving) + "]")})), IsEmpty());
}

TEST(EndpointSlices, SlicesOfBothFamiliesAreMergedAndEachEndpointIsThereOnce) {
  const auto pod = [](const std::string& uid) { return fmt::format(R"(, "targetRef": {{"kind": "Pod", "uid": "{}"}})", uid); };
  const auto found =
      choose({slice("b", "[" + endpoint("10.0.0.1", kReady, pod("p")) + "," + endpoint("10.0.0.9") + "]"),
              slice("a", "[" + endpoint("fd00::1", kReady, pod("p")) + "," + endpoint("fd00::2", kReady, pod("q")) + "]", "IPv6"),
              slice("c", "[" + endpoint("10.0.0.9", kStarting) + "]")});
  EXPECT_THAT(hosts(found), ElementsAre("10.0.0.1", "10.0.0.9", "fd00::2")) << "one pod, once; ready in one slice is ready";
}

TEST(EndpointSlices, PortsAreFoundByNameInEachSliceOrAreANumber) {
  const std::vector<EndpointSlice> slices = {slice("a", "[" + endpoint("10.0.0.1") + "]"),
                                             slice("b", "[" + endpoint("10.0.0.2") + "]", "IPv4",
                                                   R"([{"name": "http", "port": 9000}, {"name": "http", "port": 53, "protocol": "UDP"}])"),
                                             slice("c", "[" + endpoint("10.0.0.3") + "]", "IPv4", R"([{"name": "metrics", "port": 1}])")};
  SliceSelection selection = digits();
  selection.grpc_port = "grpc";
  const auto named = choose(slices, selection);
  EXPECT_THAT(named.addresses, ElementsAre(SliceAddress{"10.0.0.1", 8000, 8001}, SliceAddress{"10.0.0.2", 9000, 0}));
  EXPECT_EQ(named.remark, "there are EndpointSlices without a port named 'http'; theirs: 'grpc', 'http', 'metrics'");
  selection = digits("8080");
  selection.grpc_port = "8081";
  const auto numbered = choose(slices, selection);
  EXPECT_THAT(numbered.addresses, SizeIs(3));
  EXPECT_EQ(numbered.addresses[2], (SliceAddress{"10.0.0.3", 8080, 8081}));
  EXPECT_EQ(numbered.remark, "");
}

TEST(EndpointSlices, AMissingGrpcPortIsSaid) {
  SliceSelection selection = digits();
  selection.grpc_port = "rpc";
  const auto found = choose({slice("a", "[" + endpoint("10.0.0.1") + "]")}, selection);
  EXPECT_THAT(found.addresses, ElementsAre(SliceAddress{"10.0.0.1", 8000, 0}));
  EXPECT_EQ(found.remark, "there are EndpointSlices without a port named 'rpc'; theirs: 'grpc', 'http'");
}

TEST(EndpointSlices, EveryLabelOfASelectionMustHold) {
  const std::vector<EndpointSlice> slices = {slice("a", "[" + endpoint("10.0.0.1") + "]")};
  SliceSelection selection = digits();
  selection.labels = {{"version", "2"}};
  EXPECT_THAT(choose(slices, selection).addresses, SizeIs(1));
  selection.labels = {{"version", "2"}, {"app", "digits"}};
  const auto none = choose(slices, selection);
  EXPECT_THAT(none.addresses, IsEmpty());
  EXPECT_EQ(none.remark, "no EndpointSlice has the labels app=digits,version=2");
}

TEST(EndpointSlices, TheOwnZoneIsPreferredWhereEveryReadyOneHasAHint) {
  const std::string both = endpoint("10.0.0.1", kReady, hint("a")) + "," + endpoint("10.0.0.2", kReady, hint("b"));
  const std::vector<EndpointSlice> slices = {slice("s", "[" + both + "," + endpoint("10.0.0.3", kStarting) + "]")};
  EXPECT_THAT(hosts(choose(slices, digits(), "a")), ElementsAre("10.0.0.1"));
  EXPECT_THAT(hosts(choose(slices, digits(), "c")), ElementsAre("10.0.0.1", "10.0.0.2")) << "none for this zone";
  EXPECT_THAT(hosts(choose(slices, digits())), ElementsAre("10.0.0.1", "10.0.0.2")) << "the zone is unknown";
  EXPECT_THAT(hosts(choose({slice("s", "[" + both + "," + endpoint("10.0.0.3") + "]")}, digits(), "a")),
              ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"))
      << "one has no hint";
  EXPECT_THAT(
      hosts(choose({slice("s", "[" + endpoint("10.0.0.1", kDraining, hint("a")) + "," + endpoint("10.0.0.2", kReady, hint("b")) + "]")},
                   digits(), "a")),
      ElementsAre("10.0.0.2"))
      << "the own zone has none that is ready";
}

TEST(EndpointSlices, OnesOnANodeThatIsAboutToEndAreDraining) {
  const auto on = [](const std::string& node) { return fmt::format(R"(, "nodeName": "{}")", node); };
  const std::string leaves = endpoint("10.0.0.1", kReady, on("node-that-ends")), stays = endpoint("10.0.0.2", kReady, on("another"));
  const std::string starting_there = endpoint("10.0.0.3", kStarting, on("node-that-ends"));
  EXPECT_THAT(hosts(choose({slice("a", "[" + leaves + "," + stays + "," + starting_there + "]")})), ElementsAre("10.0.0.2"));
  EXPECT_THAT(hosts(choose({slice("a", "[" + leaves + "," + starting_there + "," + endpoint("10.0.0.4", kDraining) + "]")})),
              ElementsAre("10.0.0.1"))
      << "no other one is ready, and one that terminates will close sooner";
  const std::string near = endpoint("10.0.0.1", kReady, on("node-that-ends") + hint("a")), far = endpoint("10.0.0.2", kReady, hint("b"));
  EXPECT_THAT(hosts(choose({slice("a", "[" + near + "," + far + "]")}, digits(), "a")), ElementsAre("10.0.0.2"));
}

TEST(EndpointSlices, ATaintIsFoundByItsKey) {
  const auto tainted = [](const std::string& spec) {
    return has_taint(json::parse(R"({"metadata": {"name": "n"}, "spec": )" + spec + "}").as_object(), {"spot/ends", "other"});
  };
  EXPECT_TRUE(tainted(R"({"taints": [{"key": "gpu", "effect": "NoSchedule"}, {"key": "spot/ends", "effect": "NoExecute"}]})"));
  EXPECT_FALSE(tainted(R"({"taints": [{"key": "gpu", "effect": "NoSchedule"}]})"));
  for (const char* without : {"{}", R"({"taints": null})", R"({"taints": ["spot/ends"]})", "null"})
    EXPECT_FALSE(tainted(without)) << without;
}

TEST(EndpointSlices, NoMoreThanAVersionMayHave) {
  std::string many;
  for (int i = 0; i < 300; ++i) many += (i == 0 ? "" : ",") + endpoint(fmt::format("10.0.{}.{}", i / 100, i % 100));
  const auto found = choose({slice("a", "[" + many + "]")});
  EXPECT_THAT(found.addresses, SizeIs(kMost));
  EXPECT_EQ(found.remark, "there are 300 addresses, of which 256 get requests");
}

TEST(EndpointSlices, WhatIsNoSliceOrOddlyMadeIsReadAsFarAsItGoes) {
  EXPECT_FALSE(read_slice({}));
  EXPECT_FALSE(read_slice(json::parse(R"({"metadata": {"labels": {}}})").as_object()));
  EXPECT_THAT(choose({slice("a", "null")}).addresses, IsEmpty());
  EXPECT_THAT(
      choose({slice("a", R"([{"addresses": []}, {"addresses": [1]}, {"addresses": null}, 7, {"addresses": ["10.0.0.1", "10.0.0.2"]}])")})
          .addresses,
      SizeIs(1));
  EXPECT_THAT(choose({slice("a", "[" + endpoint("a.example.org") + "]", "FQDN")}).addresses, IsEmpty());
  EXPECT_THAT(
      choose({slice("a", "[" + endpoint("10.0.0.1") + "]", "IPv4",
                    R"([{"name": "http", "port": 0}, {"name": "http", "port": 65536}, {"name": "http", "port": "1"}, {"name": "http"}])")})
          .addresses,
      IsEmpty());
}

}  // namespace
}  // namespace serin::kubernetes
