// Answers of every protocol, as their servers write them, read back as tensors.

#include "runtime/protocol/answers/answers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>

namespace serin::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Answers : public ::testing::Test {
 protected:
  Reading read(std::string body, const Wanted& wanted = {}, std::optional<size_t> json_bytes = std::nullopt) {
    body_ = std::move(body);  // names are views of the reader's memory, but bytes of binary tensors are not
    return reader_.read({.bytes = body_, .json_bytes = json_bytes}, wanted);
  }
  /// All outputs of an answer that is read without complaint.
  std::span<const AnswerOutput> outputs(std::string body, const Wanted& wanted = {}, std::optional<size_t> json_bytes = std::nullopt) {
    EXPECT_EQ(read(body, wanted, json_bytes), Reading::kOutputs) << body;
    return reader_.outputs();
  }
  std::vector<double> values(std::string body, const Wanted& wanted = {}, std::optional<size_t> json_bytes = std::nullopt) {
    EXPECT_EQ(read(body, wanted, json_bytes), Reading::kOutputs) << body;
    const AnswerOutput* output = reader_.wanted();
    return output == nullptr ? std::vector<double>{-12345} : std::vector<double>(output->values.begin(), output->values.end());
  }

  AnswerReader reader_;
  std::string body_;
};

std::string oip(std::string_view outputs) { return fmt::format(R"({{"model_name":"m","outputs":[{}],"model_version":"1"}})", outputs); }

TEST_F(Answers, OpenInferenceAsJson) {
  const std::string body = oip(R"({"name":"a","datatype":"FP32","shape":[1,2],"data":[0.5,-1e3]},)"
                               R"({"name":"t","datatype":"BYTES","shape":[1],"data":["x"]},)"
                               R"({"name":"b","datatype":"BOOL","shape":[2],"data":[true,false]})");
  const auto all = outputs(body);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[0].datatype, "FP32");
  EXPECT_EQ(all[0].shape, (Shape{1, 2}));
  EXPECT_NE(all[1].texts, 0U);
  EXPECT_THAT(values(body), ElementsAre(0.5, -1000));
  EXPECT_THAT(values(body, {.output = "b"}), ElementsAre(1, 0));
  EXPECT_THAT(values(body, {.output = "t"}), IsEmpty());
  EXPECT_THAT(values(body, {.output = "nowhere"}), ElementsAre(-12345)) << "not there";
  EXPECT_THAT(values(body, {.values = Wanted::Values::kNone}), IsEmpty());
}

TEST_F(Answers, TextsAreKeptWhereTheyAreAskedFor) {
  const auto strings = [&](std::string_view body, std::string_view output = {}) {
    EXPECT_EQ(read(std::string(body), {.output = output, .strings = true}), Reading::kOutputs) << body;
    const auto texts = reader_.wanted()->strings;
    return std::vector<std::string>(texts.begin(), texts.end());
  };
  const std::string body =
      oip(R"({"name":"t","datatype":"BYTES","shape":[2],"data":["x\n","y"]},{"name":"u","datatype":"BYTES","shape":[1],"data":["z"]})");
  EXPECT_THAT(strings(body), ElementsAre("x\n", "y"));
  EXPECT_THAT(strings(body, "u"), ElementsAre("z"));
  EXPECT_THAT(strings(R"({"predictions":[{"a":"x","b":1},{"a":"y","b":2}]})", "a"), ElementsAre("x", "y"));
  EXPECT_THAT(strings(R"({"outputs":{"b":[1,2],"a":["x","y"]}})", "a"), ElementsAre("x", "y"));
  EXPECT_THAT(strings(R"({"results":[[["cat",0.7],["dog",0.3]]]})"), ElementsAre("cat", "dog"));
  EXPECT_THAT(strings(R"({"model_name":"m","model_version":"1","text_output":"x"})"), ElementsAre("x"));
  EXPECT_THAT(strings(oip(R"({"name":"a","datatype":"FP32","shape":[1],"data":[1]})")), IsEmpty());
  EXPECT_EQ(read(body), Reading::kOutputs);
  EXPECT_THAT(reader_.wanted()->strings, IsEmpty()) << "not asked for";
}

TEST_F(Answers, FlatOnesOfGenerate) {
  const std::string body = R"({"scores":[0.5,-1e3],"id":"7","label":3,"text_output":"x","model_name":"m","model_version":"1"})";
  const auto all = outputs(body);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].shape, (Shape{2}));
  EXPECT_EQ(all[1].shape, Shape());
  EXPECT_NE(all[2].texts, 0U);
  EXPECT_THAT(values(body), ElementsAre(0.5, -1000));
  EXPECT_THAT(values(body, {.output = "label"}), ElementsAre(3));
  EXPECT_EQ(read(R"({"model_name":"m","model_version":"1","scores":[0.5,NaN]})"), Reading::kFailed);
  EXPECT_EQ(read(R"({"model_name":"m","model_version":"1","scores":{"a":1}})"), Reading::kForeign);
  EXPECT_EQ(read(R"({"model_name":"m","model_version":"1","id":"7"})"), Reading::kForeign) << "it has no output";
  EXPECT_EQ(read(R"({"model_name":"m","scores":[0.5]})"), Reading::kForeign) << "it might be anything";
}

TEST_F(Answers, KeysComeInAnyOrderAndDataMayBeNested) {
  const std::string body = oip(R"({"data":[[1,2],[3,4]],"parameters":{"x":1},"shape":[2,2],"datatype":"INT64","name":"a"},)"
                               R"({"data":[5],"shape":[1],"name":"b","datatype":"INT8"})");
  EXPECT_THAT(values(body, {.output = "a"}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values(body, {.output = "b"}), ElementsAre(5));
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{2, 2}));
}

TEST_F(Answers, OneRowIsReadWhereOneIsAskedFor) {
  const auto row = [&](std::string_view body, uint64_t random) {
    return values(std::string(body), {.values = Wanted::Values::kRow, .random = random});
  };
  const std::string flat = oip(R"({"name":"a","datatype":"FP32","shape":[3,2],"data":[1,2,3,4,5,6]})");
  EXPECT_THAT(row(flat, 0), ElementsAre(1, 2));
  EXPECT_THAT(row(flat, 2), ElementsAre(5, 6));
  EXPECT_THAT(row(flat, 4), ElementsAre(3, 4));
  const std::string data_first = oip(R"({"data":[1,2,3,4,5,6],"name":"a","datatype":"FP32","shape":[3,2]})");
  EXPECT_THAT(row(data_first, 2), ElementsAre(5, 6));
  EXPECT_THAT(row(R"({"predictions": [[1, 2], [3, 4]]})", 1), ElementsAre(3, 4));
  EXPECT_THAT(row(oip(R"({"name":"a","datatype":"FP32","shape":[3],"data":[1,2,3]})"), 7), ElementsAre(1, 2, 3));
  EXPECT_THAT(row(oip(R"({"name":"a","datatype":"FP32","shape":[0,2],"data":[]})"), 7), IsEmpty());
}

TEST_F(Answers, NaNAndInfinitiesAreFoundWhereverTheyStand) {
  for (const char* token : {"NaN", "-NaN", "Infinity", "-Infinity"}) {
    EXPECT_EQ(read(oip(fmt::format(R"({{"name":"a","datatype":"FP32","shape":[2],"data":[0.5,{}]}})", token))), Reading::kFailed) << token;
    const std::string second = oip(fmt::format(
        R"({{"name":"a","datatype":"FP32","shape":[1],"data":[1]}},{{"name":"b","datatype":"FP32","shape":[1],"data":[{}]}})", token));
    for (const auto wanted : {Wanted::Values::kNone, Wanted::Values::kRow, Wanted::Values::kAll})
      EXPECT_EQ(read(second, {.values = wanted}), Reading::kFailed) << "in an output that nobody asks for";
    EXPECT_EQ(read(fmt::format(R"({{"predictions": [[{}]]}})", token)), Reading::kFailed);
    EXPECT_EQ(read(fmt::format(R"({{"outputs": {{"a": [1], "b": [[2], [{}]]}}}})", token)), Reading::kFailed);
    EXPECT_EQ(read(fmt::format(R"({{"outputs":[{{"tensor":[{{"float_data":[{}],"shape":[1],"name":"s"}}]}}]}})", token)), Reading::kFailed);
  }
  EXPECT_EQ(read(R"({"err_no":0,"key":["s"],"value":["[0.5, nan]"]})"), Reading::kFailed);
  EXPECT_EQ(read(oip(R"({"name":"NaN","datatype":"BYTES","shape":[2],"data":["Infinity","NaN"]})")), Reading::kOutputs);
  EXPECT_EQ(read("NaN is no protocol"), Reading::kForeign);
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

TEST_F(Answers, OpenInferenceWithBinaryTensors) {
  const std::string json = R"({"outputs":[{"name":"a","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}},)"
                           R"({"name":"j","datatype":"INT64","shape":[1],"data":[7]},)"
                           R"({"name":"h","datatype":"FP16","shape":[1,2],"parameters":{"binary_data_size":4}},)"
                           R"({"name":"b","datatype":"BF16","shape":[1],"parameters":{"binary_data_size":2}},)"
                           R"({"name":"s","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}},)"
                           R"({"name":"i","datatype":"INT8","shape":[3,1],"parameters":{"binary_data_size":3}}]})";
  const std::string tail = bytes_of<float>({1.5F, -2}) + bytes_of<uint16_t>({0x3c00, 0xc000}) + bytes_of<uint16_t>({0x3fc0}) +
                           std::string("\1\0\0\0x", 5) + bytes_of<int8_t>({-1, 0, 127});
  const auto of = [&](std::string_view name, Wanted::Values which = Wanted::Values::kAll) {
    return values(json + tail, {.output = name, .values = which, .random = 2}, json.size());
  };
  EXPECT_THAT(outputs(json + tail, {}, json.size()), SizeIs(6));
  EXPECT_THAT(of(""), ElementsAre(1.5, -2));
  EXPECT_THAT(of("j"), ElementsAre(7));
  EXPECT_THAT(of("h"), ElementsAre(1, -2));
  EXPECT_THAT(of("b"), ElementsAre(1.5));
  EXPECT_THAT(of("s"), IsEmpty());
  EXPECT_THAT(of("i"), ElementsAre(-1, 0, 127));
  EXPECT_THAT(of("i", Wanted::Values::kRow), ElementsAre(127));
}

TEST_F(Answers, P11ContradictionsOfBinaryTensorsAreNoAnswer) {
  const auto output = [](const char* datatype, const char* shape, const char* size) {
    return fmt::format(R"({{"outputs":[{{"name":"a","datatype":"{}","shape":{},"parameters":{{"binary_data_size":{}}}}}]}})", datatype,
                       shape, size);
  };
  const std::string four(4, '\0');
  for (const std::string& json : {output("FP32", "[2]", "4"), output("FP32", "[1]", "8"), output("FP32", "[1]", "0"),
                                  output("FP32", "[1]", "-4"), output("FP33", "[1]", "4"), output("FP32", "[4611686018427387905]", "4"),
                                  output("FP32", "[-1]", "4"), output("FP32", "[1]", "\"4\"")})
    EXPECT_EQ(read(json + four, {}, json.size()), Reading::kForeign) << json;
  const std::string good = output("FP32", "[1]", "4");
  EXPECT_EQ(read(good + four, {}, good.size()), Reading::kOutputs);
  EXPECT_EQ(read(good + four + "x", {}, good.size()), Reading::kForeign) << "a byte of nobody's";
  EXPECT_EQ(read("{}", {}, 3), Reading::kForeign) << "the JSON is longer than the body";
  EXPECT_EQ(read(good + bytes_of<uint32_t>({0x7fc00000}), {}, good.size()), Reading::kFailed) << "NaN";
}

// Bodies as in TensorFlow Serving's documentation of its REST API.
TEST_F(Answers, TensorFlowServingByRows) {
  EXPECT_THAT(values(R"({"predictions": [[0.1, 0.9], [0.8, 0.2]]})"), ElementsAre(0.1, 0.9, 0.8, 0.2));
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{2, 2}));
  EXPECT_THAT(values("{\n    \"predictions\": [2.5, 3.0, 4.5\n    ]\n}"), ElementsAre(2.5, 3, 4.5));
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{3}));

  const char* named = R"({"predictions": [{"scores": [0.1, 0.9], "class": 1}, {"scores": [0.7, 0.3], "class": 0}]})";
  EXPECT_THAT(values(named), ElementsAre(0.1, 0.9, 0.7, 0.3));
  ASSERT_THAT(reader_.outputs(), SizeIs(2));
  EXPECT_EQ(reader_.outputs()[0].name, "scores");
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{2, 2}));
  EXPECT_EQ(reader_.outputs()[1].shape, (Shape{2}));
  EXPECT_THAT(values(named, {.output = "class"}), ElementsAre(1, 0));
  EXPECT_THAT(values(R"({"predictions": ["a", "b"]})"), IsEmpty());
  EXPECT_NE(reader_.wanted()->texts, 0U);
}

TEST_F(Answers, TensorFlowServingByColumns) {
  EXPECT_THAT(values(R"({"outputs": [[1, 2, 3]]})"), ElementsAre(1, 2, 3));
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{1, 3}));
  const char* named = R"({"outputs": {"scores": [[0.5]], "text_bytes": [{"b64": "eA=="}], "level": 3}})";
  EXPECT_THAT(values(named), ElementsAre(0.5));
  ASSERT_THAT(reader_.outputs(), SizeIs(3));
  EXPECT_EQ(reader_.outputs()[0].name, "scores");
  EXPECT_EQ(reader_.outputs()[1].datatype, "BYTES");
  EXPECT_THAT(values(named, {.output = "level"}), ElementsAre(3));
}

TEST_F(Answers, TensorFlowServingClassifiesAndRegresses) {
  EXPECT_THAT(values(R"({"results": [[["cat", 0.7], ["dog", 0.3]], [["cat", 0.1], ["dog", 0.9]]]})"), ElementsAre(0.7, 0.3, 0.1, 0.9));
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{2, 2}));
  const uint64_t labels = reader_.outputs()[0].texts;
  EXPECT_EQ(outputs(R"({"result": [[["cat", 0.7], ["cow", 0.3]], [["cat", 0.1], ["dog", 0.9]]]})").size(), 1U);
  EXPECT_NE(reader_.outputs()[0].texts, labels) << "other labels";
  EXPECT_THAT(values(R"({"results": [0.25, -3]})"), ElementsAre(0.25, -3));
  for (const char* body :
       {R"({"results": [[["cat"]]]})", R"({"results": [[["cat", 1, 2]]]})", R"({"results": [[[1, "cat"]]]})", R"({"results": 5})"})
    EXPECT_EQ(read(body), Reading::kForeign) << body;
}

// As its C++ server prints the message: the data before the name, an empty list for every other type.
TEST_F(Answers, PaddleServing) {
  const char* two =
      R"({"outputs":[{"tensor":[{"int64_data":[],"float_data":[0.25,0.75],"elem_type":1,"shape":[1,2],"lod":[],"name":"s","alias_name":"scores"},)"
      R"({"int64_data":[7],"elem_type":0,"shape":[1],"name":"t","alias_name":"top"}],"engine_name":"g"}],"profile_time":[],"err_no":0})";
  EXPECT_THAT(values(two), ElementsAre(0.25, 0.75));
  ASSERT_THAT(reader_.outputs(), SizeIs(2));
  EXPECT_EQ(reader_.outputs()[0].name, "scores");
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{1, 2}));
  EXPECT_THAT(values(two, {.output = "top"}), ElementsAre(7));
  EXPECT_NE(outputs(R"({"outputs":[{"tensor":[{"data":["a","b"],"elem_type":20,"shape":[2],"name":"t"}]}]})")[0].texts, 0U);
  EXPECT_NE(outputs(R"({"outputs":[{"tensor":[{"tensor_content":"AAE=","elem_type":7,"shape":[2],"name":"t"}]}]})")[0].texts, 0U);
  EXPECT_EQ(read(R"({"err_no":5000,"err_msg":"lookup failed","key":[],"value":[]})"), Reading::kFailed) << "an error with status 200";
}

TEST_F(Answers, PaddleServingsPipeline) {
  const char* body = R"({"err_no":0,"err_msg":"","key":["scores","text"],"value":["[[0.25, 0.75]]","hello"],"tensors":[]})";
  EXPECT_THAT(values(body), ElementsAre(0.25, 0.75));
  ASSERT_THAT(reader_.outputs(), SizeIs(2));
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{1, 2}));
  EXPECT_EQ(reader_.outputs()[1].datatype, "BYTES");
  EXPECT_THAT(values(R"({"err_no":0,"value":["[[0.25 0.75]\n [1.   0.  ]]"],"key":["y"]})"), ElementsAre(0.25, 0.75, 1, 0))
      << "as NumPy prints it";
  EXPECT_THAT(values(R"({"err_no":0,"key":["price"],"value":["18.901152"]})"), ElementsAre(18.901152));
  for (const char* text : {"['Nancy', 'Inf']", "Nancy", "[[1, 2], [3]]", "[1", "1]", "[1] and more", "", "[]"})
    EXPECT_NE(outputs(fmt::format(R"({{"err_no":0,"key":["res"],"value":["{}"]}})", text))[0].texts, 0U) << text;
}

TEST_F(Answers, P10RaggedAndForeignListsAreNoAnswer) {
  for (const char* body : {R"({"predictions": [[1], [1, 2]]})",
                           R"({"predictions": [1, [2]]})",
                           R"({"predictions": [[1], 2]})",
                           R"({"predictions": [[], [1]]})",
                           R"({"predictions": 5})",
                           R"({"predictions": [null]})",
                           R"({"predictions": [{"a": 1}, {"b": 1}]})",
                           R"({"predictions": [{"a": 1}, 1]})",
                           R"({"predictions": [{"a": 1}, {"a": 1, "b": 2}]})",
                           R"({"predictions": [{"a": 1, "b": 2}, {"a": 1}]})",
                           R"({"predictions": [{"a": [1]}, {"a": [1, 2]}]})",
                           R"({"outputs":[{"tensor":[{"float_data":[1],"shape":[2],"name":"s"}]}]})",
                           R"({"outputs":[{"tensor":[{"float_data":[[1]],"name":"s"}]}]})",
                           R"({"outputs":[{"tensor":[{"float_data":[1]}]}]})",
                           R"({"key":["a"],"value":[]})",
                           R"({"key":["a"],"value":[1]})",
                           "{}",
                           "[]",
                           "",
                           "null",
                           "7",
                           "\xff",
                           R"({"outputs":[{"name":"a"}]})",
                           R"({"outputs":7})",
                           R"({"outputs":[{}]})",
                           R"({"outputs":[{"name":"y","datatype":"FP32","shape":[3],"data":[1]}]})",
                           R"({"outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":["1"]}]})",
                           R"({"outputs":[{"name":"y","datatype":"FP32","shape":[2,1],"data":[[1,2]]}]})",
                           R"({"outputs":[1,{"name":"y"}]})",
                           R"({"predictions":[1],"outputs":[1]})",
                           R"({"predictions":[1)",
                           R"({"predictions":[1]]})",
                           R"({"err_no":"x"})",
                           "<html>"})
    EXPECT_EQ(read(body), Reading::kForeign) << body;
  std::string deep = R"({"predictions": )" + std::string(50, '[') + "1" + std::string(50, ']') + "}";
  EXPECT_EQ(read(deep), Reading::kForeign);
  EXPECT_EQ(read(std::string(1'000'000, '[')), Reading::kForeign);
}

TEST_F(Answers, APaddedBodyIsReadWhereItLies) {
  std::string text = R"({"predictions": [[1, 2]]})";
  const size_t size = text.size();
  text.append(kPadding, '#');
  ASSERT_EQ(reader_.read({.bytes = std::string_view(text).substr(0, size), .padded = true}, {}), Reading::kOutputs);
  EXPECT_THAT(reader_.wanted()->values, ElementsAre(1, 2));
}

}  // namespace
}  // namespace serin::protocol
