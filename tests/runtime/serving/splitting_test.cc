// splitting_test.cc: parts of a request as what is below sees them, which answers when a test lets it.

#include "runtime/serving/scheduling/splitting_scheduler.h"

#include <gmock/gmock.h>

#include <numeric>
#include <optional>

namespace serin::serving {
namespace {

using testing::ElementsAre;

/// Doubles numbers.
class Below final : public Scheduler {
 public:
  Status submit(JobPtr job) override {
    if (refuse_from == taken) return Error{Code::kOverloaded, "exceeds maximum queue size"};
    ++taken;
    waiting.push_back(std::move(job));
    return {};
  }
  void withdraw(const JobPtr& job) override { std::erase(waiting, job); }
  int64_t retry_after_seconds() const override { return 1; }
  bool idle() const override { return waiting.empty(); }
  Status usable() const override { return {}; }

  std::vector<int64_t> rows() const {
    std::vector<int64_t> rows;
    for (const JobPtr& job : waiting) rows.push_back(job->rows);
    return rows;
  }
  /// The one at that place of those that wait.
  void run(size_t at = 0) {
    const JobPtr job = waiting[at];
    waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(at));
    auto memory = std::make_shared<std::vector<float>>();
    Shape shape = job->inputs[0].shape;
    for (const float value : job->inputs[0].span<const float>()) memory->push_back(2 * value);
    if (result_columns > 0) shape[1] = result_columns;
    Answer answer;
    answer.outputs = Outputs::of({{DType::kFloat32, shape, memory->data()}}, memory);
    answer.timing.infer = std::chrono::hours(1);
    job->answer(std::move(answer));
  }
  void fail() {
    const JobPtr job = waiting.front();
    waiting.erase(waiting.begin());
    Answer answer;
    answer.outputs = Error{Code::kInvalidArgument, "index 99"};
    job->answer(std::move(answer));
  }

  std::vector<JobPtr> waiting;
  int taken = 0, refuse_from = -1;
  int64_t result_columns = 0;  // that are claimed, not there; 0: as many as came
};

class Splitting : public testing::Test {
 protected:
  static constexpr int64_t kRows = 21;

  ~Splitting() override { below_->waiting.clear(); }  // parts hold their request, and that what is below

  JobPtr request(int64_t rows = kRows) {
    auto job = std::make_shared<Job>();
    job->memory = AlignedBuffer(static_cast<size_t>(rows) * 2 * sizeof(float));
    job->inputs.push_back({DType::kFloat32, Shape{rows, 2}, job->memory.data()});
    const auto values = job->inputs[0].span<float>();
    std::iota(values.begin(), values.end(), 0.0f);
    job->rows = rows;
    job->deadline = Clock::now() + std::chrono::hours(1);
    job->done = [this](Answer answer) { answers.push_back(std::move(answer)); };
    return job;
  }
  void expect_answer() {
    ASSERT_EQ(answers.size(), 1u);
    ASSERT_TRUE(answers[0].outputs);
    const TensorView& output = answers[0].outputs->tensors[0];
    EXPECT_EQ(output.shape, (Shape{kRows, 2}));
    for (int64_t i = 0; i < output.elements(); ++i) EXPECT_EQ(output.as<float>()[i], 2.0f * static_cast<float>(i));
  }

  const std::shared_ptr<Below> below_ = std::make_shared<Below>();
  const std::shared_ptr<SplittingScheduler> scheduler_ = std::make_shared<SplittingScheduler>(below_, 8, 2);
  std::vector<Answer> answers;
};

TEST_F(Splitting, SmallOnesPassAsTheyAre) {
  const JobPtr job = request(8);
  ASSERT_TRUE(scheduler_->submit(job));
  EXPECT_THAT(below_->waiting, ElementsAre(job));
  scheduler_->withdraw(job);
  EXPECT_TRUE(below_->idle());
}

TEST_F(Splitting, AFewPartsWaitAtATime) {
  const JobPtr job = request();
  ASSERT_TRUE(scheduler_->submit(job));
  EXPECT_THAT(below_->rows(), ElementsAre(8, 8));
  EXPECT_EQ(below_->waiting[0]->deadline, job->deadline);
  below_->run();
  EXPECT_THAT(below_->rows(), ElementsAre(8, 5));
  below_->run(1);
  EXPECT_TRUE(answers.empty());
  below_->run();
  expect_answer();
  EXPECT_LT(answers[0].timing.infer, std::chrono::minutes(1)) << "no more than it took";
}

TEST_F(Splitting, TheFirstThatIsRefusedRefusesTheRequest) {
  below_->refuse_from = 0;
  const Status taken = scheduler_->submit(request());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::kOverloaded);
  EXPECT_TRUE(answers.empty());
}

TEST_F(Splitting, OneThatIsRefusedBehindOthersIsTheAnswer) {
  below_->refuse_from = 1;
  ASSERT_TRUE(scheduler_->submit(request()));
  EXPECT_TRUE(below_->idle()) << "the others are taken back";
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].outputs.error().code, Code::kOverloaded);
}

TEST_F(Splitting, AQueueLetsItInOnce) {
  ASSERT_TRUE(scheduler_->submit(request()));
  EXPECT_FALSE(below_->waiting[0]->admitted);
  EXPECT_EQ(below_->waiting[0]->behind, kRows - 8);
  EXPECT_TRUE(below_->waiting[1]->admitted);
  EXPECT_EQ(below_->waiting[1]->behind, 0);
}

TEST_F(Splitting, ItCountsAsPendingUntilItsFirstPartRuns) {
  const auto gauge = std::make_shared<metrics::Gauge>();
  const JobPtr job = request();
  job->pending.begin(gauge);
  ASSERT_TRUE(scheduler_->submit(job));
  EXPECT_EQ(gauge->value(), 1);
  below_->waiting[0]->pending.end();
  EXPECT_EQ(gauge->value(), 0);
}

TEST_F(Splitting, ResultsThatNoMemoryHoldsAreRefused) {
  below_->result_columns = 1 << 20;
  const JobPtr job = request(4096);
  ASSERT_TRUE(scheduler_->submit(job));
  below_->run();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].outputs.error().code, Code::kTooLarge);
  EXPECT_TRUE(below_->idle());
}

TEST_F(Splitting, OneThatIsRefusedLaterIsTheAnswer) {
  below_->refuse_from = 2;
  ASSERT_TRUE(scheduler_->submit(request()));
  below_->run();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].outputs.error().code, Code::kOverloaded);
  EXPECT_TRUE(below_->idle()) << "what waited of it is withdrawn";
}

TEST_F(Splitting, OneThatFailsIsTheAnswer) {
  ASSERT_TRUE(scheduler_->submit(request()));
  below_->fail();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].outputs.error().message, "index 99");
  EXPECT_TRUE(below_->idle());
}

TEST_F(Splitting, NobodyWaitsForAPartOfWhatIsGivenUp) {
  const JobPtr job = request();
  ASSERT_TRUE(scheduler_->submit(job));
  const JobPtr runs = below_->waiting[0];
  EXPECT_FALSE(runs->given_up());
  job->abandoned = true;
  EXPECT_TRUE(runs->given_up());
  scheduler_->withdraw(job);
  EXPECT_TRUE(below_->idle());
  below_->waiting.push_back(runs);  // it had begun
  below_->run();
  EXPECT_EQ(below_->taken, 2) << "the next part was given all the same";
}

/// A text of two in each row.
TEST_F(Splitting, TextsAreSplitAndJoined) {
  const auto scheduler = std::make_shared<SplittingScheduler>(below_, 1, 4);
  auto job = std::make_shared<Job>();
  job->texts = {{"a0", "a1", "b0", "b1", "c0", "c1"}};
  job->inputs = {{DType::kString, Shape{3, 2}, job->texts[0].data()}};
  job->rows = 3;
  job->done = [this](Answer answer) { answers.push_back(std::move(answer)); };
  ASSERT_TRUE(scheduler->submit(job));
  ASSERT_EQ(below_->waiting.size(), 3u);
  for (const size_t part : {2u, 0u, 0u}) {
    const JobPtr row = below_->waiting[part];
    below_->waiting.erase(below_->waiting.begin() + part);
    EXPECT_EQ(row->inputs[0].shape, (Shape{1, 2}));
    auto texts = std::make_shared<std::vector<std::string>>();
    for (const std::string& text : row->inputs[0].span<const std::string>()) texts->push_back(text + "!");
    Answer answer;
    answer.outputs = Outputs::of({{DType::kString, row->inputs[0].shape, texts->data()}}, texts);
    row->answer(std::move(answer));
  }
  ASSERT_EQ(answers.size(), 1u);
  const TensorView& output = answers[0].outputs->tensors[0];
  EXPECT_EQ(output.shape, (Shape{3, 2}));
  EXPECT_THAT(output.span<const std::string>(), ElementsAre("a0!", "a1!", "b0!", "b1!", "c0!", "c1!"));
}

TEST_F(Splitting, AFaultOfOneRowNamesIt) {
  const auto scheduler = std::make_shared<SplittingScheduler>(below_, 1, 4);
  ASSERT_TRUE(scheduler->submit(request(3)));
  below_->waiting.erase(below_->waiting.begin());
  const JobPtr row = below_->waiting.front();
  Answer answer;
  answer.outputs = Error{Code::kCorrupt, "no picture"};
  answer.refused = true;
  row->answer(std::move(answer));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].outputs.error().message, "row 1: no picture");
  EXPECT_TRUE(answers[0].refused);
}

}  // namespace
}  // namespace serin::serving
