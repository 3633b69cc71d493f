// The class of each row of an answer, in every protocol that the router reads.

#include "router/proxy/prediction.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace serin::router {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Prediction::Kind;
using Class = LabelConfig::Class;

Prediction predict(std::string_view body, const LabelConfig& config = {}) { return read_prediction({.bytes = body}, config); }
Prediction predict_binary(const std::string& json, const std::string& tensors, const LabelConfig& config = {}) {
  const std::string body = json + tensors;
  return read_prediction({.bytes = body, .json_bytes = json.size()}, config);
}
std::string answer_of(std::string_view shape, std::string_view data, std::string_view datatype = "FP32") {
  return fmt::format(R"({{"outputs":[{{"name":"scores","datatype":"{}","shape":{},"data":{}}}]}})", datatype, shape, data);
}
auto numbers(auto... classes) { return ElementsAre(code_of(static_cast<double>(classes))...); }
auto texts(auto... classes) { return ElementsAre(code_of(std::string_view(classes))...); }

TEST(ReadPrediction, TheHighestScoreOfEachRow) {
  const Prediction one = predict(answer_of("[1,3]", "[0.1,0.7,0.2]"));
  EXPECT_EQ(one.kind, Kind::kNumbers);
  EXPECT_THAT(one.rows, numbers(1));
  EXPECT_THAT(predict(answer_of("[3]", "[0.1,0.2,0.7]")).rows, numbers(2)) << "without a batch: one row";
  EXPECT_THAT(predict(answer_of("[2,3]", "[0.1,0.7,0.2,9,0,0]")).rows, numbers(1, 0));
  EXPECT_THAT(predict(answer_of("[1,2]", "[0.5,0.5]")).rows, numbers(0)) << "of equal ones the first";
  EXPECT_THAT(predict(R"({"predictions":[[0.1,0.9],[0.8,0.2]]})").rows, numbers(1, 0));
  EXPECT_THAT(predict(R"({"err_no":0,"key":["s"],"value":["[[0.1, 0.9]]"]})").rows, numbers(1));
  EXPECT_THAT(predict(R"({"model_name":"m","model_version":"1","scores":[0.1,0.9]})").rows, numbers(1)) << "Triton's generate";
}

TEST(ReadPrediction, ValuesAndThresholds) {
  const LabelConfig value{.take = Class::kValue}, threshold{.take = Class::kThreshold, .threshold = 0.5};
  EXPECT_THAT(predict(answer_of("[2]", "[3,7]", "INT64"), value).rows, numbers(3, 7));
  EXPECT_THAT(predict(answer_of("[2,1]", "[3.0,-1]"), value).rows, numbers(3, -1));
  EXPECT_THAT(predict(R"({"predictions":[3, 7]})", value).rows, numbers(3, 7));
  EXPECT_THAT(predict(answer_of("[2]", "[true,false]", "BOOL"), value).rows, numbers(1, 0));
  EXPECT_THAT(predict(answer_of("[3,1]", "[0.49,0.5,0.51]"), threshold).rows, numbers(0, 1, 1));
}

TEST(ReadPrediction, ATextIsItsOwnClass) {
  const Prediction two = predict(answer_of("[2]", R"(["cat","d\u006fg"])", "BYTES"));
  EXPECT_EQ(two.kind, Kind::kTexts);
  EXPECT_THAT(two.rows, texts("cat", "dog"));
  EXPECT_THAT(predict(R"({"predictions":["cat"]})").rows, texts("cat"));
  EXPECT_THAT(predict(R"({"predictions":[{"b64":"Y2F0"}]})").rows, texts("Y2F0")) << "as it is written";
  EXPECT_THAT(predict(R"({"results":[[["cat",0.3],["dog",0.7]],[["cat",0.9],["dog",0.1]]]})").rows, texts("dog", "cat"));
  const std::string two_outputs =
      R"({"outputs":[{"name":"other","datatype":"BYTES","shape":[1],"data":["x"]},{"name":"label","datatype":"BYTES","shape":[1],"data":["cat"]}]})";
  EXPECT_THAT(predict(two_outputs, {.output = "label"}).rows, texts("cat"));
  EXPECT_THAT(predict(two_outputs).rows, texts("x")) << "the first one";
  const std::string name_last = R"({"outputs":[{"datatype":"BYTES","shape":[1],"data":["x"],"name":"other"},)"
                                R"({"datatype":"BYTES","shape":[1],"data":["cat"],"name":"label"}]})";
  EXPECT_THAT(predict(name_last, {.output = "label"}).rows, texts("cat"));
  EXPECT_THAT(predict(R"({"err_no":0,"key":["label"],"value":["cat"]})").rows, texts("cat")) << "Paddle's pipeline";
}

TEST(ReadPrediction, BinaryTensors) {
  const std::string head = R"({"outputs":[{"name":"label","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":%}}]})";
  const auto with_size = [&](size_t size) { return std::string(head).replace(head.find('%'), 1, std::to_string(size)); };
  const std::string two("\3\0\0\0cat\3\0\0\0dog", 14);
  EXPECT_THAT(predict_binary(with_size(14), two).rows, texts("cat", "dog"));
  EXPECT_EQ(predict_binary(with_size(13), two.substr(0, 13)).kind, Kind::kUnread) << "cut off";
  const float scores[] = {0.1F, 0.9F};
  const std::string fp32 = R"({"outputs":[{"name":"s","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]})";
  EXPECT_THAT(predict_binary(fp32, std::string(reinterpret_cast<const char*>(scores), 8)).rows, numbers(1));
}

TEST(ReadPrediction, WhatHasNoClassSaysWhy) {
  const LabelConfig value{.take = Class::kValue};
  for (const auto& [body, config, why] : std::vector<std::tuple<std::string, LabelConfig, std::string>>{
           {"<xml/>", {}, "no protocol"},
           {"{}", {}, "no protocol"},
           {answer_of("[1,2]", "[0,1]"), {.output = "logits"}, "no such output"},
           {answer_of("[1,0]", "[]"), {}, "no rows"},
           {answer_of("[2,1]", "[0.1,0.9]"), {}, "needs class: value, or a threshold"},
           {answer_of("[1,2]", "[0.1,0.9]"), value, "needs class: argmax"},
           {answer_of("[1]", "[0.9]"), value, "not whole"},
           {answer_of("[1,2]", R"(["a","b"])", "BYTES"), {}, "several texts a row"},
           {answer_of("[1]", "[\"" + std::string(257, 'x') + "\"]", "BYTES"), {}, "too long for a class"}}) {
    const Prediction prediction = predict(body, config);
    EXPECT_EQ(prediction.kind, Kind::kUnread) << body;
    EXPECT_THAT(std::string(prediction.why), HasSubstr(why)) << body;
  }
  std::string many = "0";
  for (int i = 1; i <= 10'000; ++i) many += ",0";
  EXPECT_THAT(std::string(predict(answer_of("[10001]", "[" + many + "]"), value).why), HasSubstr("more than 10000 rows"));
  EXPECT_EQ(predict(answer_of("[1,2]", "[NaN,1]")).kind, Kind::kFailed);
  EXPECT_EQ(predict(R"({"err_no":5,"key":[],"value":[]})").kind, Kind::kFailed);
}

}  // namespace
}  // namespace serin::router
