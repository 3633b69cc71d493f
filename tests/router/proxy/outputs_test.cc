// What the bodies of answers tell the judge, in every protocol it meets.

#include "router/proxy/outputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace serin::router {
namespace {

using rollout::Guard;

std::string oip(const std::string& data, const std::string& shape = "[1,3]", const std::string& name = "scores") {
  return fmt::format(R"({{"model_name":"m","outputs":[{{"name":"{}","datatype":"FP32","shape":{},"data":{}}}]}})", name, shape, data);
}

Comparison compare(const std::string& stable, const std::string& canary, const Guard& guard = {}) {
  return compare_answers({stable, {}}, {canary, {}}, guard, 0);
}

TEST(CompareAnswers, MeasuresHowFarTheyLieApart) {
  const auto result = compare(oip("[0.1,0.7,0.2]"), oip("[0.1,0.6,0.3]"));
  EXPECT_TRUE(result.comparable);
  EXPECT_FALSE(result.mismatch) << "the same label";
  ASSERT_TRUE(result.difference);
  EXPECT_FALSE(result.difference->label);
  EXPECT_NEAR(result.difference->absolute, 0.1, 1e-12);
  EXPECT_NEAR(result.difference->relative, 0.5, 1e-12);
  EXPECT_NEAR(result.difference->score, -0.1, 1e-12);
  EXPECT_TRUE(compare(oip("[0.1,0.7,0.2]"), oip("[0.1,0.2,0.7]")).mismatch);
  const Guard values{.compare = Guard::Compare::kValues, .rtol = 1e-3, .atol = 1e-5};
  EXPECT_TRUE(compare(oip("[0.1,0.7,0.2]"), oip("[0.1,0.6,0.3]"), values).mismatch);
  EXPECT_FALSE(compare(oip("[0.1,0.7,0.2]"), oip("[0.10001,0.7,0.2]"), values).mismatch);
}

TEST(CompareAnswers, AcrossTensorFlowPaddleAndBinary) {
  EXPECT_FALSE(compare(R"({"predictions":[[0.1,0.9]]})", R"({"predictions":[[0.2,0.8]]})").mismatch);
  EXPECT_TRUE(compare(R"({"predictions":[[0.1,0.9]]})", R"({"predictions":[[0.9,0.1]]})").mismatch);
  EXPECT_TRUE(
      compare(R"({"err_no":0,"key":["s"],"value":["[[0.1, 0.9]]"]})", R"({"err_no":0,"key":["s"],"value":["[[0.9, 0.1]]"]})").mismatch);
  const std::string head = R"({"outputs":[{"name":"s","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]})";
  const auto binary = [&](float a, float b) {
    return head + std::string(reinterpret_cast<const char*>(&a), 4) + std::string(reinterpret_cast<const char*>(&b), 4);
  };
  const std::string one = binary(0.1F, 0.9F), other = binary(0.9F, 0.1F);
  EXPECT_TRUE(compare_answers({one, head.size()}, {other, head.size()}, {}, 0).mismatch);
  EXPECT_FALSE(compare_answers({one, head.size()}, {one, head.size()}, {}, 0).mismatch);
}

TEST(CompareAnswers, OfAnUnknownProtocolByteByByte) {
  EXPECT_FALSE(compare("<xml>3</xml>", "<xml>3</xml>").mismatch);
  const auto other = compare("<xml>3</xml>", "<xml>4</xml>");
  EXPECT_TRUE(other.comparable && other.mismatch);
  EXPECT_FALSE(other.difference);
}

TEST(CompareAnswers, AnotherShapeOrNoAnswerAtAllIsAMismatch) {
  EXPECT_TRUE(compare(oip("[1,2,3]"), oip("[1,2]", "[1,2]")).mismatch);
  EXPECT_TRUE(compare(oip("[1,2,3]"), oip("[1,2,3]", "[3,1]")).mismatch);
  EXPECT_TRUE(compare(oip("[1,2,3]"), "oops").mismatch);
  EXPECT_TRUE(compare(oip("[1,2,3]"), oip("[1,2,3]", "[1,3]", "logits"), {.output = "scores"}).mismatch);
  EXPECT_FALSE(compare(oip("[]", "[0]"), oip("[]", "[0]")).comparable) << "nothing to compare";
}

TEST(CompareAnswers, OfTextsAndOfClassesByTheirWords) {
  const auto pipeline = [](const std::string& text) { return fmt::format(R"({{"err_no":0,"key":["res"],"value":["{}"]}})", text); };
  EXPECT_FALSE(compare(pipeline("['read', 'so']"), pipeline("['read', 'so']")).mismatch);
  const auto other = compare(pipeline("['read', 'so']"), pipeline("['reed', 'so']"));
  EXPECT_TRUE(other.comparable && other.mismatch);
  const auto classes = [](const std::string& word) { return fmt::format(R"({{"results": [[["{}", 0.7], ["dog", 0.3]]]}})", word); };
  EXPECT_FALSE(compare(classes("cat"), classes("cat")).mismatch);
  EXPECT_TRUE(compare(classes("cat"), classes("cow")).mismatch);
}

TEST(CompareAnswers, SaysHowAlikeTheComparedRowsAre) {
  const std::string rows = oip("[0.62,0.31,0.07,0.21,0.74,0.05]", "[2,3]"), other = oip("[0.62,0.31,0.07,0.74,0.21,0.05]", "[2,3]");
  const auto first = compare_answers({rows, {}}, {other, {}}, {}, 0), second = compare_answers({rows, {}}, {other, {}}, {}, 1);
  EXPECT_TRUE(first.likeness.same == true && !first.likeness.far && !first.mismatch) << "row by row, as the label";
  EXPECT_TRUE(second.likeness.same == false && second.likeness.far && second.mismatch);
  const auto without = compare(oip("[0.62,0.31,0.07]"), "oops");
  EXPECT_TRUE(without.likeness.far && !without.likeness.same);
}

// What one build of a detector answers and another does not: a box more at the threshold, rows that change places. And texts have no distance.
TEST(CompareAnswers, OtherRowsAndTextsAreNotFar) {
  const auto rows = [](const char* shape, const char* data) {
    return fmt::format(R"({{"model_name":"m","outputs":[{{"name":"y","datatype":"FP32","shape":{},"data":{}}}]}})", shape, data);
  };
  const std::string two = rows("[2,3]", "[0.62,0.31,0.07,0.1,0.2,0.7]");
  EXPECT_TRUE(compare(two, rows("[1,3]", "[0.62,0.31,0.07]")).mismatch);
  EXPECT_FALSE(compare(two, rows("[1,3]", "[0.62,0.31,0.07]")).likeness.far);
  EXPECT_TRUE(compare(two, rows("[2,2]", "[0.62,0.31,0.07,0.1]")).likeness.far) << "another model";
  EXPECT_FALSE(compare(two, rows("[2,3]", "[0.1,0.2,0.7,0.62,0.31,0.07]")).likeness.far) << "the same rows in another order";
  EXPECT_TRUE(compare(two, rows("[2,3]", "[0.1,0.8,0.1,0.1,0.8,0.1]")).likeness.far);
  const auto text = [](const char* word) { return fmt::format(R"({{"err_no":0,"key":["res"],"value":["{}"]}})", word); };
  EXPECT_FALSE(compare(text("a text"), text("a text")).likeness.far);
  EXPECT_FALSE(compare(text("a text"), text("another")).likeness.far);
}

TEST(CompareAnswers, OfNumbersOnlyWhereNobodyAsked) {
  const auto numbers = [](const std::string& stable, const std::string& canary) {
    return compare_answers({stable, {}}, {canary, {}}, {}, 0, {.numbers_only = true});
  };
  EXPECT_FALSE(numbers("<xml>3</xml>", "<xml>4</xml>").comparable) << "they may hold a time";
  EXPECT_FALSE(numbers(R"({"err_no":0,"key":["res"],"value":["a text"]})", R"({"err_no":0,"key":["res"],"value":["another"]})").comparable);
  EXPECT_TRUE(numbers(oip("[0.1,0.7,0.2]"), oip("[0.1,0.2,0.7]")).mismatch);
  EXPECT_TRUE(numbers(oip("[0.1,0.7,0.2]"), "oops").mismatch);
}

TEST(CompareAnswers, OfFailedInferencesComparesNothing) {
  const auto stable = compare(oip("[0.1,NaN,0.2]"), oip("[0.1,0.7,0.2]")), canary = compare(oip("[0.1,0.7,0.2]"), oip("[0.1,NaN,0.2]"));
  EXPECT_TRUE(stable.stable_failed && !stable.canary_failed && !stable.comparable);
  EXPECT_TRUE(canary.canary_failed && !canary.stable_failed && !canary.comparable);
  EXPECT_TRUE(compare(oip("[0.1,0.7,0.2]"), oip("[0.1,NaN,0.2]"), {.compare = Guard::Compare::kOff}).canary_failed);
}

TEST(LookAt, ReadsOnlyWhatTheGuardAsksFor) {
  const std::string body = oip("[0.1,0.7,0.2]");
  const Look no_drift = look_at({body, {}}, {.drift = 0}, 0, 0);
  EXPECT_NE(no_drift.output.form, 0U);
  EXPECT_FALSE(no_drift.output.label);
  EXPECT_EQ(look_at({body, {}}, {.compare = Guard::Compare::kOff}, 0, 0).output.form, 0U);
  EXPECT_TRUE(look_at({oip("[0.1,NaN,0.2]"), {}}, {.compare = Guard::Compare::kOff}, 0, 0).failed);
}

TEST(LookAt, ReadsFormLabelAndScore) {
  const std::string body = oip("[0.1,0.7,0.2]");
  const Look look = look_at({body, {}}, {}, 123, 0);
  EXPECT_FALSE(look.failed);
  EXPECT_EQ(look.output.weight_ppm, 123U);
  EXPECT_EQ(look.output.label, 1U);
  EXPECT_DOUBLE_EQ(look.output.score, 0.7);
  EXPECT_NE(look.output.form, 0U);
  const auto form = [](const std::string& text) { return look_at({text, {}}, {}, 0, 0).output.form; };
  EXPECT_EQ(form(oip("[9,8,7,6,5,4]", "[2,3]")), look.output.form) << "whatever the batch";
  EXPECT_NE(form(oip("[1,2]", "[1,2]")), look.output.form);
  EXPECT_NE(form(oip("[1,2,3]", "[1,3]", "logits")), look.output.form);
  EXPECT_EQ(form("<xml/>"), form("<html>502"));
  EXPECT_NE(form("<xml/>"), 0U) << "or a canary that answers in no protocol would not be seen beside a stable that does";
}

TEST(LookAt, FindsWhatIsNoNumberInEveryProtocol) {
  for (const std::string& body : {oip("[0.1,NaN,0.2]"), oip("[Infinity,0,0]"), std::string(R"({"predictions":[[-Infinity]]})"),
                                  std::string(R"({"err_no":8,"key":[],"value":[]})")}) {
    EXPECT_TRUE(look_at({body, {}}, {}, 0, 0).failed) << body;
    EXPECT_TRUE(says_failed({body, {}})) << body;
  }
  for (const std::string& body :
       {oip("[0.1,0,0.2]"), std::string(R"({"outputs":[{"name":"NaN","datatype":"BYTES","shape":[1],"data":["Infinity"]}]})"),
        std::string("NaN is no protocol"), std::string()}) {
    EXPECT_FALSE(look_at({body, {}}, {}, 0, 0).failed) << body;
    EXPECT_FALSE(says_failed({body, {}})) << body;
  }
}

TEST(LookAt, IsShortWhereTheAnswerIsLong) {
  std::string data = "[1";
  for (int i = 1; i < 60'000; ++i) data += ",2";
  const std::string body = oip(data + "]", "[1,60000]");
  EXPECT_EQ(look_at({body, {}}, {}, 0, 0).output.form, 0U);
  EXPECT_FALSE(look_at({body, {}}, {}, 0, 0).failed);
  const std::string bad = oip(data + ",NaN]", "[1,60001]");
  EXPECT_TRUE(look_at({bad, {}}, {}, 0, 0).failed);
}

}  // namespace
}  // namespace serin::router
