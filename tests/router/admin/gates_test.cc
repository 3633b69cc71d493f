// The word for each state of a rollout, and what each of Flagger's gates makes of it.

#include "router/admin/gates.h"

#include <gtest/gtest.h>

#include <map>

namespace serin::router {
namespace {

using rollout::Phase;

struct At {
  Phase phase = Phase::kProgressing;
  int step = 0;
  double errors = 0, latency = 0;  // progress of both certificates
};

ServiceStatus status_of(const At& at, const std::string& canary = "2", const std::string& service = "digits") {
  ServiceStatus status{.service = service, .stable = "1", .rollout_steps = 3};
  rollout::Report report;
  report.state = {
      .id = service + "-1", .service = service, .stable = "1", .canary = canary, .phase = at.phase, .step = at.step, .weight_ppm = 250'000};
  report.certificates = {{"errors +1 %", at.errors}, {"latency +1 %", at.latency}};
  report.canary_answers = 1000;
  status.rollout = report;
  return status;
}

std::string_view word(const At& at) { return stand(status_of(at)).verdict; }

TEST(Standing, OneStepMustHavePassed) {
  EXPECT_EQ(word({}), "insufficient_data") << "a thousand good answers are not enough by themselves";
  EXPECT_EQ(word({.errors = 1, .latency = 0.9}), "insufficient_data");
  EXPECT_EQ(word({.errors = 1, .latency = 1}), "healthy");
  EXPECT_EQ(word({.step = 1}), "healthy");
  EXPECT_EQ(word({.phase = Phase::kPaused, .step = 1}), "healthy");
  EXPECT_EQ(word({.phase = Phase::kBaking}), "healthy");
  EXPECT_EQ(word({.phase = Phase::kInconclusive, .step = 1}), "insufficient_data");
  EXPECT_EQ(word({.phase = Phase::kSucceeded}), "promoted");
  EXPECT_EQ(word({.phase = Phase::kRolledBack, .step = 2, .errors = 1, .latency = 1}), "rolled_back");
}

TEST(Standing, AShadowStepHasOneCertificate) {
  ServiceStatus status = status_of({});
  status.rollout->certificates = {{"shadow", 1}};
  EXPECT_EQ(stand(status).verdict, "healthy");
  status.rollout->certificates.clear();
  EXPECT_EQ(stand(status).verdict, "insufficient_data") << "no certificate is not a complete one";
}

TEST(Standing, HasItsNumbers) {
  const Standing standing = stand(status_of({.step = 2, .errors = 1, .latency = 1}));
  EXPECT_EQ(standing.rollout, "digits-1");
  EXPECT_EQ(standing.stable, "1");
  EXPECT_EQ(standing.canary, "2");
  EXPECT_DOUBLE_EQ(standing.weight, 25);
  EXPECT_TRUE(standing.certified);
}

TEST(Standing, IsOfTheNamedVersion) {
  const auto word_of = [](const std::vector<ServiceStatus>& tracks, std::string_view version) { return stand(tracks, version).verdict; };
  const ServiceStatus ended = status_of({.phase = Phase::kRolledBack}), none{.service = "digits", .stable = "1"};
  EXPECT_EQ(word_of({ended}, "2"), "rolled_back");
  EXPECT_EQ(word_of({ended}, "3"), "insufficient_data");
  EXPECT_EQ(word_of({ended}, "1"), "promoted") << "it is stable";
  EXPECT_EQ(word_of({none}, "2"), "insufficient_data");
  const ServiceStatus further = status_of({.step = 1}, "3", "digits~2");
  EXPECT_EQ(word_of({ended, further}, "3"), "healthy");
  EXPECT_EQ(stand({ended, further}, "3").service, "digits~2");
  EXPECT_EQ(word_of({ended, status_of({.step = 1}, "2", "digits~2")}, "2"), "healthy") << "what is under way comes first";
  EXPECT_EQ(word_of({status_of({.phase = Phase::kSucceeded}), status_of({.phase = Phase::kRolledBack}, "2", "digits~2")}, "2"),
            "rolled_back")
      << "it is not stable any more";
  EXPECT_EQ(word_of({status_of({.phase = Phase::kSucceeded})}, "2"), "insufficient_data") << "another version has become stable since";
  ServiceStatus promoted = status_of({.phase = Phase::kSucceeded});
  promoted.stable = "2";
  EXPECT_EQ(stand({promoted}, "2").rollout, "digits-1");
  EXPECT_EQ(stand({status_of({.step = 1}, "a+b"), none}, "a%2Bb").verdict, "healthy") << "escapes of a query";
}

TEST(Gates, AreOpenOrShut) {
  const std::map<std::string_view, Standing> at = {
      {"unknown", stand(status_of({}))},
      {"healthy", stand(status_of({.step = 1, .errors = 1, .latency = 1}))},
      {"last", stand(status_of({.step = 2, .errors = 1, .latency = 0.5}))},
      {"shown", stand(status_of({.step = 2, .errors = 1, .latency = 1}))},
      {"inconclusive", stand(status_of({.phase = Phase::kInconclusive, .step = 2, .errors = 1, .latency = 1}))},
      {"promoted", stand(status_of({.phase = Phase::kSucceeded, .step = 2}))},
      {"rolled_back", stand(status_of({.phase = Phase::kRolledBack, .step = 2, .errors = 1, .latency = 1}))}};
  const std::map<std::string_view, std::vector<std::string_view>> shut = {
      {"confirm-rollout", {"rolled_back"}},
      {"pre-rollout", {}},
      {"rollout", {"rolled_back"}},
      {"confirm-traffic-increase", {"unknown", "inconclusive", "rolled_back"}},
      {"confirm-promotion", {"unknown", "healthy", "last", "inconclusive", "rolled_back"}},
      {"post-rollout", {}},
      {"rollback", {"unknown", "healthy", "last", "shown", "inconclusive", "promoted"}},
      {"event", {}}};
  for (const std::string_view type : kGateTypes) {
    ASSERT_TRUE(shut.contains(type)) << type;
    for (const auto& [name, standing] : at) {
      const bool open = std::ranges::find(shut.at(type), name) == shut.at(type).end();
      EXPECT_EQ(gate_opens(type, standing), open) << type << " at " << name;
    }
  }
  EXPECT_EQ(gate_opens("load-test", at.at("healthy")), std::nullopt);
}

}  // namespace
}  // namespace serin::router
