// generate_test.cc: what people type, and what comes back. Beside a real Triton: tests/differential.

#include "runtime/protocol/oip/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace serin::protocol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Signature kText = {"model 'm' version 1", {{"text", DType::kString, {-1}}}, {{"y", DType::kFloat32, {-1, 2}}}};
const Signature kTwo = {"model 'two' version 1",
                        {{"image", DType::kFloat32, {-1, 2, 3}}, {"mask", DType::kBool, {-1, -1}}},
                        {{"y", DType::kFloat32, {-1}}, {"z", DType::kFloat32, {-1}}}};

Result<InferRequest> decoded(std::string body, const Signature& signature, std::string* field = nullptr) {
  return decode_generate_request(body, signature, field);
}

struct Refused {
  std::string message, field;
};
Refused refused(std::string body, const Signature& signature = kText) {
  Refused out;
  const auto request = decode_generate_request(body, signature, &out.field);
  out.message = request ? "was accepted" : request.error().message;
  EXPECT_TRUE(request || request.error().code == Code::kCorrupt || request.error().code == Code::kInvalidArgument);
  return out;
}

template <class T>
std::vector<T> values(const Result<InferRequest>& request, size_t input = 0) {
  if (!request) {
    ADD_FAILURE() << request.error().message;
    return {};
  }
  const auto span = request->inputs[input].span<const T>();
  return {span.begin(), span.end()};
}

Shape shape_of(const TensorSpec& spec, const std::string& value) {
  const auto request = decoded(R"({"x":)" + value + "}", {"m", {spec}, {}});
  if (!request) ADD_FAILURE() << request.error().message;
  return request ? request->inputs[0].shape : Shape();
}

TEST(Generate, AFieldThatIsCalledAsAnInputIsThatInput) {
  EXPECT_THAT(values<std::string>(decoded(R"({"text":"hello"})", kText)), ElementsAre("hello"));
  EXPECT_THAT(values<std::string>(decoded(R"({"text":["hello","\u00e4"]})", kText)), ElementsAre("hello", "\xc3\xa4"));
  EXPECT_THAT(values<std::string>(decoded(R"({"parameters":{"text":"there"}})", kText)), ElementsAre("there"));
  const auto two = decoded(R"({"mask":true,"image":[1,2,3,4.5,5,6]})", kTwo);
  EXPECT_THAT(values<float>(two), ElementsAre(1, 2, 3, 4.5, 5, 6));
  EXPECT_THAT(values<bool>(two, 1), ElementsAre(true));
  EXPECT_EQ(two->outputs.size(), 2u) << "all there are";
  EXPECT_TRUE(std::isnan(values<double>(decoded(R"({"x":NaN})", {"m", {{"x", DType::kFloat64, {-1}}}, {}})).at(0)));
  EXPECT_THAT(values<double>(decoded(R"({"x":[100000000000000000000]})", {"m", {{"x", DType::kFloat64, {-1}}}, {}})), ElementsAre(1e20));
}

TEST(Generate, TheModelsNamesGoBeforeTheExtensions) {
  const Signature model = {"m", {{"id", DType::kInt64, {-1}}, {"parameters", DType::kInt64, {-1}}}, {}};
  const auto request = decoded(R"({"id":7,"parameters":[8,9]})", model);
  EXPECT_THAT(values<int64_t>(request), ElementsAre(7));
  EXPECT_THAT(values<int64_t>(request, 1), ElementsAre(8, 9));
  EXPECT_EQ(request->id, "");
}

TEST(Generate, TheNumberOfValuesSaysWhatShapesAreOpen) {
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {-1}}, "[1,2,3]"), (Shape{3}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {-1, -1}}, "[1,2,3]"), (Shape{1, 3}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {-1, -1}}, "1"), (Shape{1, 1}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {-1, 2}}, "[1,2,3,4]"), (Shape{2, 2}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {-1, -1, 2}}, "[1,2,3,4]"), (Shape{1, 2, 2}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {1, 2}}, "[1,2]"), (Shape{1, 2}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {-1, 2}}, "[]"), (Shape{0, 2}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {}}, "1"), (Shape{}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {}}, "[1]"), (Shape{}));
  EXPECT_EQ(shape_of({"x", DType::kFloat32, {}, false}, "[1,2]"), (Shape{2}));
}

TEST(Generate, WhatIsNoInputIsAParameter) {
  const auto request = decoded(R"({"id":"a","text":"x","timeout":1500,"temperature":0.5,"stop":"\n","stream":false,"top_p":NaN,
                                   "parameters":{"priority":2,"sequence_id":"s","id":"its own"}})",
                               kText);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->id, "a");
  EXPECT_EQ(request->timeout_us, 1500);
  EXPECT_EQ(request->priority, 2u);
  EXPECT_EQ(request->sequence.name, "s");
}

TEST(Generate, P1_P4_WhatIsNoRequestIsRefused) {
  for (const char* body : {"", "{", "nope", "{} {}", R"({"text":"a)", "{\"text\":\"\xff\"}"})
    EXPECT_THAT(refused(body).message, HasSubstr("failed to parse")) << body;
  EXPECT_THAT(refused("[]").message, HasSubstr("must be a JSON object, not an array"));
  EXPECT_THAT(refused(R"({"text":)" + std::string(200, '[') + std::string(200, ']') + "}").message,
              HasSubstr("nested deeper than 100 levels"));
  EXPECT_THAT(refused(R"({"x":1e400})", {"m", {{"x", DType::kFloat64, {-1}}}, {}}).message, HasSubstr("/x is 1e400, more than a number"));
}

TEST(Generate, P5_P6_WhatIsWrongIsNamed) {
  EXPECT_THAT(refused("{}").message, HasSubstr("input 'text' is missing"));
  EXPECT_THAT(refused(R"({"txt":"a"})").message, HasSubstr("input 'text' is missing; did you mean it by 'txt', which is a parameter?"));
  const Refused list = refused(R"({"parameters":{"stop":["a"]},"text":"a"})");
  EXPECT_THAT(list.message, HasSubstr("unexpected inference input 'stop' for model 'm' version 1; it has 'text', and a parameter is a "
                                      "text, a number, true or false, not an array"));
  EXPECT_EQ(list.field, "/parameters/stop");
  EXPECT_THAT(refused(R"({"text":"a","x":null})").message, HasSubstr("not null"));
  EXPECT_THAT(refused(R"({"text":"a","parameters":[]})").message, HasSubstr("'parameters' must be an object, not an array"));
  EXPECT_THAT(refused(R"({"text":"a","parameters":{"text":"b"}})").message, HasSubstr("input 'text' is given twice"));
  EXPECT_THAT(refused(R"({"text":"a","parameters":{"parameters":{}}})").message, HasSubstr("unexpected inference input 'parameters'"));
  EXPECT_THAT(refused(R"({"text":"a","timeout":-1})").message, HasSubstr("parameter 'timeout' must be"));
  EXPECT_THAT(refused(R"({"text":"a","timeout":NaN})").message, HasSubstr("parameter 'timeout' must be"));
  EXPECT_THAT(refused(R"({"text":"a","sequence_id":NaN})").message, HasSubstr("parameter 'sequence_id' must be"));
  for (const char* id : {"5", "null", "NaN"})
    EXPECT_THAT(refused(R"({"text":"a","id":)" + std::string(id) + "}").message, HasSubstr("'id' must be a string")) << id;
  EXPECT_THAT(refused(R"({"text":"a","id":"a","id":"b"})").message, HasSubstr("'id' is given twice"));
  EXPECT_THAT(refused(R"({"text":"a","id":")" + std::string(2000, 'x') + "\"}").message, HasSubstr("longer than 1024 bytes"));
}

TEST(Generate, P7_P9_P10_ValuesThatDoNotFit) {
  const Refused odd = refused(R"({"image":[1,2,3,4],"mask":[]})", kTwo);
  EXPECT_THAT(odd.message, HasSubstr("input 'image' expects [-1,2,3] FP32, the request has 4 values: they fill no such shape"));
  EXPECT_EQ(odd.field, "/image");
  EXPECT_THAT(refused(R"({"image":1,"mask":[]})", kTwo).message, HasSubstr("the request has 1 value:"));
  EXPECT_THAT(refused(R"({"x":[1,2,3,4]})", {"m", {{"x", DType::kFloat32, {1, 2}}}, {}}).message, HasSubstr("fill no such shape"));
  EXPECT_THAT(refused(R"({"x":[]})", {"m", {{"x", DType::kFloat32, {0, -1}}}, {}}).message, HasSubstr("fill no such shape"));
  EXPECT_THAT(refused(R"({"text":[["a"]]})").message, HasSubstr("input 'text': generate takes a value or a flat list of values"));
  EXPECT_THAT(refused(R"({"text":["a",["b"]]})").message, HasSubstr("element 1 is an array, which is not a BYTES"));
  EXPECT_THAT(refused(R"({"text":5})").message, HasSubstr("element 0 is 5, which is not a BYTES"));
  EXPECT_THAT(refused(R"({"text":NaN})").message, HasSubstr("element 0 is NaN or infinite, which is not a BYTES"));
  EXPECT_THAT(refused(R"({"text":{"b64":"AA=="}})").message, HasSubstr("element 0 is an object, which is not a BYTES"));
  EXPECT_THAT(refused(R"({"x":null})", {"m", {{"x", DType::kInt8, {-1}}}, {}}).message,
              HasSubstr("element 0 is null, which is not an INT8"));
  EXPECT_THAT(refused(R"({"x":[1,200]})", {"m", {{"x", DType::kInt8, {-1}}}, {}}).message,
              HasSubstr("element 1 is 200, which is not an INT8"));
}

TEST(Generate, AnAnswerIsFlat) {
  float four[] = {0.5f, -1, NAN, 1e20f};
  int64_t one[] = {7};
  std::string texts[] = {"a\"b\n"};
  const NamedTensor outputs[] = {{"y", {DType::kFloat32, {2, 2}, four}},
                                 {"n", {DType::kInt64, {1, 1}, one}},
                                 {"t", {DType::kString, {1}, texts}},
                                 {"none", {DType::kFloat32, {0, 2}, four}}};
  EXPECT_EQ(encode_generate_response({"m", "3", "", outputs}),
            R"({"model_name":"m","model_version":"3","y":[0.5,-1.0,NaN,1e+20],"n":7,"t":"a\"b\u000a","none":[]})");
  EXPECT_EQ(encode_generate_response({"m", "3", "i", std::span(outputs).first(0)}, "memory"),
            R"({"model_name":"m","model_version":"3","id":"i"})");
  const NamedTensor reserved[] = {{"model_name", {DType::kInt64, {1}, one}}, {"id", {DType::kInt64, {1}, one}}};
  EXPECT_EQ(encode_generate_response({"m", "3", "", reserved}), R"({"model_name":"m","model_version":"3","id":7})");
  EXPECT_EQ(encode_generate_response({"m", "3", "i", reserved}), R"({"model_name":"m","model_version":"3","id":"i"})");
  EXPECT_EQ(as_event("{}"), "data: {}\n\n");
}

}  // namespace
}  // namespace serin::protocol
