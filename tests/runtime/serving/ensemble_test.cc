// ensemble_test.cc: steps as a graph: what fits together, and what is refused by name. Models are those of tests/data and models/.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <optional>

#include "runtime/serving/repository/version.h"
#include "runtime/serving/scheduling/ensemble_scheduler.h"
#include "runtime/serving/scheduling/scheduler_factory.h"
#include "tests/runtime/base/eventually.h"

namespace serin::serving {
namespace {

using testing::HasSubstr;

/// PRESENT and OUTPUT are INPUT + PAST.
class EnsembleTest : public testing::Test {
 protected:
  void SetUp() override {
    ModelSettings settings;
    settings.max_batch = 4;
    sum_ = *Version::load("sum", "1", std::string(SERIN_TEST_DATA) + "/sequence_state/model.onnx", settings, host_, schedulers_);
    digits_ = *Version::load("digits", "1", std::string(SERIN_MODELS) + "/digits/1/model.onnx", settings, host_, schedulers_);
  }
  Result<std::shared_ptr<Version>> make(EnsembleSettings ensemble) {
    ModelSettings settings;
    settings.ensemble = std::move(ensemble);
    std::vector<std::shared_ptr<Version>> models;
    for (const EnsembleStep& step : settings.ensemble->steps) models.push_back(step.model == "sum" ? sum_ : digits_);
    return Version::of_steps("pipe", "1", settings, models, host_, schedulers_);
  }
  std::string refusal(EnsembleSettings ensemble) {
    const auto made = make(std::move(ensemble));
    return made ? "was made" : made.error().message;
  }
  static EnsembleStep sum(const std::string& a, const std::string& b, const std::string& to) {
    return {.model = "sum", .inputs = {{"INPUT", a}, {"PAST", b}}, .outputs = {{"OUTPUT", to}}};
  }
  /// Each input a column of one number for each row.
  Answer run(Version& version, const std::vector<std::vector<int32_t>>& inputs, Clock::time_point deadline = Clock::time_point::max()) {
    std::mutex mutex;
    std::condition_variable answered;
    std::optional<Answer> got;
    auto job = std::make_shared<Job>();
    for (const auto& input : inputs)
      job->inputs.push_back({DType::kInt32, {static_cast<int64_t>(input.size()), 1}, const_cast<int32_t*>(input.data())});
    job->arrived = Clock::now();
    job->deadline = deadline;
    job->done = [&](Answer answer) {
      const std::lock_guard lock(mutex);
      got = std::move(answer);
      answered.notify_all();
    };
    if (const auto taken = version.submit(job); !taken) return Answer{taken.error(), {}, {}};
    std::unique_lock lock(mutex);
    answered.wait(lock, [&] { return got.has_value(); });
    return std::move(*got);
  }

  std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend({.onednn_path = "none"});
  metrics::Registry metrics_;
  Host host_{.backend = *backend_, .metrics = metrics_, .boot = 1, .pool = ComputePool(2)};
  const SchedulerFactory schedulers_{host_};
  std::shared_ptr<Version> sum_, digits_;
};

TEST_F(EnsembleTest, StepsRunInTheOrderOfTheirTensors) {
  // last = (a + b) + (b + b), declared back to front
  const auto pipe = make({.steps = {sum("ab", "bb", "last"), sum("a", "b", "ab"), sum("b", "b", "bb")}});
  ASSERT_TRUE(pipe) << pipe.error().message;
  EXPECT_EQ((*pipe)->signature().inputs.size(), 2u);
  ASSERT_EQ((*pipe)->signature().outputs.size(), 1u);
  EXPECT_EQ((*pipe)->signature().outputs[0].name, "last");
  EXPECT_TRUE((*pipe)->batchable());
  EXPECT_EQ((*pipe)->max_batch(), 4);
  const Answer answer = run(**pipe, {{1, 2}, {10, 20}});
  ASSERT_TRUE(answer.outputs) << answer.outputs.error().message;
  EXPECT_THAT(answer.outputs->tensors[0].span<const int32_t>(), testing::ElementsAre(31, 62));
  EXPECT_EQ(sum_->metrics().success->value(), 3u);
  EXPECT_EQ(sum_->metrics().pending->value(), 0);
  EXPECT_EQ((*pipe)->metrics().executions->value(), 1u);
}

TEST_F(EnsembleTest, OutputsMayBeNamedAmongThemOnesThatAreReadToo) {
  const auto pipe = make({.steps = {sum("a", "b", "ab"), sum("ab", "b", "abb")},
                          .outputs = {{.name = "abb", .ranked = false}, {.name = "ab", .ranked = false}}});
  ASSERT_TRUE(pipe) << pipe.error().message;
  const Answer answer = run(**pipe, {{1}, {10}});
  EXPECT_EQ(*answer.outputs->tensors[0].as<int32_t>(), 21);
  EXPECT_EQ(*answer.outputs->tensors[1].as<int32_t>(), 11);
}

TEST_F(EnsembleTest, AnEnsembleMayBeAStep) {
  const auto inner = make({.steps = {sum("a", "a", "double")}});
  ASSERT_TRUE(inner);
  ModelSettings settings;
  settings.ensemble =
      EnsembleSettings{.steps = {{.model = "inner", .inputs = {{"a", "x"}}, .outputs = {{"double", "y"}}}, sum("y", "x", "z")}};
  const auto outer = Version::of_steps("outer", "1", settings, {*inner, sum_}, host_, schedulers_);
  ASSERT_TRUE(outer) << outer.error().message;
  EXPECT_EQ(*run(**outer, {{7}}).outputs->tensors[0].as<int32_t>(), 21);
}

TEST_F(EnsembleTest, AFailureNamesItsStepAndADeadlineTravelsAlong) {
  const auto pipe = make({.steps = {sum("a", "b", "ab"), sum("ab", "c", "abc")}});
  ASSERT_TRUE(pipe);
  const Answer late = run(**pipe, {{1}, {2}, {3}}, Clock::now() - std::chrono::seconds(1));
  ASSERT_FALSE(late.outputs);
  EXPECT_EQ(late.outputs.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(late.outputs.error().message, testing::StartsWith("model 'pipe' version 1: step 1 (model 'sum'): the deadline passed"));
  EXPECT_EQ(sum_->metrics().pending->value(), 0);
}

TEST_F(EnsembleTest, MoreRowsThanItsStepsRunAtATimeGoThroughThemInParts) {
  const auto pipe = make({.steps = {sum("a", "b", "ab"), sum("ab", "c", "abc")}});
  ASSERT_TRUE(pipe);
  const Answer large = run(**pipe, {{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}, {3, 3, 3, 3, 4}});
  ASSERT_TRUE(large.outputs) << large.outputs.error().message;
  EXPECT_THAT(large.outputs->tensors[0].span<const int32_t>(), testing::ElementsAre(6, 6, 6, 6, 7));
}

TEST_F(EnsembleTest, WhatIsWithdrawnLeavesTheQueuesOfItsSteps) {
  ModelSettings settings;
  settings.instances = 1;
  settings.sequences =
      SequenceSettings{.max_candidates = 1, .idle = std::chrono::hours(1), .states = {{.input = "PAST", .output = "PRESENT"}}};
  const auto state = Version::load("state", "1", std::string(SERIN_TEST_DATA) + "/sequence_state/model.onnx", settings, host_, schedulers_);
  ASSERT_TRUE(state) << state.error().message;
  ModelSettings piped;
  piped.ensemble =
      EnsembleSettings{.steps = {{.model = "state", .inputs = {{"INPUT", "a"}}, .outputs = {{"OUTPUT", "b"}}}, sum("b", "a", "c")}};
  const auto pipe = Version::of_steps("pipe", "1", piped, {*state, sum_}, host_, schedulers_);
  ASSERT_TRUE(pipe) << pipe.error().message;
  int32_t number = 1;
  std::atomic<int> answers = 0;
  const auto job = [&](uint64_t sequence) {
    auto made = std::make_shared<Job>();
    made->inputs.push_back({DType::kInt32, {1, 1}, &number});
    made->sequence = {.number = sequence, .start = true};
    made->done = [&](const Answer&) { ++answers; };
    return made;
  };
  ASSERT_TRUE((*pipe)->submit(job(1)));  // has the only place from now on
  JobPtr waits = job(2);
  const std::weak_ptr<Job> gone = waits;
  ASSERT_TRUE((*pipe)->submit(waits));
  ASSERT_TRUE(test::eventually([&] { return answers == 1; }));
  EXPECT_FALSE((*pipe)->idle());
  waits->abandoned = true;
  (*pipe)->withdraw(waits);
  waits = nullptr;
  EXPECT_TRUE(gone.expired()) << "its inputs are held though its step is of use to nobody";
  EXPECT_TRUE(test::eventually([&] { return (*pipe)->idle(); }));
  EXPECT_EQ(answers, 1);
}

TEST_F(EnsembleTest, AnswersOfSequencesAreNotKept) {
  ModelSettings settings;
  settings.sequences = SequenceSettings{.states = {{.input = "PAST", .output = "PRESENT"}}};
  const auto state = Version::load("state", "1", std::string(SERIN_TEST_DATA) + "/sequence_state/model.onnx", settings, host_, schedulers_);
  ASSERT_TRUE(state) << state.error().message;
  ModelSettings cached;
  cached.response_cache = true;
  cached.ensemble = EnsembleSettings{.steps = {{.model = "state", .inputs = {{"INPUT", "a"}}, .outputs = {{"OUTPUT", "b"}}}}};
  const auto made = Version::of_steps("pipe", "1", cached, {*state}, host_, schedulers_);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("response_cache: answers within a sequence"));
}

TEST_F(EnsembleTest, WhatDoesNotFitIsRefusedByName) {
  EXPECT_THAT(refusal({.steps = {{.model = "sum", .inputs = {{"INPUT", "a"}}, .outputs = {{"OUTPUT", "b"}}}}}),
              HasSubstr("model 'pipe' version 1: step 1 (model 'sum'): its input 'PAST' is left out"));
  EXPECT_THAT(refusal({.steps = {{.model = "sum", .inputs = {{"IN", "a"}}, .outputs = {{"OUTPUT", "b"}}}}}),
              HasSubstr("has no input 'IN'; it has 'INPUT', 'PAST'"));
  EXPECT_THAT(refusal({.steps = {{.model = "sum", .inputs = {{"INPUT", "a"}, {"PAST", "a"}}, .outputs = {{"OUT", "b"}}}}}),
              HasSubstr("has no output 'OUT'; it has 'OUTPUT'"));
  EXPECT_THAT(refusal({.steps = {sum("a", "b", "c"), sum("a", "b", "c")}}),
              HasSubstr("tensor 'c' is produced by step 1 (model 'sum') and by step 2 (model 'sum')"));
  EXPECT_THAT(refusal({.steps = {sum("a", "c", "b"), sum("b", "a", "c")}}),
              HasSubstr("step 1 (model 'sum'), step 2 (model 'sum') wait for each other's tensors"));
  const EnsembleStep digits{.model = "digits", .inputs = {{"pixels", "ab"}}, .outputs = {{"scores", "scores"}}};
  EXPECT_THAT(
      refusal({.steps = {sum("a", "b", "ab"), digits}}),
      HasSubstr("step 2 (model 'digits'): its input 'pixels' takes FP32 [-1,64], but tensor 'ab' of step 1 (model 'sum') is INT32 [-1,1]"));
  EXPECT_THAT(refusal({.steps = {sum("a", "b", "ab")}, .inputs = {{.name = "a", .ranked = false}}}),
              HasSubstr("reads tensor 'b', which is no input"));
  EXPECT_THAT(refusal({.steps = {sum("a", "a", "ab")}, .inputs = {{.name = "a", .ranked = false}, {.name = "b", .ranked = false}}}),
              HasSubstr("input 'b' is read by no step"));
  EXPECT_THAT(refusal({.steps = {sum("a", "a", "ab")}, .outputs = {{.name = "b", .ranked = false}}}),
              HasSubstr("output 'b' is produced by no step"));
  EXPECT_THAT(refusal({.steps = {sum("a", "a", "ab")}, .outputs = {{"ab", DType::kFloat32, {-1, 1}}}}),
              HasSubstr("output 'ab' is declared as FP32"));
}

}  // namespace
}  // namespace serin::serving
