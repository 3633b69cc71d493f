// oip_encode_test.cc: what clients read back.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/protocol/answers/answers.h"
#include "runtime/protocol/oip/oip_rest.h"

namespace serin::protocol {
namespace {

OipBody encoded(std::string_view model, std::string_view version, std::string_view id, const std::vector<NamedTensor>& outputs) {
  return encode_infer_response({model, version, id, outputs});
}

TEST(OipEncode, AResponseReadsBackToTheSameNumbers) {
  float y[] = {-0.0f, -1e-38f, 16777217.f, 3.4028235e38f};
  int64_t k[] = {std::numeric_limits<int64_t>::min(), -1};
  bool z[] = {true, false};
  const std::string text =
      encoded("m\"x", "3", "id1", {{"y", {DType::kFloat32, {2, 2}, y}}, {"k", {DType::kInt64, {2}, k}}, {"z", {DType::kBool, {2}, z}}})
          .bytes;
  EXPECT_EQ(
      text,
      R"({"model_name":"m\"x","model_version":"3","id":"id1","outputs":[{"name":"y","datatype":"FP32","shape":[2,2],"data":[-0.0,-1e-38,16777216.0,3.4028235e+38]},)"
      R"({"name":"k","datatype":"INT64","shape":[2],"data":[-9223372036854775808,-1]},{"name":"z","datatype":"BOOL","shape":[2],"data":[true,false]}]})");
  AnswerReader reader;
  ASSERT_EQ(reader.read({text}, {}), Reading::kOutputs);
  ASSERT_EQ(reader.outputs().size(), 3u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(static_cast<float>(reader.wanted()->values[i]), y[i]);
}

TEST(OipEncode, StringsThatAreNotUtf8DoNotSpoilTheAnswer) {
  std::string y[] = {"plain \"quoted\"", "\xc3\xa4", "\xff\x01"};
  const std::string text = encoded("m", "1", "", {{"y", {DType::kString, {3}, y}}}).bytes;
  EXPECT_NE(text.find(R"("datatype":"BYTES","shape":[3],"data":["plain \"quoted\"",")"
                      "\xc3\xa4\",\"\xc3\xbf\\u0001\"]"),
            std::string::npos)
      << text;
}

TEST(OipEncode, BytesFollowTheJson) {
  float y[] = {1, 2};
  std::string t[] = {"ab", ""};
  uint16_t h[] = {0x3e00, 0x7c00};
  const OipBody body = encoded(
      "m", "1", "", {{"y", {DType::kFloat32, {2}, y}, true}, {"h", {DType::kFloat16, {2}, h}}, {"t", {DType::kString, {2}, t}, true}});
  ASSERT_TRUE(body.json_bytes);
  EXPECT_EQ(
      body.bytes.substr(0, *body.json_bytes),
      R"({"model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}},)"
      R"({"name":"h","datatype":"FP16","shape":[2],"data":[1.5,Infinity]},{"name":"t","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":10}}]})");
  EXPECT_EQ(body.bytes.substr(*body.json_bytes), std::string("\0\0\x80\x3f\0\0\0\x40\2\0\0\0ab\0\0\0\0", 18));
  EXPECT_FALSE(encoded("m", "1", "", {{"y", {DType::kFloat32, {2}, y}}}).json_bytes);
}

TEST(OipEncode, NonFiniteAnswersAreBareTokensAndAreSeen) {
  float y[] = {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  const std::string text = encoded("NaN", "1", "", {{"y", {DType::kFloat32, {3}, y}}}).bytes;
  EXPECT_NE(text.find("[NaN,Infinity,-Infinity]"), std::string::npos);
  EXPECT_EQ(AnswerReader().read({text}, {}), Reading::kFailed);
}

TEST(OipEncode, MetadataIsWhatClientsExpect) {
  const std::string versions[] = {"1", "2"};
  const TensorSpec x[] = {{"pixels", DType::kFloat32, {-1, 64}}};
  EXPECT_EQ(
      encode_model_metadata("digits", versions, "onnx_serin", x, x),
      R"({"name":"digits","versions":["1","2"],"platform":"onnx_serin","inputs":[{"name":"pixels","datatype":"FP32","shape":[-1,64]}],"outputs":[{"name":"pixels","datatype":"FP32","shape":[-1,64]}]})");
  const std::string described =
      encode_model_metadata("digits", versions, "onnx_serin", x, x, {{"precision", "bf16"}, {"why", "\"faster\""}});
  EXPECT_TRUE(described.ends_with(R"(,"parameters":{"precision":"bf16","why":"\"faster\""}})")) << described;
}

TEST(OipEncode, ARequestIsOneThatTheDecoderTakes) {
  float x[] = {1, 2};
  const NamedTensor input[] = {{"x", {DType::kFloat32, {1, 2}, x}}};
  const Signature signature = {"m", {{"x", DType::kFloat32, {-1, 2}}}, {}};
  EXPECT_TRUE(decode_infer_request(encode_infer_request(input), signature, nullptr));
}

}  // namespace
}  // namespace serin::protocol
