// Answers of every protocol, as their servers write them, read back as tensors.

#include "runtime/protocol/answers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace serin::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<OutputValues> decode(const std::string& body, std::optional<size_t> json_bytes = std::nullopt) {
  auto outputs = decode_answer(body, json_bytes);
  EXPECT_TRUE(outputs) << outputs.error().message;
  return outputs ? *outputs : std::vector<OutputValues>();
}

std::string complaint(const std::string& body, std::optional<size_t> json_bytes = std::nullopt) {
  const auto outputs = decode_answer(body, json_bytes);
  return outputs ? "(accepted)" : outputs.error().message;
}

TEST(Answers, OpenInferenceAsJson) {
  const auto outputs = decode(
      R"({"model_name":"m","outputs":[{"name":"a","datatype":"FP32","shape":[1,2],"data":[0.5,NaN]},{"name":"t","datatype":"BYTES","shape":[1],"data":["x"]}]})");
  ASSERT_THAT(outputs, SizeIs(2));
  EXPECT_EQ(outputs[0].name, "a");
  EXPECT_EQ(outputs[0].shape, (Shape{1, 2}));
  EXPECT_FALSE(outputs[0].finite);
  EXPECT_THAT(outputs[1].values, IsEmpty());
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

TEST(Answers, OpenInferenceWithBinaryTensors) {
  const std::string json = R"({"outputs":[{"name":"a","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}},)"
                           R"({"name":"j","datatype":"INT64","shape":[1],"data":[7]},)"
                           R"({"name":"h","datatype":"FP16","shape":[1,2],"parameters":{"binary_data_size":4}},)"
                           R"({"name":"b","datatype":"BF16","shape":[1],"parameters":{"binary_data_size":2}},)"
                           R"({"name":"s","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}},)"
                           R"({"name":"i","datatype":"INT8","shape":[3],"parameters":{"binary_data_size":3}}]})";
  const std::string tail = bytes_of<float>({1.5F, -2}) + bytes_of<uint16_t>({0x3c00, 0xc000}) + bytes_of<uint16_t>({0x3fc0}) +
                           std::string("\1\0\0\0x", 5) + bytes_of<int8_t>({-1, 0, 127});
  const auto outputs = decode(json + tail, json.size());
  ASSERT_THAT(outputs, SizeIs(6));
  EXPECT_THAT(outputs[0].values, ElementsAre(1.5, -2));
  EXPECT_THAT(outputs[1].values, ElementsAre(7));
  EXPECT_THAT(outputs[2].values, ElementsAre(1, -2));
  EXPECT_THAT(outputs[3].values, ElementsAre(1.5));
  EXPECT_THAT(outputs[4].values, IsEmpty());
  EXPECT_THAT(outputs[5].values, ElementsAre(-1, 0, 127));
  EXPECT_TRUE(outputs[0].finite);
}

TEST(Answers, P11ContradictionsOfBinaryTensorsAreNoAnswer) {
  const auto output = [](const char* datatype, const char* shape, const char* size) {
    return fmt::format(R"({{"outputs":[{{"name":"a","datatype":"{}","shape":{},"parameters":{{"binary_data_size":{}}}}}]}})", datatype,
                       shape, size);
  };
  const std::string four(4, '\0');
  for (const auto& [json, words] : {std::pair{output("FP32", "[2]", "4"), "4 bytes"},
                                    {output("FP32", "[1]", "8"), "more bytes than there are"},
                                    {output("FP32", "[1]", "0"), "0 bytes"},
                                    {output("FP33", "[1]", "4"), "datatype"},
                                    {output("FP32", "[4611686018427387905]", "4"), "bytes"},
                                    {output("FP32", "[-1]", "4"), "shape"}})
    EXPECT_THAT(complaint(json + four, json.size()), HasSubstr(words)) << json;
  EXPECT_THAT(complaint(output("FP32", "[1]", "4") + four + "x", output("FP32", "[1]", "4").size()), HasSubstr("belong to no output"));
  EXPECT_THAT(complaint("{}", 3), HasSubstr("longer"));
  const std::string nan = output("FP32", "[1]", "4");
  EXPECT_FALSE(decode(nan + bytes_of<uint32_t>({0x7fc00000}), nan.size())[0].finite);
}

TEST(Answers, TensorFlowServingByRows) {
  const auto plain = decode(R"({"predictions": [[0.1, 0.9], [0.8, 0.2]]})");
  ASSERT_THAT(plain, SizeIs(1));
  EXPECT_EQ(plain[0].shape, (Shape{2, 2}));
  EXPECT_THAT(plain[0].values, ElementsAre(0.1, 0.9, 0.8, 0.2));
  EXPECT_EQ(decode(R"({"predictions": [1, 2, 3]})")[0].shape, (Shape{3}));

  const auto named = decode(R"({"predictions": [{"scores": [0.1, 0.9], "class": 1}, {"scores": [0.7, 0.3], "class": 0}]})");
  ASSERT_THAT(named, SizeIs(2));
  EXPECT_EQ(named[0].name, "scores");
  EXPECT_EQ(named[0].shape, (Shape{2, 2}));
  EXPECT_EQ(named[1].shape, (Shape{2}));
  EXPECT_THAT(named[1].values, ElementsAre(1, 0));
  EXPECT_FALSE(decode(R"({"predictions": [[NaN]]})")[0].finite);
  EXPECT_THAT(decode(R"({"predictions": ["a", "b"]})")[0].values, IsEmpty());
}

TEST(Answers, TensorFlowServingByColumns) {
  EXPECT_EQ(decode(R"({"outputs": [[1, 2, 3]]})")[0].shape, (Shape{1, 3}));
  const auto named = decode(R"({"outputs": {"scores": [[0.5]], "text": [{"b64": "eA=="}]}})");
  ASSERT_THAT(named, SizeIs(2));
  EXPECT_EQ(named[0].name, "scores");
  EXPECT_EQ(named[1].datatype, "BYTES");
}

TEST(Answers, PaddleServing) {
  const auto tensors = decode(
      R"({"outputs":[{"tensor":[{"float_data":[0.25,0.75],"elem_type":1,"shape":[1,2],"name":"s","alias_name":"scores"}],"engine_name":"g"}],"err_no":0})");
  ASSERT_THAT(tensors, SizeIs(1));
  EXPECT_EQ(tensors[0].name, "scores");
  EXPECT_EQ(tensors[0].shape, (Shape{1, 2}));
  EXPECT_THAT(tensors[0].values, ElementsAre(0.25, 0.75));

  const auto pipeline = decode(R"({"err_no":0,"err_msg":"","key":["scores","text"],"value":["[[0.25, 0.75]]","hello"],"tensors":[]})");
  ASSERT_THAT(pipeline, SizeIs(2));
  EXPECT_EQ(pipeline[0].shape, (Shape{1, 2}));
  EXPECT_THAT(pipeline[0].values, ElementsAre(0.25, 0.75));
  EXPECT_THAT(pipeline[1].values, IsEmpty());

  const auto failed = decode_answer(R"({"err_no":5000,"err_msg":"lookup failed","key":[],"value":[]})");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kInternal) << "an error with status 200";
}

TEST(Answers, P10RaggedAndForeignListsAreNoAnswer) {
  for (const char* body :
       {R"({"predictions": [[1], [1, 2]]})", R"({"predictions": [1, [2]]})", R"({"predictions": [[1], 2]})", R"({"predictions": 5})",
        R"({"predictions": [{"a": 1}, {"b": 1}]})", R"({"predictions": [{"a": [1]}, {"a": [1, 2]}]})",
        R"({"outputs":[{"tensor":[{"float_data":[1],"shape":[2],"name":"s"}]}]})",
        R"({"outputs":[{"tensor":[{"float_data":["x"],"name":"s"}]}]})", R"({"key":["a"],"value":[]})", "{}", "[]", "", "null", "\xff",
        R"({"outputs":[{"name":"a"}]})"})
    EXPECT_FALSE(decode_answer(body)) << body;
  std::string deep = R"({"predictions": )" + std::string(50, '[') + "1" + std::string(50, ']') + "}";
  EXPECT_THAT(complaint(deep), HasSubstr("nested too deeply"));
  EXPECT_FALSE(decode_answer(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace serin::protocol
