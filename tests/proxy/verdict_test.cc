// verdict_test.cc: what an answer says about the version that gave it, and when two answers to one request agree.

#include "router/proxy/verdict.h"

#include <gtest/gtest.h>

#include <string>

namespace serin::router {
namespace {

using rollout::Guard;
using rollout::Outcome;
using Answer = Result<net::Response>;

net::Response response(int status, std::string body = "{}") {
  net::Response made;
  made.status = status;
  made.body = std::move(body);
  return made;
}

// An answer with one output named `scores`.
Answer scores(std::string data, std::string shape = "[1,3]", std::string name = "scores") {
  return response(
      200, R"({"model_name":"m","outputs":[{"name":")" + name + R"(","datatype":"FP32","shape":)" + shape + R"(,"data":)" + data + "}]}");
}

rollout::ShadowPair pair_of(const Answer& stable, const Answer& canary, const Guard& guard = {}, uint64_t random = 0) {
  return compare(stable, canary, guard, random);
}

TEST(Classify, Statuses) {
  const struct {
    int status;
    Outcome outcome;
  } cases[] = {{200, Outcome::kOk},       {204, Outcome::kOk},      {304, Outcome::kNeutral},  {400, Outcome::kRejected},
               {401, Outcome::kNeutral},  {403, Outcome::kNeutral}, {404, Outcome::kRejected}, {413, Outcome::kRejected},
               {422, Outcome::kRejected}, {429, Outcome::kNeutral}, {499, Outcome::kNeutral},  {500, Outcome::kError},
               {502, Outcome::kError},    {503, Outcome::kError},   {504, Outcome::kError},    {599, Outcome::kError}};
  for (const auto& [status, outcome] : cases) EXPECT_EQ(classify(response(status), true), outcome) << status;
}

TEST(Classify, NoAnswer) {
  EXPECT_EQ(classify(Error{Code::kDeadlineExceeded, "too late"}, true), Outcome::kDeadline);
  EXPECT_EQ(classify(Error{Code::kUnavailable, "connection refused"}, true), Outcome::kError);
  EXPECT_EQ(classify(Error{Code::kCorrupt, "not HTTP"}, true), Outcome::kError);
  EXPECT_EQ(classify(Error{Code::kTooLarge, "body"}, true), Outcome::kError);
}

TEST(Classify, AnswersThatAreNoNumbersAreErrorsWhereBodiesAreRead) {
  for (const char* data : {"[1,NaN,2]", "[Infinity,0,0]", "[0,-Infinity,0]"}) {
    EXPECT_EQ(classify(scores(data), true), Outcome::kError) << data;
    EXPECT_EQ(classify(scores(data), false), Outcome::kOk) << data;
  }
}

TEST(Classify, TheWordNaNInATextIsNoNaN) {
  const Answer text =
      response(200, R"({"model_name":"NaNny","outputs":[{"name":"t","datatype":"BYTES","shape":[1],"data":["to Infinity"]}]})");
  EXPECT_EQ(classify(text, true), Outcome::kOk);
}

TEST(BatchOf, IsReadFromTheHeader) {
  net::Response tagged = response(200);
  EXPECT_FALSE(batch_of(tagged.headers));
  tagged.headers.set("x-serin-batch", "00000000000000ff-7/2/8");
  const auto batch = batch_of(tagged.headers);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->i, 2u);
  EXPECT_EQ(batch->n, 8u);
  for (const char* other : {"00000000000000ff-8/2/8", "00000000000000fe-7/2/8"}) {
    tagged.headers.set("x-serin-batch", other);
    EXPECT_NE(batch_of(tagged.headers)->boot_seq, batch->boot_seq) << other;
  }
  tagged.headers.set("x-serin-batch", "nonsense");
  EXPECT_FALSE(batch_of(tagged.headers));
}

TEST(Compare, TheSameLabelIsNoMismatchHoweverTheScoresDiffer) {
  const auto pair = pair_of(scores("[0.1,0.7,0.2]"), scores("[0.3,0.4,0.3]"));
  EXPECT_TRUE(pair.comparable);
  EXPECT_FALSE(pair.mismatch);
}

TEST(Compare, AnotherLabelIsAMismatch) { EXPECT_TRUE(pair_of(scores("[0.1,0.7,0.2]"), scores("[0.5,0.3,0.2]")).mismatch); }

TEST(Compare, OneRowOfARequestIsOneTrial) {
  const Answer stable = scores("[1,0,0,1]", "[2,2]"), canary = scores("[1,0,1,0]", "[2,2]");
  EXPECT_FALSE(pair_of(stable, canary, {}, /*random=*/4).mismatch);
  EXPECT_TRUE(pair_of(stable, canary, {}, /*random=*/7).mismatch);
}

TEST(Compare, ValuesWithinToleranceAgree) {
  Guard guard;
  guard.compare = Guard::Compare::kValues;
  guard.rtol = 0.01;
  guard.atol = 0.001;
  EXPECT_FALSE(pair_of(scores("[1,2,0]"), scores("[1.01,1.98,0.0009]"), guard).mismatch);
  EXPECT_TRUE(pair_of(scores("[1,2,0]"), scores("[1.02,2,0]"), guard).mismatch);
  EXPECT_TRUE(pair_of(scores("[1,2,0]"), scores("[1,2,0.002]"), guard).mismatch);
}

TEST(Compare, AnotherShapeOrAMissingOutputIsAMismatch) {
  EXPECT_TRUE(pair_of(scores("[1,0]", "[1,2]"), scores("[1,0,0]")).mismatch);
  EXPECT_TRUE(pair_of(scores("[1,0,0,0]", "[4]"), scores("[1,0,0,0]", "[1,4]")).mismatch);
  EXPECT_TRUE(pair_of(scores("[1,0,0]"), scores("[1,0,0]", "[1,3]", "logits")).mismatch);
  EXPECT_TRUE(pair_of(scores("[1,0,0]"), response(200, "garbage")).mismatch);
}

TEST(Compare, OnlyTheNamedOutputCounts) {
  const auto two = [](const char* first, const char* second) {
    return Answer(response(200, std::string(R"({"outputs":[{"name":"a","datatype":"FP32","shape":[2],"data":)") + first +
                                    R"(},{"name":"b","datatype":"FP32","shape":[2],"data":)" + second + "}]}"));
  };
  Guard guard;
  guard.output = "b";
  EXPECT_FALSE(pair_of(two("[1,0]", "[1,0]"), two("[0,1]", "[1,0]"), guard).mismatch);
  EXPECT_TRUE(pair_of(two("[1,0]", "[1,0]"), two("[1,0]", "[0,1]"), guard).mismatch);
  guard.output = "c";
  EXPECT_FALSE(pair_of(two("[1,0]", "[1,0]"), two("[0,1]", "[0,1]"), guard).comparable);
}

TEST(Compare, WithoutTwoGoodAnswersThereIsNothingToCompare) {
  const Answer good = scores("[1,0,0]"), other = scores("[0,1,0]");
  const auto canary_failed = pair_of(good, response(500));
  EXPECT_FALSE(canary_failed.comparable);
  EXPECT_EQ(canary_failed.stable, Outcome::kOk);
  EXPECT_EQ(canary_failed.canary, Outcome::kError);
  EXPECT_EQ(pair_of(response(400), good).stable, Outcome::kRejected);
  EXPECT_EQ(pair_of(good, Error{Code::kDeadlineExceeded, "late"}).canary, Outcome::kDeadline);
  EXPECT_EQ(pair_of(good, scores("[NaN,0,0]")).canary, Outcome::kError);
  EXPECT_TRUE(pair_of(response(200, "garbage"), other).mismatch) << "a protocol nobody knows here is compared byte by byte";
  EXPECT_FALSE(pair_of(response(200, "garbage"), response(200, "garbage")).mismatch);
}

TEST(Compare, SwitchedOffItOnlyReportsOutcomes) {
  Guard guard;
  guard.compare = Guard::Compare::kOff;
  const auto pair = pair_of(scores("[1,0,0]"), scores("[0,1,0]"), guard);
  EXPECT_FALSE(pair.comparable);
  EXPECT_EQ(pair.canary, Outcome::kOk);
}

}  // namespace
}  // namespace serin::router
