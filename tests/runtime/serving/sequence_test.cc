// sequence_test.cc: requests that belong together, on models that show what they are given (tests/data/sequence_*).

#include "runtime/serving/scheduling/sequence_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>

#include "runtime/serving/repository/version.h"
#include "runtime/serving/scheduling/scheduler_factory.h"
#include "tests/runtime/base/eventually.h"

namespace serin::serving {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Kind = SequenceControl::Kind;

class SequenceTest : public testing::Test {
 protected:
  void load(const std::string& fixture, SequenceSettings sequences, int64_t max_batch = 8, const QueuePolicy& queue = {}) {
    ModelSettings settings;
    settings.max_batch = max_batch;
    settings.instances = 1;
    settings.sequences = std::move(sequences);
    settings.queues.levels = {queue};
    auto loaded = Version::load("m", "1", std::string(SERIN_TEST_DATA) + "/" + fixture + "/model.onnx", settings, host_, schedulers_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    version_ = *loaded;
  }
  void load_state(int64_t candidates = 0, std::chrono::nanoseconds idle = 1h) {
    load("sequence_state", {.max_candidates = candidates, .idle = idle, .states = {{.input = "PAST", .output = "PRESENT"}}});
  }
  void load_controls() {
    load("sequence_controls", {.controls = {{.input = "START", .kind = Kind::kStart},
                                            {.input = "READY", .kind = Kind::kReady},
                                            {.input = "END", .kind = Kind::kEnd},
                                            {.input = "CORRID", .kind = Kind::kId}}});
  }

  struct Asked {
    std::mutex mutex;
    std::condition_variable answered;
    std::optional<Answer> answer;

    const Answer& wait() {
      std::unique_lock lock(mutex);
      answered.wait(lock, [this] { return answer.has_value(); });
      return *answer;
    }
    int32_t number() { return *wait().outputs->tensors[0].as<int32_t>(); }
    bool here() {
      const std::lock_guard lock(mutex);
      return answer.has_value();
    }
  };

  JobPtr job(const std::shared_ptr<Asked>& asked, const protocol::SequencePlace& place, int32_t input, int64_t rows = 1) {
    auto made = std::make_shared<Job>();
    made->memory = AlignedBuffer(static_cast<size_t>(rows) * sizeof(int32_t));
    made->inputs = {{DType::kInt32, {rows, 1}, made->memory.data()}};
    std::ranges::fill(made->inputs[0].span<int32_t>(), input);
    made->arrived = Clock::now();
    made->sequence = place;
    made->done = [asked](Answer answer) {
      const std::lock_guard lock(asked->mutex);
      asked->answer = std::move(answer);
      asked->answered.notify_all();
    };
    return made;
  }
  std::shared_ptr<Asked> ask(const protocol::SequencePlace& place, int32_t input) {
    auto asked = std::make_shared<Asked>();
    const auto taken = version_->submit(job(asked, place, input));
    if (!taken) {
      const std::lock_guard lock(asked->mutex);
      asked->answer = Answer{taken.error(), {}, {}};
    }
    return asked;
  }
  std::string refusal(const protocol::SequencePlace& place) {
    const auto asked = ask(place, 1);
    return asked->wait().outputs ? "was answered" : asked->wait().outputs.error().message;
  }

  std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend({.onednn_path = "none"});
  metrics::Registry metrics_;
  Host host_{.backend = *backend_, .metrics = metrics_, .boot = 1, .pool = ComputePool(1)};
  const SchedulerFactory schedulers_{host_};
  std::shared_ptr<Version> version_;
};

TEST_F(SequenceTest, ClientsSeeNeitherControlsNorStates) {
  load_controls();
  ASSERT_EQ(version_->signature().inputs.size(), 1u);
  EXPECT_EQ(version_->signature().inputs[0].name, "INPUT");
  EXPECT_EQ(version_->signature().outputs.size(), 2u);
  load_state();
  ASSERT_EQ(version_->signature().inputs.size(), 1u);
  ASSERT_EQ(version_->signature().outputs.size(), 1u);
  EXPECT_EQ(version_->signature().outputs[0].name, "OUTPUT");
}

TEST_F(SequenceTest, TheModelIsToldWhereInItsSequenceARequestIs) {
  load_controls();
  const auto first = ask({.number = 7, .start = true}, 1), middle = ask({.number = 7}, 2), last = ask({.number = 7, .end = true}, 3);
  EXPECT_EQ(first->number(), 1011);
  EXPECT_EQ(middle->number(), 1002);
  EXPECT_EQ(last->number(), 1103);
  EXPECT_EQ(*last->wait().outputs->tensors[1].as<int64_t>(), 7);
}

TEST_F(SequenceTest, EachSequenceHasAStateOfItsOwnAndItsRequestsRunInOrder) {
  load_state();
  std::vector<std::shared_ptr<Asked>> one, two;
  for (int32_t i = 1; i <= 100; ++i) {
    one.push_back(ask({.number = 1, .start = i == 1, .end = i == 100}, i));
    two.push_back(ask({.name = "two", .start = i == 1}, 10 * i));
  }
  for (int32_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(one[static_cast<size_t>(i) - 1]->number(), i * (i + 1) / 2);
    EXPECT_EQ(two[static_cast<size_t>(i) - 1]->number(), 10 * i * (i + 1) / 2);
  }
}

TEST_F(SequenceTest, WhoseBeginningWasNotSeenIsRefusedInTritonsWords) {
  load_state();
  EXPECT_EQ(refusal({.number = 42}),
            "inference request for sequence 42 to model 'm' version 1 must specify the START flag on the first request of the sequence");
  EXPECT_THAT(refusal({.name = "x", .end = true}), HasSubstr("sequence x to model"));
  EXPECT_EQ(refusal({.start = true}), "inference request to model 'm' version 1 must specify a non-zero or non-empty correlation ID");
  EXPECT_EQ(ask({.number = 42, .start = true, .end = true}, 1)->number(), 1);
  EXPECT_THAT(refusal({.number = 42}), HasSubstr("must specify the START flag")) << "it is over";
}

TEST_F(SequenceTest, ARequestIsOneRow) {
  load_state();
  const auto asked = std::make_shared<Asked>();
  const auto taken = version_->submit(job(asked, {.number = 1, .start = true}, 1, 2));
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("must specify batch-size 1"));
}

TEST_F(SequenceTest, StartingAgainForgetsWhatWas) {
  load_state();
  EXPECT_EQ(ask({.number = 1, .start = true}, 5)->number(), 5);
  EXPECT_EQ(ask({.number = 1}, 5)->number(), 10);
  EXPECT_EQ(ask({.number = 1, .start = true}, 3)->number(), 3);
  EXPECT_EQ(ask({.number = 1, .end = true}, 3)->number(), 6);
}

TEST_F(SequenceTest, AModelThatNumbersItsSequencesTakesNoNames) {
  load_controls();
  EXPECT_THAT(refusal({.name = "seven", .start = true}), HasSubstr("'sequence_id' must be a number, not 'seven'"));
  EXPECT_THAT(refusal({.number = UINT64_MAX, .start = true}), HasSubstr("18446744073709551615 is not an INT64"));
}

TEST_F(SequenceTest, WhoFindsNoPlaceWaitsUntilOneIsOver) {
  load_state(/*candidates=*/1);
  EXPECT_EQ(ask({.number = 1, .start = true}, 1)->number(), 1);
  const auto waits = ask({.number = 2, .start = true}, 20), behind = ask({.number = 2, .end = true}, 2);
  EXPECT_EQ(ask({.number = 1}, 1)->number(), 2);
  EXPECT_FALSE(waits->here());
  EXPECT_EQ(ask({.number = 1, .end = true}, 1)->number(), 3);
  EXPECT_EQ(waits->number(), 20);
  EXPECT_EQ(behind->number(), 22);
}

TEST_F(SequenceTest, OneThatRestsTooLongGivesItsPlaceAway) {
  load_state(/*candidates=*/1, /*idle=*/20ms);
  EXPECT_EQ(ask({.number = 1, .start = true}, 1)->number(), 1);
  EXPECT_EQ(ask({.number = 2, .start = true}, 20)->number(), 20) << "nothing ended the first but the time";
  EXPECT_THAT(refusal({.number = 1}), HasSubstr("must specify the START flag"));
}

TEST_F(SequenceTest, ARequestThatIsGivenUpDoesNotHoldUpItsSequence) {
  load_state(/*candidates=*/1);
  EXPECT_EQ(ask({.number = 1, .start = true}, 1)->number(), 1);
  const auto gone = std::make_shared<Asked>();
  const JobPtr given_up = job(gone, {.number = 1}, 100);
  given_up->abandoned = true;
  ASSERT_TRUE(version_->submit(given_up));
  const auto late = std::make_shared<Asked>();
  const JobPtr too_late = job(late, {.number = 1}, 1000);
  too_late->deadline = Clock::now() - 1s;
  ASSERT_TRUE(version_->submit(too_late));
  EXPECT_EQ(ask({.number = 1, .end = true}, 2)->number(), 3) << "what did not run left no state";
  EXPECT_FALSE(late->wait().outputs);
  EXPECT_FALSE(gone->here());
}

TEST_F(SequenceTest, WhatIsWithdrawnIsLetGoOfAtOnceAndTheOthersGoOnInOrder) {
  load_state(/*candidates=*/1);
  EXPECT_EQ(ask({.number = 1, .start = true}, 1)->number(), 1);
  std::vector<JobPtr> waiting;  // for the place of the first sequence
  for (int32_t i = 0; i < 4; ++i) {
    waiting.push_back(job(std::make_shared<Asked>(), {.number = 2, .start = i == 0, .end = i == 3}, 1000));
    ASSERT_TRUE(version_->submit(waiting.back()));
  }
  const auto behind = std::make_shared<Asked>();
  ASSERT_TRUE(version_->submit(job(behind, {.number = 3, .start = true}, 30)));
  for (const size_t i : {0, 2, 3}) {
    const std::weak_ptr<Job> gone = waiting[i];
    waiting[i]->abandoned = true;
    version_->withdraw(waiting[i]);
    waiting[i] = nullptr;
    EXPECT_TRUE(gone.expired()) << "its inputs are held though another sequence has the place";
  }
  const std::weak_ptr<Job> left = std::exchange(waiting[1], nullptr);
  EXPECT_FALSE(left.expired());
  EXPECT_EQ(ask({.number = 1, .end = true}, 2)->number(), 3);
  EXPECT_EQ(behind->number(), 30) << "the second sequence has ended with its last request, though that was withdrawn";
  EXPECT_THAT(refusal({.number = 2}), HasSubstr("must specify the START flag"));
}

TEST_F(SequenceTest, TooManyThatWaitAreRefused) {
  load("sequence_state", {.max_candidates = 1, .idle = 1h, .states = {{.input = "PAST", .output = "PRESENT"}}}, 8, {.limit = 2});
  EXPECT_EQ(ask({.number = 1, .start = true}, 1)->number(), 1);
  const auto waits = ask({.number = 2, .start = true}, 2), too = ask({.number = 3, .start = true}, 3);
  EXPECT_THAT(refusal({.number = 4, .start = true}), HasSubstr("exceeds maximum queue size: 2 requests"));
  EXPECT_EQ(ask({.number = 9, .start = true}, 1)->wait().outputs.error().code, Code::kOverloaded);
}

TEST(SequenceTensors, StatesAreBounded) {
  const protocol::Signature model{
      "m", {{.name = "IN", .dtype = DType::kFloat32, .shape = {-1, -1}}}, {{.name = "OUT", .dtype = DType::kFloat32, .shape = {-1, -1}}}};
  for (const int64_t dim : {int64_t{1} << 40, int64_t{1} << 62, INT64_MAX, (int64_t{64} << 20) + 1}) {
    const auto made = SequenceTensors::make({.states = {{.input = "IN", .output = "OUT", .dims = {2, dim}}}}, model, false);
    ASSERT_FALSE(made) << dim;
    EXPECT_THAT(made.error().message, HasSubstr("state 'IN' is"));
    EXPECT_THAT(made.error().message, HasSubstr("have at most 256 MiB"));
  }
  EXPECT_TRUE(SequenceTensors::make({.states = {{.input = "IN", .output = "OUT", .dims = {2, 100}}}}, model, false));
}

TEST_F(SequenceTest, WhatIsAddedToARequestIsHeldByIt) {
  load_state();
  const auto asked = std::make_shared<Asked>();
  const JobPtr request = job(asked, {.number = 1, .start = true}, 1);
  const auto held = std::make_shared<int>();
  request->holds = held;
  ASSERT_TRUE(version_->submit(request));
  EXPECT_TRUE(serin::test::eventually([&] { return asked.use_count() == 1; })) << "what is answered lets go of what waits";
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_NE(request->holds, held);
}

TEST_F(SequenceTest, SettingsThatDoNotFitTheModelAreRefusedByName) {
  const auto why = [&](SequenceSettings sequences, const char* fixture = "sequence_state") {
    ModelSettings settings;
    settings.sequences = std::move(sequences);
    const auto loaded = Version::load("m", "1", std::string(SERIN_TEST_DATA) + "/" + fixture + "/model.onnx", settings, host_, schedulers_);
    return loaded ? "was loaded" : loaded.error().message;
  };
  EXPECT_THAT(why({.states = {{.input = "OLD", .output = "PRESENT"}}}), HasSubstr("the model has no input 'OLD'; it has '"));
  EXPECT_THAT(why({.states = {{.input = "PAST", .output = "NEW"}}}), HasSubstr("the model has no output 'NEW'"));
  EXPECT_THAT(why({.states = {{.input = "PAST", .output = "PRESENT", .dims = {2}}}}), HasSubstr("'dims' must give the sizes"));
  EXPECT_THAT(why({.states = {{.input = "PAST", .output = "PRESENT"}, {.input = "PAST", .output = "OUTPUT"}}}),
              HasSubstr("'PAST' is named twice"));
  EXPECT_THAT(why({.controls = {{.input = "START", .kind = Kind::kStart, .dtype = DType::kFloat32}}}, "sequence_controls"),
              HasSubstr("control 'START' is INT32 in the model, which FP32 cannot be"));
  EXPECT_THAT(why({.controls = {{.input = "END", .kind = Kind::kId}}}, "sequence_controls"), HasSubstr("which an id cannot be"));
}

}  // namespace
}  // namespace serin::serving
