#include "router/store/kubernetes_leases.h"

#include <gtest/gtest.h>

#include <string>

namespace serin::store {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

json::object lease(const char* name, int version, std::chrono::system_clock::time_point renewed = std::chrono::system_clock::now()) {
  json::object made = make_lease(name, "serin-router", "a/1");
  made["metadata"].as_object()["resourceVersion"] = std::to_string(version);
  made["spec"].as_object()["renewTime"] = micro_time(renewed);
  return made;
}

struct Looks {
  KubernetesLeases leases;
  KubernetesLeases::Clock::time_point now{seconds(1000)};

  void look(std::chrono::nanoseconds later, json::array all) {
    now += later;
    leases.see(all, now);
  }
};

TEST(KubernetesLeases, EndWhenTheyAreNotRenewed) {
  Looks looks;
  looks.look(seconds(0), {lease("a", 1)});
  for (int half = 0; half < 9; ++half) looks.look(milliseconds(500), {lease("a", 1)});
  EXPECT_TRUE(looks.leases.alive("a"));
  looks.look(milliseconds(500), {lease("a", 1)});
  EXPECT_FALSE(looks.leases.alive("a"));
  looks.look(milliseconds(500), {lease("a", 2)});
  EXPECT_TRUE(looks.leases.alive("a")) << "renewed, late";
  looks.look(milliseconds(500), {});
  EXPECT_FALSE(looks.leases.alive("a"));
  EXPECT_FALSE(looks.leases.exists("a"));
}

TEST(KubernetesLeases, AnOutageIsNoTimeInWhichTheyCouldBeRenewed) {
  Looks looks;
  looks.look(seconds(0), {lease("a", 1)});
  looks.look(std::chrono::minutes(5), {lease("a", 1)});
  EXPECT_TRUE(looks.leases.alive("a"));
  EXPECT_LE(looks.leases.age("a"), seconds(1));
}

TEST(KubernetesLeases, ClocksThatDifferDoNotMatter) {
  for (const seconds ahead : {seconds(-30), seconds(30), seconds(86'400)}) {
    Looks looks;
    looks.look(seconds(0), {lease("a", 1, std::chrono::system_clock::now() + ahead)});
    EXPECT_TRUE(looks.leases.alive("a")) << ahead.count();
  }
}

TEST(KubernetesLeases, ARouterThatStartsDoesNotCountWhatEndedLongAgo) {
  Looks looks;
  looks.look(seconds(0), {lease("a", 1, std::chrono::system_clock::now() - seconds(90))});
  EXPECT_FALSE(looks.leases.counts("a"));
  EXPECT_TRUE(looks.leases.alive("a")) << "nobody takes it before it was watched for long enough";
  looks.look(milliseconds(500), {lease("a", 2)});
  EXPECT_TRUE(looks.leases.counts("a"));
}

TEST(KubernetesLeases, ATimeThatCannotBeReadIsOfANewLease) {
  Looks looks;
  json::object odd = lease("a", 1);
  odd["spec"].as_object()["renewTime"] = "yesterday";
  looks.look(seconds(0), {odd, json::value("no object"), json::object{}});
  EXPECT_TRUE(looks.leases.alive("a"));
}

TEST(KubernetesLeases, TimesAreOfTheApi) {
  EXPECT_EQ(micro_time(std::chrono::system_clock::time_point(std::chrono::microseconds(1'795'761'462'123'456))),
            "2026-11-27T06:37:42.123456Z");
}

}  // namespace
}  // namespace serin::store
