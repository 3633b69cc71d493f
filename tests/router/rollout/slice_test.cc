// slice_test.cc: classes of requests that are judged by themselves, and the bound that all of them keep together.

#include "router/rollout/slice_guards.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/rollout.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

using std::chrono::milliseconds;

constexpr double kShareOfClass = 0.03;  // of the traffic
constexpr char kByCountry[] = "guard: {slices: [{name: country, header: x-country}], output: {shadow: 10%}}\n";

/// What is wrong with the canary, for the class "de".
struct Ill {
  double elsewhere = 0.001;  // failures of both arms, in the other classes
  double fails = 0.001, slower = 1, differs = 0.01;
  int classes = 10;
};

/// 200 requests a second, 5 % on the canary; a tenth of stable's are mirrored.
class Service {
 public:
  Service(const std::string& guard, const Ill& ill, uint64_t seed)
      : ill_(ill), random_(seed), rollout_(Rollout::start(hold_at(5, guard), "s-1", 1, Baseline(), Time())) {}

  /// Returns how many requests of "de" there were until the end, or until there were `most` requests.
  uint64_t run(uint64_t most, bool mirrors = false) {
    uint64_t ill = 0;
    for (uint64_t i = 0; i < most && rollout_.state().phase != Phase::kRolledBack; ++i) {
      const bool is_ill = random_.chance(kShareOfClass);
      ill += is_ill;
      const auto classes = std::make_shared<std::vector<std::string>>(
          std::vector{is_ill ? std::string("de") : fmt::format("c{}", random_.below(static_cast<uint64_t>(ill_.classes)))});
      now_ += milliseconds(5);
      const Arm arm = random_.chance(0.05) ? Arm::kCanary : Arm::kStable;
      const bool bad_arm = is_ill && arm == Arm::kCanary;
      const auto latency = latencies()[random_.below(latencies().size())];
      rollout_.observe(
          {.arm = arm,
           .epoch = rollout_.state().epoch,
           .weight_ppm = 50'000,
           .outcome = random_.chance(bad_arm ? ill_.fails : ill_.elsewhere) ? Outcome::kError : Outcome::kOk,
           .latency =
               bad_arm ? std::chrono::nanoseconds(static_cast<int64_t>(ill_.slower * static_cast<double>(latency.count()))) : latency,
           .endpoint = arm == Arm::kCanary ? 1U : 0U,
           .classes = classes},
          now_);
      if (!mirrors || arm == Arm::kCanary) continue;
      ShadowPair pair{.epoch = rollout_.state().epoch, .comparable = true, .mismatch = random_.chance(is_ill ? ill_.differs : 0.01)};
      pair.classes = classes;
      rollout_.observe(pair, now_);
    }
    return ill;
  }
  const State& state() const { return rollout_.state(); }

 private:
  Ill ill_;
  Random random_;
  Time now_{};
  Rollout rollout_;
};

struct Found {
  uint64_t median = 0, p90 = 0;
  std::string cause;  // the most frequent
};

Found find(const std::string& guard, const Ill& ill, bool mirrors = false) {
  const int rollouts = std::getenv("SERIN_LONG") != nullptr ? 1000 : 200;
  std::vector<uint64_t> requests;
  std::map<std::string, int> causes;
  for (int seed = 0; seed < rollouts; ++seed) {
    Service service(guard, ill, static_cast<uint64_t>(seed) + 1);
    requests.push_back(service.run(400'000, mirrors));
    EXPECT_EQ(service.state().phase, Phase::kRolledBack);
    ++causes[service.state().cause];
  }
  std::ranges::sort(requests);
  const auto often = std::ranges::max_element(causes, {}, [](const auto& entry) { return entry.second; });
  return {requests[requests.size() / 2], requests[requests.size() * 9 / 10], often->first};
}

TEST(Slices, FindWhatIsWrongForOneClassOnly) {
  struct Wrong {
    const char* what;
    Ill ill;
    bool mirrors;
    uint64_t most;  // the median; asked: 200 for a class that fails
  };
  const Wrong rows[] = {
      {"fails", {.fails = 1}, false, 200},
      {"fails, while 5 % fail elsewhere", {.elsewhere = 0.05, .fails = 1}, false, 200},
      {"fails half the time, while 5 % fail elsewhere", {.elsewhere = 0.05, .fails = 0.5}, false, 500},
      {"ten times slower", {.slower = 10}, false, 200},
      {"twice as slow", {.slower = 2}, false, 1200},
      {"other answers", {.differs = 1}, true, 12},
  };
  fmt::print("3 % of the requests, 5 % of them on the canary: requests of this class until weight 0, median and p90\n");
  for (const Wrong& row : rows) {
    const Found with = find(kByCountry, row.ill, row.mirrors);
    fmt::print("  {:48} {:5} {:5}  mostly by {}\n", row.what, with.median, with.p90, with.cause);
    EXPECT_LE(with.median, row.most) << row.what;
  }
  Service service(kByCountry, rows[1].ill, 7);
  service.run(400'000);
  EXPECT_EQ(service.state().cause, "slice:country=de:errors");
  EXPECT_NE(service.state().reason.find("among requests of country=de"), std::string::npos) << service.state().reason;
}

/// Many classes, all of which are healthy.
TEST(Slices, HealthyCanariesStay) {
  const int rollouts = std::getenv("SERIN_LONG") != nullptr ? 10'000 : 300;
  int rolled_back = 0;
  for (int seed = 0; seed < rollouts; ++seed) {
    Service service(kByCountry, {.elsewhere = 0.01, .fails = 0.01, .classes = 30}, static_cast<uint64_t>(seed) + 1);
    service.run(20'000, /*mirrors=*/true);
    rolled_back += service.state().phase == Phase::kRolledBack;
  }
  fmt::print("{} of {} healthy rollouts with 31 classes were rolled back\n", rolled_back, rollouts);
  EXPECT_LE(rolled_back, std::max(1, rollouts * 3 / 1000));
}

TEST(Slices, PayForTheirClasses) {
  Guard guard;
  EXPECT_EQ(error_share(guard), kErrorShare);
  guard.slices.resize(3);
  const double all = error_share(guard) + 3 * static_cast<double>(kMostClasses) * class_share(guard, kErrorShare);
  EXPECT_NEAR(all, kErrorShare, 1e-12);
}

Observation answer(Arm arm, const std::string& country, Outcome outcome = Outcome::kOk) {
  return {.arm = arm, .weight_ppm = 50'000, .outcome = outcome, .classes = std::make_shared<std::vector<std::string>>(1, country)};
}

TEST(Slices, AreJudgedUpToSixteenClasses) {
  SliceGuards slices(hold_at(5, kByCountry).guard, false);
  for (int i = 0; i < 20; ++i) slices.name(answer(Arm::kCanary, fmt::format("c{}", i)).classes);
  const auto fails = [&](const std::string& country) {
    for (int i = 0; i < 20; ++i)
      if (const auto verdict = slices.failed(answer(Arm::kCanary, country, Outcome::kError), Unit(0.05), milliseconds(i)))
        return verdict->cause;
    return std::string("not judged");
  };
  EXPECT_EQ(fails("c15"), "slice:country=c15:errors");
  EXPECT_EQ(fails("c16"), "not judged");
  EXPECT_EQ(fails(""), "not judged");
}

TEST(Slices, ReportTheNearestClass) {
  SliceGuards slices(hold_at(5, kByCountry).guard, false);
  EXPECT_TRUE(slices.evidence().empty());
  for (const char* country : {"fr", "de", "de"}) slices.name(answer(Arm::kCanary, country).classes);
  for (const char* country : {"de", "de"}) (void)slices.failed(answer(Arm::kCanary, country, Outcome::kError), Unit(0.05), {});
  const auto lines = slices.evidence();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].guard, "slice:country=de:errors");
  EXPECT_EQ(lines[0].canary_events, 2U);
}

// Otherwise failures that come fast could choose the classes that are judged.
TEST(Slices, TheRequestThatNamesAClassIsNoEvidenceInIt) {
  for (const Outcome outcome : {Outcome::kError, Outcome::kRejected, Outcome::kDeadline, Outcome::kOk}) {
    Rollout rollout = Rollout::start(hold_at(5, kByCountry), "s-1", 1, Baseline(), Time());
    Observation first = answer(Arm::kCanary, "de", outcome);
    first.epoch = rollout.state().epoch;
    first.batch = BatchId{1, 0, 1};
    rollout.observe(first, Time());
    const auto of_class = [&] {
      double bits = -1;
      for (const Evidence& line : rollout.report().evidence)
        if (line.guard == "slice:country=de:errors") bits = line.bits;
      return bits;
    };
    EXPECT_EQ(of_class(), 0) << "known, and nothing else";
    if (outcome == Outcome::kOk) continue;
    first.batch = BatchId{2, 0, 1};
    rollout.observe(first, Time());
    EXPECT_GT(of_class(), 0);
  }
}

}  // namespace
}  // namespace serin::rollout
