// answer_outcome_test.cc: what an answer says about the version that gave it, and when two answers to one request agree.

#include "router/proxy/answer_outcome.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/runtime/base/protobuf_encoder.h"

namespace serin::router {
namespace {

using rollout::Guard;
using rollout::Outcome;

/// An answer to be made a Half of; `failure`: none came.
struct Answer {
  int status = 200;
  std::string body = "{}";
  std::optional<Code> failure;
};

Half half(const Answer& answer) {
  Half made;
  made.take_head(answer.status, {});
  made.body.append(answer.body);
  if (answer.failure) made.fail({.code = *answer.failure});
  return made;
}

// An answer with one output named `scores`.
Answer scores(const std::string& data, const std::string& shape = "[1,3]", const std::string& name = "scores") {
  return {.body = R"({"model_name":"m","outputs":[{"name":")" + name + R"(","datatype":"FP32","shape":)" + shape + R"(,"data":)" + data +
                  "}]}"};
}

rollout::ShadowPair pair_of(const Answer& stable, const Answer& canary, const Guard& guard = {}, uint64_t random = 0) {
  Half expected = half(stable), got = half(canary);
  return compare(expected, got, guard, random);
}

TEST(OutcomeOf, Statuses) {
  const struct {
    int status;
    Outcome outcome;
  } cases[] = {{200, Outcome::kOk},       {204, Outcome::kOk},       {302, Outcome::kRejected}, {304, Outcome::kRejected},
               {400, Outcome::kRejected}, {401, Outcome::kRejected}, {403, Outcome::kRejected}, {404, Outcome::kRejected},
               {413, Outcome::kRejected}, {422, Outcome::kRejected}, {429, Outcome::kNeutral},  {499, Outcome::kNeutral},
               {500, Outcome::kError},    {502, Outcome::kError},    {503, Outcome::kError},    {504, Outcome::kError},
               {599, Outcome::kError}};
  for (const auto& [status, outcome] : cases) EXPECT_EQ(outcome_of(status), outcome) << status;
}

TEST(OutcomeOf, NoAnswer) {
  EXPECT_EQ(outcome_of(Code::kDeadlineExceeded), Outcome::kDeadline);
  for (const Code code : {Code::kUnavailable, Code::kCorrupt, Code::kTooLarge}) EXPECT_EQ(outcome_of(code), Outcome::kError);
}

TEST(EndingOf, AFailureIsOfTheConnectionOrOfTheRequest) {
  using rollout::Ending;
  EXPECT_EQ(ending_of({.code = Code::kUnavailable}), Ending::kRefused);
  EXPECT_EQ(ending_of({.code = Code::kIo}), Ending::kBroken);
  for (const Code code : {Code::kCorrupt, Code::kTooLarge, Code::kDeadlineExceeded})
    EXPECT_EQ(ending_of({.code = code}), Ending::kAnswered);
  for (const Code code : {Code::kUnavailable, Code::kIo})
    EXPECT_EQ(ending_of({.code = code, .alone = true}), Ending::kAnswered) << "the server's own word about one request";
}

TEST(Compare, AnAnswerLongerThanAnnouncedIsAnError) {
  Half expected = half({}), got = half({});
  got.malformed = true;
  EXPECT_EQ(compare(expected, got, {}, 0).canary, Outcome::kError);
}

TEST(AnswerBody, KnowsWhereBinaryTensorsBegin) {
  net::Headers headers;
  net::Buffer body;
  body.append("{}1234");
  const auto seen = [&] { return *answer_body(headers, body, /*call=*/false); };
  EXPECT_FALSE(seen().json_bytes);
  headers.add("Inference-Header-Content-Length", "2");
  EXPECT_EQ(seen().json_bytes, 2U);
  EXPECT_EQ(seen().bytes, "{}1234");
  headers.set("Inference-Header-Content-Length", "2x");
  EXPECT_FALSE(seen().json_bytes);
}

TEST(AnswerBody, IsNotReadWhereItIsCompressed) {
  net::Headers headers;
  net::Buffer body;
  body.append(std::string_view("\x01\0\0\0\0", 5));
  EXPECT_FALSE(answer_body(headers, body, /*call=*/true));
  EXPECT_TRUE(answer_body(headers, body, /*call=*/false));
  headers.add("Content-Encoding", "Identity");
  EXPECT_TRUE(answer_body(headers, body, /*call=*/false));
  headers.set("Content-Encoding", "gzip");
  EXPECT_FALSE(answer_body(headers, body, /*call=*/false));
}

TEST(BatchOf, IsReadFromTheHeader) {
  net::Headers tagged;
  EXPECT_FALSE(batch_of(tagged));
  tagged.set("x-serin-batch", "00000000000000ff-7/2/8");
  const auto batch = batch_of(tagged);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->i, 2u);
  EXPECT_EQ(batch->n, 8u);
  for (const char* other : {"00000000000000ff-8/2/8", "00000000000000fe-7/2/8"}) {
    tagged.set("x-serin-batch", other);
    EXPECT_NE(batch_of(tagged)->boot_seq, batch->boot_seq) << other;
  }
  tagged.set("x-serin-batch", "nonsense");
  EXPECT_FALSE(batch_of(tagged));
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
  EXPECT_TRUE(pair_of(scores("[1,0,0]"), Answer{.body = "garbage"}).mismatch);
}

TEST(Compare, OnlyTheNamedOutputCounts) {
  const auto two = [](const char* first, const char* second) {
    return Answer{.body = std::string(R"({"outputs":[{"name":"a","datatype":"FP32","shape":[2],"data":)") + first +
                          R"(},{"name":"b","datatype":"FP32","shape":[2],"data":)" + second + "}]}"};
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
  const auto canary_failed = pair_of(good, {.status = 500});
  EXPECT_FALSE(canary_failed.comparable);
  EXPECT_EQ(canary_failed.stable, Outcome::kOk);
  EXPECT_EQ(canary_failed.canary, Outcome::kError);
  EXPECT_EQ(pair_of({.status = 400}, good).stable, Outcome::kRejected);
  EXPECT_EQ(pair_of(good, {.failure = Code::kDeadlineExceeded}).canary, Outcome::kDeadline);
  EXPECT_EQ(pair_of(good, scores("[NaN,0,0]")).canary, Outcome::kError);
  EXPECT_TRUE(pair_of(Answer{.body = "garbage"}, other).mismatch) << "a protocol nobody knows here is compared byte by byte";
  EXPECT_FALSE(pair_of(Answer{.body = "garbage"}, Answer{.body = "garbage"}).mismatch);
}

/// A message of one output with three scores.
Half called(const std::vector<float>& scores, std::string_view grpc_status = "0", bool compressed = false) {
  const std::string raw(reinterpret_cast<const char*>(scores.data()), scores.size() * sizeof(float));
  const test::Encoder output = test::Encoder().bytes(1, "scores").bytes(2, "FP32").bytes(3, "\x01\x03");
  const test::Encoder message = test::Encoder().message(5, output).bytes(6, raw);
  net::Headers trailers;
  trailers.add("grpc-status", grpc_status);
  trailers.add("x-serin-batch", "00000000000000ff-7/2/8");
  std::string prefix;
  net::append_grpc_prefix({.compressed = compressed, .length = static_cast<uint32_t>(message.str().size())}, prefix);
  Half made;
  made.call = true;
  made.take_head(200, {});
  made.take_trailers(trailers);
  made.body.append(prefix + message.str());
  return made;
}

rollout::ShadowPair pair_of(Half stable, Half canary) { return compare(stable, canary, {}, 0); }

TEST(Compare, CallsTensorByTensor) {
  const auto same = pair_of(called({0.1F, 0.7F, 0.2F}), called({0.3F, 0.4F, 0.3F}));
  EXPECT_TRUE(same.comparable && !same.mismatch);
  ASSERT_TRUE(same.difference);
  EXPECT_NEAR(same.difference->absolute, 0.3, 1e-6);
  EXPECT_TRUE(same.stable_batch && same.canary_batch) << "named by the trailers";
  EXPECT_TRUE(pair_of(called({0.1F, 0.7F, 0.2F}), called({0.7F, 0.1F, 0.2F})).mismatch);
  EXPECT_EQ(pair_of(called({0, 1, 0}), called({0, NAN, 0})).canary, Outcome::kError);
}

TEST(Compare, CallsByWhatTheirTrailersSay) {
  EXPECT_EQ(pair_of(called({1, 0, 0}), called({}, "13")).canary, Outcome::kError);
  EXPECT_EQ(pair_of(called({1, 0, 0}), called({}, "4")).canary, Outcome::kDeadline);
  EXPECT_EQ(pair_of(called({1, 0, 0}), called({}, "3")).canary, Outcome::kRejected);
  Half cut_off;
  cut_off.call = true;
  cut_off.take_head(200, {});
  EXPECT_EQ(cut_off.outcome, Outcome::kError) << "it does not say how it ended";
}

TEST(Compare, WhatIsCompressedIsJudgedByItsStatus) {
  for (const bool canary : {false, true}) {
    const auto pair = pair_of(called({1, 0, 0}, "0", !canary), called({0, 1, 0}, "0", canary));
    EXPECT_FALSE(pair.comparable || pair.mismatch);
    EXPECT_EQ(pair.canary, Outcome::kOk);
  }
  EXPECT_EQ(pair_of(called({1, 0, 0}), called({}, "13", true)).canary, Outcome::kError);
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
