// The controller from outside: commands and answers in, the split in force and the audit log out.

#include "router/control/controller.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/router/router_fixture.h"

namespace serin::router {
namespace {

using rollout::Outcome;
using rollout::Phase;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ControllerTest : public ::testing::Test {
 protected:
  void restart() {
    controller_.reset();
    controller_ = open_controller(config_, metrics_);
    ASSERT_NE(controller_, nullptr);
  }
  Result<ServiceStatus> start(const std::string& canary = "2", std::initializer_list<uint32_t> percents = {5, 50}) {
    return controller_->start(spec_of(canary, percents), {.actor = "test"});
  }
  rollout::State state() { return controller_->status("digits")->rollout->state; }
  std::vector<std::string> events() {
    std::vector<std::string> words;
    for (const HistoryEntry& entry : *controller_->history("digits", 100)) words.push_back(entry.event);
    return words;
  }

  TestFolder folder_;
  RouterConfig config_ = digits_config(folder_.file("router.db"));
  metrics::Registry metrics_;
  std::unique_ptr<Controller> controller_ = open_controller(config_, metrics_);
};

double bits_against_errors(const Controller& controller) {
  const auto status = controller.status("digits");
  for (const rollout::Evidence& line : status->rollout->evidence)
    if (line.guard == "err") return line.bits;
  return 0;
}

/// A controller that goes on with what `before` has learned, as SIGHUP has it.
Result<std::unique_ptr<Controller>> read_again(Controller& before, const RouterConfig& config, LearnedServices& learned) {
  static metrics::Registry metrics;
  before.stop_learning();
  before.retire();
  learned = before.take_learned();
  auto next = Controller::open(config, metrics, learned);
  if (next) (*next)->begin(std::exchange(learned, {}));
  return next;
}

TEST_F(ControllerTest, BeginsWithAllTrafficOnTheInitialStable) {
  EXPECT_EQ(controller_->split(0), (Split{.stable = 0}));
  const auto status = controller_->status("digits");
  EXPECT_EQ(status->stable, "1");
  EXPECT_FALSE(status->rollout);
}

TEST_F(ControllerTest, AStartIsWrittenBeforeItIsAnswered) {
  const auto started = start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(controller_->split(0),
            (Split{.weight_ppm = 50'000, .shadow_ppm = rollout::kAutoShadowPpm, .stable = 0, .canary = 1, .epoch = 1}));
  EXPECT_EQ(started->epoch, 1U);
  EXPECT_EQ(started->rollout->state.id, "digits-1");
  EXPECT_THAT(events(), ElementsAre("started"));
}

TEST_F(ControllerTest, AVerdictActsBeforeTheNextRequest) {
  ASSERT_TRUE(start());
  uint64_t batch = 0;
  while (controller_->split(0).canary != Split::kNoCanary && batch < 1000) {
    const Split split = controller_->split(0);
    const auto arm = batch % 20 == 0 ? rollout::Arm::kCanary : rollout::Arm::kStable;
    controller_->observe(0, answer(split, arm, arm == rollout::Arm::kCanary ? Outcome::kError : Outcome::kOk, batch++));
  }
  EXPECT_LT(batch, 1000U);
  EXPECT_EQ(controller_->split(0).weight_ppm, 0U) << "in force when observe() returns, not when the disk is done";
  EXPECT_EQ(state().phase, Phase::kRolledBack);
  EXPECT_EQ(state().cause, "err");
  ASSERT_TRUE(eventually([&] { return events().back() == "rolled_back"; }));
  EXPECT_THAT(metrics_.render(), HasSubstr("serin_rollout_verdicts_total{service=\"digits\",outcome=\"rolled_back\",cause=\"err\"} 1"));
}

/// Measured and not asserted: how long after the deciding answer was told the next request avoids the canary.
TEST_F(ControllerTest, AVerdictIsInForceAtOnce) {
  ASSERT_TRUE(start());
  std::chrono::nanoseconds longest{0};
  for (uint64_t batch = 0; controller_->split(0).canary != Split::kNoCanary && batch < 1000; ++batch) {
    const Split split = controller_->split(0);
    const auto told = std::chrono::steady_clock::now();
    controller_->observe(0, answer(split, rollout::Arm::kCanary, Outcome::kError, batch));
    if (controller_->split(0).canary == Split::kNoCanary) longest = std::chrono::steady_clock::now() - told;
  }
  EXPECT_GT(longest.count(), 0) << "there was a verdict";
  std::printf("  from the deciding answer to a split without the canary: %.1f us\n", static_cast<double>(longest.count()) / 1000);
}

TEST_F(ControllerTest, R8OneErrorAloneMovesNothing) {
  ASSERT_TRUE(start());
  controller_->observe(0, answer(controller_->split(0), rollout::Arm::kCanary, Outcome::kError, 1));
  EXPECT_EQ(controller_->split(0).weight_ppm, 50'000U);
  EXPECT_EQ(state().phase, Phase::kProgressing);
}

TEST_F(ControllerTest, R10AnOutageOfBothMovesNothing) {
  ASSERT_TRUE(start());
  for (uint64_t i = 0; i < 2000; ++i)
    controller_->observe(0, answer(controller_->split(0), i % 20 == 0 ? rollout::Arm::kCanary : rollout::Arm::kStable, Outcome::kError, i));
  EXPECT_EQ(state().phase, Phase::kProgressing);
}

TEST_F(ControllerTest, AnswersOfAnEarlierEpochAreNoEvidence) {
  const Split before = controller_->split(0);
  ASSERT_TRUE(start());
  for (uint64_t i = 0; i < 100; ++i) controller_->observe(0, answer(before, rollout::Arm::kCanary, Outcome::kError, i));
  EXPECT_EQ(state().phase, Phase::kProgressing);
}

TEST_F(ControllerTest, PromotionMakesTheCanaryStable) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(controller_->promote("digits", {}));
  ASSERT_TRUE(eventually([&] { return controller_->split(0).stable == 1; }));
  EXPECT_EQ(controller_->split(0).canary, Split::kNoCanary);
  EXPECT_EQ(controller_->status("digits")->stable, "2");
  EXPECT_EQ(state().phase, Phase::kSucceeded);
  EXPECT_GT(controller_->status("digits")->epoch, 1U);
  restart();
  EXPECT_EQ(controller_->split(0).stable, 1U);
  EXPECT_EQ(state().phase, Phase::kSucceeded);
  EXPECT_THAT(events(), ElementsAre("started", "promoting", "promoted"));
}

TEST_F(ControllerTest, ARestartContinuesWithTheSameHistory) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(controller_->set_weight("digits", 123'456, {.actor = "ann", .reason = "look closer"}));
  const auto epoch = controller_->status("digits")->epoch;
  restart();
  EXPECT_EQ(controller_->split(0).weight_ppm, 123'456U);
  EXPECT_EQ(controller_->split(0).canary, 1U);
  EXPECT_EQ(controller_->status("digits")->epoch, epoch);
  EXPECT_EQ(state().phase, Phase::kPaused);
  EXPECT_THAT(events(), ElementsAre("started", "weight", "restarted"));
  EXPECT_EQ(controller_->history("digits", 100)->at(1).actor, "ann");
  EXPECT_THAT(controller_->history("digits", 100)->at(1).detail, HasSubstr("look closer"));
  ASSERT_TRUE(controller_->resume("digits", {}));
  EXPECT_EQ(state().phase, Phase::kProgressing);
}

TEST_F(ControllerTest, AFinishedRolloutStaysVisibleWithItsNumbers) {
  ASSERT_TRUE(start());
  send(*controller_, 1000, 5, Outcome::kOk);
  ASSERT_TRUE(controller_->abort("digits", {.reason = "enough"}));
  restart();
  const auto status = controller_->status("digits");
  EXPECT_EQ(status->rollout->state.phase, Phase::kRolledBack);
  EXPECT_EQ(status->rollout->state.reason, "enough");
  EXPECT_EQ(status->rollout->canary_answers, 50U);
  EXPECT_EQ(status->rollout->evidence.front().guard, "err");
  EXPECT_EQ(status->rollout_steps, 2U);
}

TEST_F(ControllerTest, R2CanaryThatCannotBe) {
  EXPECT_EQ(start("1").error().code, Code::kInvalidArgument);
  EXPECT_THAT(start("9").error().message, HasSubstr("no version '9'; it has 1, 2, 3"));
  controller_->set_endpoint_count(0, 1, {.all = 1, .healthy = 0});
  EXPECT_THAT(start("2").error().message, HasSubstr("no endpoint of version '2' of service 'digits' is healthy"));
  controller_->set_endpoint_count(0, 1, {.all = 1, .healthy = 1});
  EXPECT_TRUE(start("2"));
}

TEST_F(ControllerTest, R3CommandsInTheWrongState) {
  EXPECT_EQ(controller_->promote("digits", {}).error().code, Code::kFailedPrecondition);
  EXPECT_THAT(controller_->abort("digits", {}).error().message, HasSubstr("never had a rollout"));
  ASSERT_TRUE(start());
  EXPECT_THAT(start("3").error().message, HasSubstr("rollout 'digits-1' of service 'digits' is Progressing"));
  ASSERT_TRUE(controller_->abort("digits", {}));
  EXPECT_TRUE(controller_->abort("digits", {})) << "repeated abort changes nothing and is no mistake";
  EXPECT_THAT(controller_->promote("digits", {}).error().message, HasSubstr("RolledBack"));
  EXPECT_THAT(events(), ElementsAre("started", "rolled_back"));
}

TEST_F(ControllerTest, R4OfTwoChangesWithTheSameEpochOneWins) {
  ASSERT_TRUE(start());
  const uint64_t epoch = controller_->status("digits")->epoch;
  std::atomic<int> won{0}, lost{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (uint32_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const auto result = controller_->set_weight("digits", 10'000 * (i + 1), {.if_match = epoch});
      if (result) return void(++won);
      EXPECT_EQ(result.error().code, Code::kConflict);
      ++lost;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(lost, 3);
}

TEST_F(ControllerTest, UnknownServiceIsNotFound) {
  EXPECT_EQ(controller_->pause("resnet", {}).error().code, Code::kNotFound);
  EXPECT_EQ(controller_->history("resnet", 1).error().code, Code::kNotFound);
}

TEST_F(ControllerTest, StablesLatenciesAreTheBaseline) {
  send(*controller_, 20'000, 0, Outcome::kOk);
  ASSERT_TRUE(start());
  EXPECT_THAT(controller_->status("digits")->rollout->note, Not(HasSubstr("latency is not judged")));
}

TEST_F(ControllerTest, AStoreThatCannotBeWrittenLetsWeightsOnlyFall) {
  ASSERT_TRUE(start());
  sqlite3* other = nullptr;  // whoever holds the database: writing fails as on a full disk, and can be ended
  ASSERT_EQ(sqlite3_open(config_.store.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);

  const auto raised = controller_->set_weight("digits", 500'000, {});
  ASSERT_FALSE(raised);
  EXPECT_EQ(raised.error().code, Code::kUnavailable);
  EXPECT_EQ(controller_->split(0).weight_ppm, 50'000U) << "not written, so not in force";
  EXPECT_EQ(controller_->promote("digits", {}).error().code, Code::kUnavailable);
  EXPECT_THAT(metrics_.render(), HasSubstr("serin_route_store_failing 1"));
  EXPECT_TRUE(controller_->abort("digits", {}));
  EXPECT_EQ(controller_->split(0).canary, Split::kNoCanary);

  sqlite3_close(other);
  ASSERT_TRUE(eventually([&] { return events().back() == "rolled_back"; }));
  ASSERT_TRUE(eventually([&] { return metrics_.render().find("serin_route_store_failing 0") != std::string::npos; }));
  EXPECT_TRUE(start("3"));
}

TEST_F(ControllerTest, S1ASecondRouterOnTheSameStoreIsRefused) {
  metrics::Registry metrics;
  const auto second = Controller::open(config_, metrics);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kAlreadyExists);
  EXPECT_THAT(second.error().message, HasSubstr("pid " + std::to_string(::getpid())));
}

TEST_F(ControllerTest, S2ADamagedStoreIsSetAsideAndTrafficStaysOnTheLastStable) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(controller_->promote("digits", {}));
  ASSERT_TRUE(eventually([&] { return controller_->split(0).stable == 1; }));
  ASSERT_TRUE(start("3", {50}));
  controller_.reset();
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(config_.store + suffix);
  std::ofstream(config_.store) << "this is no database, however long one looks at it";
  controller_ = open_controller(config_, metrics_);
  ASSERT_NE(controller_, nullptr);
  EXPECT_EQ(controller_->split(0).stable, 1U) << "the weights page knows what was promoted";
  EXPECT_EQ(controller_->split(0).canary, Split::kNoCanary);
  EXPECT_THAT(controller_->damage(), HasSubstr(".corrupt-"));
  EXPECT_THAT(metrics_.render(), HasSubstr("serin_route_store_corrupt 1"));
  EXPECT_THAT(events(), ElementsAre("state_lost"));
}

TEST_F(ControllerTest, EvidenceGoesOnWhereTheConfigurationIsReadAgain) {
  ASSERT_TRUE(start());
  send(*controller_, 60, 5, Outcome::kError);
  const double bits = bits_against_errors(*controller_);
  ASSERT_GT(bits, 1);
  config_.services[0].versions[2].endpoints[0].url = "http://127.0.0.1:8001";  // of neither version
  config_.services[0].versions[1].endpoints.push_back({.url = "http://127.0.0.1:8002", .origin = {"127.0.0.1", 8002}});
  config_.services[0].gates.promotion = true;
  LearnedServices learned;
  const auto next = read_again(*controller_, config_, learned);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(bits_against_errors(**next), bits);
  EXPECT_EQ((*next)->history("digits", 1)->back().event, "reloaded");
  for (uint64_t batch = 1000; (*next)->split(0).weight_ppm > 0; batch += 20) {
    ASSERT_LT(batch, 2000U);
    send(**next, 20, 5, Outcome::kError, batch);
  }
}

TEST_F(ControllerTest, EvidenceAboutAVersionThatIsFoundElsewhereBeginsAnew) {
  ASSERT_TRUE(start());
  send(*controller_, 60, 5, Outcome::kError);
  ASSERT_GT(bits_against_errors(*controller_), 1);
  config_.services[0].versions[1].endpoints[0].url = "http://127.0.0.1:8002/v2/models/another";
  LearnedServices learned;
  const auto next = read_again(*controller_, config_, learned);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_LT(bits_against_errors(**next), 1);
  EXPECT_EQ((*next)->status("digits")->rollout->state.weight_ppm, 50'000U) << "the rollout itself goes on";
  EXPECT_EQ((*next)->history("digits", 1)->back().event, "restarted");
}

TEST_F(ControllerTest, AConfigurationThatCannotBeOpenedTakesNoEvidence) {
  ASSERT_TRUE(start());
  send(*controller_, 60, 5, Outcome::kError);
  const double bits = bits_against_errors(*controller_);
  RouterConfig bad = config_;
  bad.store = folder_.file("nowhere/router.db");
  LearnedServices learned;
  ASSERT_FALSE(read_again(*controller_, bad, learned));
  metrics::Registry metrics;
  const auto again = Controller::open(config_, metrics, learned);
  ASSERT_TRUE(again) << again.error().message;
  (*again)->begin(std::move(learned));
  EXPECT_EQ(bits_against_errors(**again), bits);
}

TEST_F(ControllerTest, AVerdictIsExplainedAfterARestart) {
  ASSERT_TRUE(start());
  for (uint64_t batch = 0; controller_->split(0).weight_ppm > 0; batch += 20) {
    ASSERT_LT(batch, 2000U);
    send(*controller_, 20, 5, Outcome::kError, batch);
  }
  const auto why = controller_->explain("digits");
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("\"guard\":\"err\""));
  restart();
  EXPECT_EQ(controller_->explain("digits").value(), *why);
  EXPECT_EQ(controller_->explain("digits-1").value(), *why);
}

}  // namespace
}  // namespace serin::router
