// oip_decode_test.cc: what clients send, right and wrong. The P rows are those of the bad-input table (tests/README.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/protocol/oip_rest.h"

namespace serin::protocol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Signature kModel = {"model 'm' version 3",
                          {{"x", DType::kFloat32, {-1, 2}}, {"k", DType::kInt64, {1}}},
                          {{"y", DType::kFloat32, {-1, 2}}, {"z", DType::kBool, {-1}}}};
const Signature kOne = {"model 'one' version 1", {{"x", DType::kFloat32, {-1, 2}}}, {{"y", DType::kFloat32, {-1, 2}}}};

std::string input(std::string_view data, std::string_view shape = "[1,2]", std::string_view datatype = "FP32") {
  return std::string(R"({"inputs":[{"name":"x","datatype":")") + std::string(datatype) + R"(","shape":)" + std::string(shape) +
         R"(,"data":)" + std::string(data) + "}]}";
}

struct Refused {
  std::string message, field;
  Code code = Code::kInternal;
};
Refused refused(std::string body, const Signature& signature = kOne) {
  Refused out;
  const auto request = decode_infer_request(std::move(body), signature, &out.field);
  if (request) return {"was accepted", "", Code::kInternal};
  out.message = request.error().message;
  out.code = request.error().code;
  return out;
}

std::vector<float> floats(std::string body) {
  const auto request = decode_infer_request(std::move(body), kOne, nullptr);
  if (!request) ADD_FAILURE() << request.error().message;
  const auto values = request->inputs[0].span<float>();
  return {values.begin(), values.end()};
}

TEST(OipDecode, FlatAndNestedDataAreTheSame) {
  EXPECT_THAT(floats(input("[1,2.5,-3,4e2]", "[2,2]")), ElementsAre(1, 2.5, -3, 400));
  EXPECT_THAT(floats(input("[[1,2.5],[-3,4e2]]", "[2,2]")), ElementsAre(1, 2.5, -3, 400));
}

TEST(OipDecode, StringsAndAnyNumberOfDimensions) {
  const Signature texts = {"model 't' version 1", {{"x", DType::kString, {}, false}}, {{"y", DType::kString, {}, false}}};
  const auto request =
      decode_infer_request(input(R"([["a","b"],["","\u00e4 long one that is not held in place"]])", "[2,2]", "BYTES"), texts, nullptr);
  ASSERT_TRUE(request) << request.error().message;
  const auto x = request->inputs[0].span<const std::string>();
  EXPECT_THAT(std::vector<std::string>(x.begin(), x.end()), ElementsAre("a", "b", "", "\xc3\xa4 long one that is not held in place"));
  EXPECT_THAT(refused(input("[1]", "[1]", "BYTES"), texts).message, HasSubstr("input 'x': element 0 is 1, which is not a BYTES"));
  EXPECT_THAT(refused(input("[]", "[1,1,1,1,1,1,1,1,1,1,1,1,1]", "BYTES"), texts).message, HasSubstr("too many dimensions"));
}

TEST(OipDecode, InputsComeInTheModelsOrderAndOutputsInTheClients) {
  std::string field;
  const auto request = decode_infer_request(R"({"id":"a","parameters":{"timeout":1500},"outputs":[{"name":"z"},{"name":"y"}],"inputs":[
      {"name":"k","datatype":"INT64","shape":[1],"data":[9007199254740993]},{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]})",
                                            kModel, &field);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(request->inputs[1].span<int64_t>()[0], 9007199254740993);  // beyond what a double holds
  EXPECT_THAT(request->outputs, ElementsAre(1, 0));
  EXPECT_EQ(request->timeout_us, 1500);
  EXPECT_EQ(request->id, "a");
}

TEST(OipDecode, P1_WhatIsNoJsonObjectIsRefused) {
  for (const char* body :
       {"", " ", "{", "nope", "{} trailing", "{}{}", "{\"inputs\":[],}", "{\"inputs\" []}", "\xff\xfe", "{\"inputs\":[\"\xc3\x28\"]}"}) {
    EXPECT_EQ(refused(body).code, Code::kInvalidArgument) << body;
    EXPECT_THAT(refused(body).message, HasSubstr("failed to parse the request JSON buffer")) << body;
  }
  EXPECT_THAT(refused("[]").message, HasSubstr("must be a JSON object, not an array"));
  EXPECT_THAT(refused("7").message, HasSubstr("not a number"));
  EXPECT_THAT(refused("{}").message, HasSubstr("the request has no 'inputs'"));
  EXPECT_THAT(refused(R"({"inputs":[],"inputs":[]})").message, HasSubstr("key 'inputs' is given twice"));
}

TEST(OipDecode, P1_WhatIsNoJsonIsShownWhereItEnds) {
  EXPECT_THAT(refused(input("[NaN,1]")).message, HasSubstr("syntax error at 63, before 'NaN,1]}]}'"));
  EXPECT_THAT(refused("\xef\xbb\xbf{}").message, HasSubstr("syntax error at 0, before byte 0xEF"));
  EXPECT_THAT(refused("{\"inputs\":[").message, HasSubstr("incomplete JSON at 11"));
  EXPECT_THAT(refused("{} trailing").message, HasSubstr("more text after the end of the document at 3, before 'trailing'"));
}

TEST(OipDecode, ShapesThatPromiseMoreThanTheTextHoldsTakeNoMemory) {
  floats(input("[" + std::string(6'000'000, ' ') + "1,2]"));  // too large for the parser that a thread keeps
  EXPECT_THAT(refused(input("[1,2]", "[5000000,2]")).message, HasSubstr("takes 10000000 elements, data has fewer"));
}

TEST(OipDecode, P2_DeepNestingIsRefusedWithoutRecursion) {
  for (const size_t depth : {101, 10'000, 1'000'000}) {
    EXPECT_THAT(refused(std::string(depth, '[') + std::string(depth, ']')).message, HasSubstr("nested deeper than 100 levels")) << depth;
    EXPECT_THAT(refused(input(std::string(depth, '[') + std::string(depth, ']'))).message, HasSubstr("nested deeper than 100 levels"))
        << depth;
  }
}

TEST(OipDecode, P3_NumbersThatDoNotFitNameTheElement) {
  EXPECT_THAT(refused(input("[1,1e39]")).message, HasSubstr("element 1 is 1e+39, which is not an FP32"));
  EXPECT_EQ(refused(input("[1,1e400]")).code, Code::kInvalidArgument);
  EXPECT_EQ(refused(input("[1,NaN]")).code, Code::kInvalidArgument);
  EXPECT_EQ(floats(input("[-0.0,1e-400]"))[1], 0.f);
  const Signature bytes = {"model 'b' version 1", {{"x", DType::kUInt8, {-1}}}, {}};
  EXPECT_THAT(refused(input("[255,256]", "[2]", "UINT8"), bytes).message, HasSubstr("element 1 is 256, which is not a UINT8"));
  EXPECT_THAT(refused(input("[-1]", "[1]", "UINT8"), bytes).message, HasSubstr("element 0 is -1"));
  EXPECT_THAT(refused(input("[1.5]", "[1]", "UINT8"), bytes).message, HasSubstr("element 0 is 1.5"));
  const Signature wide = {"model 'w' version 1", {{"x", DType::kUInt64, {-1}}}, {}};
  EXPECT_TRUE(decode_infer_request(input("[18446744073709551615]", "[1]", "UINT64"), wide, nullptr));
}

TEST(OipDecode, P5_MissingAndMistypedFieldsAreNamed) {
  struct Row {
    const char* body;
    const char* message;
    const char* field;
  };
  const Row rows[] = {
      {R"({"inputs":null})", "'inputs' must be an array, not null", "/inputs"},
      {R"({"inputs":{}})", "'inputs' must be an array, not an object", "/inputs"},
      {R"({"inputs":[7]})", "an input must be an object, not a number", "/inputs/0"},
      {R"({"inputs":[{}]})", "input 0 has no 'name'", "/inputs/0/name"},
      {R"({"inputs":[{"name":null}]})", "input 0 has no 'name'", "/inputs/0/name"},
      {R"({"inputs":[{"name":"x"}]})", "input 'x' has no 'datatype'", "/inputs/0/datatype"},
      {R"({"inputs":[{"name":"x","datatype":7}]})", "input 'x' has no 'datatype'", "/inputs/0/datatype"},
      {R"({"inputs":[{"name":"x","datatype":"FP32"}]})", "input 'x' has no 'shape'", "/inputs/0/shape"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":2}]})", "'shape' must be a list of numbers, not a number", "/inputs/0/shape"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2]}]})", "input 'x' has no 'data'", "/inputs/0/data"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":null}]})", "'data' must be a list, not null", "/inputs/0/data"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":["a","b"]}]})", "element 0 is a string", "/inputs/0/data"},
      {R"({"id":7,"inputs":[]})", "'id' must be a string", "/id"},
      {R"({"parameters":[],"inputs":[]})", "'parameters' must be an object", "/parameters"},
      {R"({"parameters":{"timeout":-1},"inputs":[]})", "not negative", "/parameters/timeout"},
      {R"({"inputs":[]})", "expected 1 inputs but got 0 inputs for model 'one' version 1: input 'x' is missing", "/inputs"},
  };
  for (const Row& row : rows) {
    const Refused got = refused(row.body);
    EXPECT_THAT(got.message, HasSubstr(row.message)) << row.body;
    EXPECT_EQ(got.field, row.field) << row.body;
    EXPECT_EQ(got.code, Code::kInvalidArgument) << row.body;
  }
}

TEST(OipDecode, P6_UnknownAndDuplicateTensorsAreNamed) {
  EXPECT_THAT(refused(R"({"inputs":[{"name":"q"}]})").message,
              HasSubstr("unexpected inference input 'q' for model 'one' version 1; it has 'x'"));
  const std::string x = R"({"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]})";
  EXPECT_THAT(refused(R"({"inputs":[)" + x + "," + x + "]}").message, HasSubstr("input 'x' is given twice"));
  EXPECT_THAT(refused(R"({"outputs":[{"name":"nope"}],"inputs":[)" + x + "]}").message,
              HasSubstr("unexpected inference output 'nope' for model 'one' version 1"));
  EXPECT_THAT(refused(R"({"outputs":[{"name":"y"},{"name":"y"}],"inputs":[)" + x + "]}").message,
              HasSubstr("output 'y' is asked for twice"));
  std::string many = R"({"name":"y"})";
  for (int i = 0; i < 1'000'000; ++i) many += R"(,{"name":"y"})";
  EXPECT_THAT(refused(R"({"outputs":[)" + many + R"(],"inputs":[)" + x + "]}").message, HasSubstr("more than 1024 outputs"));
}

TEST(OipDecode, P7_ShapesThatAreNotTheModelsAreRefused) {
  EXPECT_EQ(refused(input("[1,2]", "[]")).message, "model 'one' version 1: input 'x' expects [-1,2] FP32, the request has []");
  EXPECT_EQ(refused(input("[1,2,3]", "[1,3]")).message, "model 'one' version 1: input 'x' expects [-1,2] FP32, the request has [1,3]");
  EXPECT_THAT(refused(input("[]", "[0,2]")).message, HasSubstr("a dimension is 0"));
  EXPECT_THAT(refused(input("[]", "[-1,2]")).message, HasSubstr("a dimension is negative"));
  EXPECT_THAT(refused(input("[]", "[1.5,2]")).message, HasSubstr("not a whole number"));
  EXPECT_EQ(refused(input("[]", "[4294967296,2]")).code, Code::kTooLarge);
  EXPECT_EQ(refused(input("[]", "[9223372036854775807,2]")).code, Code::kTooLarge);
  EXPECT_THAT(refused(input("[1]", "[1,2]")).message, HasSubstr("shape [1,2] takes 2 elements, data has 1"));
  EXPECT_THAT(refused(input("[1,2,3]", "[1,2]")).message, HasSubstr("shape [1,2] takes 2 elements, data has 3"));
  std::string rank65 = "[1";
  for (int i = 0; i < 64; ++i) rank65 += ",1";
  EXPECT_THAT(refused(input("[1]", rank65 + "]")).message, HasSubstr("expects [-1,2]"));
}

TEST(OipDecode, P7_AShortListDoesNotTakeTheMemoryThatItsShapeClaims) {
  EXPECT_THAT(refused(input("[1]", "[16777216,2]")).message, HasSubstr("data has fewer"));
}

TEST(OipDecode, P9_DatatypesMustBeTheModels) {
  EXPECT_EQ(refused(input("[1,2]", "[1,2]", "INT32")).message,
            "inference input 'x' data-type is 'INT32', but model 'one' version 1 expects 'FP32'");
  EXPECT_THAT(refused(input("[1,2]", "[1,2]", "float")).message, HasSubstr("unknown datatype 'float'"));
  const Signature flags = {"model 'f' version 1", {{"x", DType::kBool, {-1}}}, {}};
  EXPECT_TRUE(decode_infer_request(input("[true,false,1,0]", "[4]", "BOOL"), flags, nullptr));
  EXPECT_THAT(refused(input("[2]", "[1]", "BOOL"), flags).message, HasSubstr("element 0 is 2, which is not a BOOL"));
}

TEST(OipDecode, P10_RaggedDataIsRefused) {
  EXPECT_THAT(refused(input("[[1,2],[3]]", "[2,2]")).message, HasSubstr("a list at depth 2 has 1 elements, shape [2,2] has 2 there"));
  EXPECT_THAT(refused(input("[[1,2],3]", "[2,2]")).message, HasSubstr("nested unevenly"));
  EXPECT_THAT(refused(input("[[[1],[2]]]", "[1,2]")).message, HasSubstr("element 0 is an array"));
  EXPECT_THAT(refused(input("[1,[2]]", "[1,2]")).message, HasSubstr("element 1 is an array"));
}

TEST(OipDecode, BinaryTensorsSayThatTheyAreNotSupportedYet) {
  const Refused got = refused(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]})");
  EXPECT_EQ(got.code, Code::kUnsupported);
  EXPECT_THAT(got.message, HasSubstr("send 'data' as JSON"));
}

}  // namespace
}  // namespace serin::protocol
