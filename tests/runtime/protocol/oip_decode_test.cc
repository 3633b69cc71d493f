// oip_decode_test.cc: what clients send, right and wrong. The P rows are those of the bad-input table (tests/README.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/protocol/oip/oip_rest.h"

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

Result<InferRequest> decoded(std::string body, const Signature& signature, std::string* field = nullptr) {
  return decode_infer_request({std::move(body), {}}, signature, field);
}

struct Refused {
  std::string message, field;
  Code code = Code::kInternal;
};
Refused refused(std::string body, const Signature& signature = kOne, std::optional<size_t> json_bytes = {}) {
  Refused out;
  const auto request = decode_infer_request({std::move(body), json_bytes}, signature, &out.field);
  if (request) return {"was accepted", "", Code::kInternal};
  out.message = request.error().message;
  out.code = request.error().code;
  return out;
}

std::vector<float> floats(std::string body) {
  const auto request = decoded(std::move(body), kOne);
  if (!request) ADD_FAILURE() << request.error().message;
  const auto values = request->inputs[0].span<float>();
  return {values.begin(), values.end()};
}

TEST(OipDecode, FlatAndNestedDataAreTheSame) {
  EXPECT_THAT(floats(input("[1,2.5,-3,4e2]", "[2,2]")), ElementsAre(1, 2.5, -3, 400));
  EXPECT_THAT(floats(input("[[1,2.5],[-3,4e2]]", "[2,2]")), ElementsAre(1, 2.5, -3, 400));
}

TEST(OipDecode, P13_LargeInputsShareMemoryForAsLongAsTheyLive) {
  constexpr size_t kEach = 4096, kAll = 16'384;
  const RequestLimits limits{.memory = std::make_shared<MemoryBudget>(kEach, kAll)};
  const auto decode = [&](size_t floats) {
    return decode_infer_request({std::string(floats * 4, '\0'), 0}, {"model 'm' version 1", {{"x", DType::kFloat32, {-1}}}, {}}, nullptr,
                                limits);
  };
  auto small = decode(1024);
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(limits.memory->left(), kAll);
  auto large = decode(4096);
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(limits.memory->left(), kEach);
  const auto second = decode(4096);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kOverloaded);
  const auto never = decode(6000);
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::kTooLarge);
  EXPECT_THAT(never.error().message, HasSubstr("24000 bytes, over the limit of 20480"));
  InferRequest moved = std::move(*large);
  EXPECT_EQ(limits.memory->left(), kEach) << "whoever has the memory has its share";
  moved.clear();
  EXPECT_EQ(limits.memory->left(), kAll);
}

TEST(OipDecode, P13_TextsCountWithWhatTheyHold) {
  constexpr size_t kAll = 100'000;
  const RequestLimits limits{.memory = std::make_shared<MemoryBudget>(1000, kAll)};
  const Signature texts = {"model 't' version 1", {{"x", DType::kString, {-1}}}, {}};
  const auto request =
      decode_infer_request({input("[\"" + std::string(20'000, 'x') + "\",\"\"]", "[2]", "BYTES"), {}}, texts, nullptr, limits);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_LE(limits.memory->left(), kAll - 19'000);
}

TEST(OipDecode, StringsAndAnyNumberOfDimensions) {
  const Signature texts = {"model 't' version 1", {{"x", DType::kString, {}, false}}, {{"y", DType::kString, {}, false}}};
  const auto request = decoded(input(R"([["a","b"],["","\u00e4 long one that is not held in place"]])", "[2,2]", "BYTES"), texts);
  ASSERT_TRUE(request) << request.error().message;
  const auto x = request->inputs[0].span<const std::string>();
  EXPECT_THAT(std::vector<std::string>(x.begin(), x.end()), ElementsAre("a", "b", "", "\xc3\xa4 long one that is not held in place"));
  EXPECT_THAT(refused(input("[1]", "[1]", "BYTES"), texts).message, HasSubstr("input 'x': element 0 is 1, which is not a BYTES"));
  EXPECT_THAT(refused(input("[]", "[1,1,1,1,1,1,1,1,1,1,1,1,1]", "BYTES"), texts).message, HasSubstr("too many dimensions"));
}

TEST(OipDecode, InputsComeInTheModelsOrderAndOutputsInTheClients) {
  std::string field;
  const auto request = decoded(R"({"id":"a","parameters":{"timeout":1500},"outputs":[{"name":"z"},{"name":"y"}],"inputs":[
      {"name":"k","datatype":"INT64","shape":[1],"data":[9007199254740993]},{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]})",
                               kModel, &field);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(request->inputs[1].span<int64_t>()[0], 9007199254740993);  // beyond what a double holds
  EXPECT_THAT(request->outputs, ElementsAre(testing::Field(&WantedOutput::index, 1), testing::Field(&WantedOutput::index, 0)));
  EXPECT_EQ(request->timeout_us, 1500);
  EXPECT_EQ(request->id, "a");
}

TEST(OipDecode, ParametersOfTheRequest) {
  const auto with = [](const std::string& parameters) {
    std::string field;
    return *decoded(R"({"parameters":{)" + parameters + R"(},"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]})", kOne,
                    &field);
  };
  EXPECT_EQ(with("\"priority\":18446744073709551615").priority, UINT64_MAX);
  EXPECT_FALSE(with("\"sequence_start\":true").sequence.any()) << "of no sequence";
  const SequencePlace first = with(R"("sequence_id":7,"sequence_start":true,"own":{"x":[null]})").sequence;
  EXPECT_TRUE(first.any() && first.number == 7 && first.start && !first.end);
  const SequencePlace last = with(R"("sequence_id":"seven","sequence_end":true)").sequence;
  EXPECT_TRUE(last.any() && last.name == "seven" && last.number == 0 && !last.start && last.end);
}

TEST(OipDecode, P1_WhatIsNoJsonObjectIsRefused) {
  for (const char* body :
       {"", " ", "{", "nope", "{} trailing", "{}{}", "{\"inputs\":[],}", "{\"inputs\" []}", "\xff\xfe", "{\"inputs\":[\"\xc3\x28\"]}"}) {
    EXPECT_EQ(refused(body).code, Code::kCorrupt) << body;
    EXPECT_THAT(refused(body).message, HasSubstr("failed to parse the request JSON buffer")) << body;
  }
  EXPECT_THAT(refused("[]").message, HasSubstr("must be a JSON object, not an array"));
  EXPECT_THAT(refused("7").message, HasSubstr("not a number"));
  EXPECT_THAT(refused("{}").message, HasSubstr("the request has no 'inputs'"));
  EXPECT_THAT(refused(R"({"inputs":[],"inputs":[]})").message, HasSubstr("key 'inputs' is given twice"));
}

TEST(OipDecode, P1_WhatIsNoJsonIsShownWhereItEnds) {
  EXPECT_THAT(refused(input("[nan,1]")).message, HasSubstr("syntax error at 63, before 'nan,1]}]}'"));
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
  EXPECT_THAT(refused(input("[1,1e400]")).message,
              HasSubstr("input 'x': /inputs/0/data/1 is 1e400, more than a number of any datatype, at 65"));
  EXPECT_EQ(floats(input("[-0.0,1e-400]"))[1], 0.f);
  EXPECT_TRUE(std::isnan(floats(input("[NaN,-Infinity]"))[0]) && std::isinf(floats(input("[[NaN, -Infinity ]]"))[1]));
  EXPECT_EQ(refused(input("[1,2],\"id\":NaN")).code, Code::kCorrupt);  // a word is a number, and only in lists
  EXPECT_EQ(refused(input("[1,[NaN]]")).code, Code::kCorrupt);
  EXPECT_THAT(refused(input("[1,Infinity]", "[1,2]", "INT8"), {"model 'b' version 1", {{"x", DType::kInt8, {-1, 2}}}, {}}).message,
              HasSubstr("element 1 is NaN or infinite, which is not an INT8"));
  const Signature bytes = {"model 'b' version 1", {{"x", DType::kUInt8, {-1}}}, {}};
  EXPECT_THAT(refused(input("[255,256]", "[2]", "UINT8"), bytes).message, HasSubstr("element 1 is 256, which is not a UINT8"));
  EXPECT_THAT(refused(input("[-1]", "[1]", "UINT8"), bytes).message, HasSubstr("element 0 is -1"));
  EXPECT_THAT(refused(input("[1.5]", "[1]", "UINT8"), bytes).message, HasSubstr("element 0 is 1.5"));
  const Signature wide = {"model 'w' version 1", {{"x", DType::kUInt64, {-1}}}, {}};
  EXPECT_TRUE(decoded(input("[18446744073709551615]", "[1]", "UINT64"), wide));
}

TEST(OipDecode, P3_NumbersThatNothingHoldsAreNamedWhereverTheyStand) {
  const auto said = [](const std::string& body) { return refused(body).message; };
  EXPECT_EQ(refused(input("[1,1e400]")).code, Code::kCorrupt);
  EXPECT_THAT(said(input("[[1,2],[3,-1e400]]", "[2,2]")), HasSubstr("input 'x': /inputs/0/data/1/1 is -1e400, more"));
  EXPECT_THAT(said(R"({"inputs":[{"name":"a"},{"data":[0.5,{},[1E+309]],"na\u006de":"x\ty"}]})"),
              HasSubstr("input 'x\ty': /inputs/1/data/2/0 is 1E+309,"));
  EXPECT_THAT(said(input("[1,2],\"id\":1.8e308")), HasSubstr("input 'x': /inputs/0/id is 1.8e308,"));
  EXPECT_THAT(said(R"({"parameters":{"a":{"b":1e400}},"inputs":[]})"),
              HasSubstr("buffer: /parameters/a/b is 1e400, more than a number of any datatype, at 24"));
  EXPECT_THAT(said("[1e400]"), HasSubstr("buffer: /0 is 1e400, "));
  EXPECT_THAT(said("1e400"), HasSubstr("buffer: the document is 1e400, "));
  EXPECT_THAT(said(input("[NaN,1" + std::string(400, '0') + "]")), HasSubstr("input 'x': /inputs/0/data/1 is 1000000000000000..., "));
  EXPECT_THAT(said(input("[1e400,]")), HasSubstr("syntax error at ")) << "it is no JSON at all";
  const std::string many = "0.25,";  // long enough to be cut out and read on the way
  std::string list;
  for (int i = 0; i < 2000; ++i) list += many;
  EXPECT_THAT(said(input("[" + list + "1e400]", "[1,2001]")), HasSubstr("input 'x': /inputs/0/data/2000 is 1e400, "));
  EXPECT_THAT(said(R"({")" + std::string(5000, 'k') + R"(":1e400})"), HasSubstr("kkkk is 1e400, "));
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
      {R"({"parameters":{"timeout":9223372036854775808},"inputs":[]})", "not negative", "/parameters/timeout"},
      {R"({"parameters":{"priority":-1},"inputs":[]})", "not negative", "/parameters/priority"},
      {R"({"parameters":{"priority":"high"},"inputs":[]})", "a whole number", "/parameters/priority"},
      {R"({"parameters":{"sequence_id":-7},"inputs":[]})", "or a string", "/parameters/sequence_id"},
      {R"({"parameters":{"sequence_id":1.5},"inputs":[]})", "or a string", "/parameters/sequence_id"},
      {R"({"parameters":{"sequence_start":1},"inputs":[]})", "true or false", "/parameters/sequence_start"},
      {R"({"inputs":[]})", "expected 1 inputs but got 0 inputs for model 'one' version 1: input 'x' is missing", "/inputs"},
  };
  for (const Row& row : rows) {
    const Refused got = refused(row.body);
    EXPECT_THAT(got.message, HasSubstr(row.message)) << row.body;
    EXPECT_EQ(got.field, row.field) << row.body;
    EXPECT_TRUE(got.code == Code::kCorrupt || got.code == Code::kInvalidArgument) << row.body;
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
  EXPECT_THAT(refused(R"({"outputs":[)" + many + R"(],"inputs":[)" + x + "]}").message, HasSubstr("output 'y' is asked for twice"));
}

TEST(OipDecode, P6_OfManyTensorsTheNearestIsNamedFirstAndNotAllAreListed) {
  Signature wide = {"model 'w' version 1", {}, {{"score", DType::kFloat32, {-1}}, {"label", DType::kInt64, {-1}}}};
  for (int i = 0; i < 1000; ++i) wide.inputs.push_back({"customer_number_" + std::to_string(i), DType::kFloat32, {-1}});
  EXPECT_EQ(refused(R"({"inputs":[{"name":"customer_nunber_999"}]})", wide).message,
            "unexpected inference input 'customer_nunber_999' for model 'w' version 1; did you mean 'customer_number_999'? It has "
            "'customer_number_0', 'customer_number_1', 'customer_number_2', 'customer_number_3', 'customer_number_4', 'customer_number_5', "
            "'customer_number_6', 'customer_number_7' and 992 more");
  wide.inputs.resize(1);
  const std::string first = R"({"name":"customer_number_0","datatype":"FP32","shape":[1],"data":[1]})";
  EXPECT_THAT(refused(R"({"outputs":[{"name":"Score"}],"inputs":[)" + first + "]}", wide).message,
              HasSubstr("unexpected inference output 'Score' for model 'w' version 1; did you mean 'score'? It has 'score', 'label'"));
  wide.inputs[0].alias = "customer";  // of Paddle's clients
  EXPECT_THAT(refused(R"({"inputs":[{"name":"custmer"}]})", wide).message, HasSubstr("did you mean 'customer'?"));
}

TEST(OipDecode, P7_ShapesThatAreNotTheModelsAreRefused) {
  EXPECT_EQ(refused(input("[1,2]", "[]")).message, "model 'one' version 1: input 'x' expects [-1,2] FP32, the request has []");
  EXPECT_EQ(refused(input("[1,2,3]", "[1,3]")).message, "model 'one' version 1: input 'x' expects [-1,2] FP32, the request has [1,3]");
  EXPECT_TRUE(floats(input("[]", "[0,2]")).empty());
  const Signature open = {"model 'o' version 1", {{"x", DType::kFloat32, {-1, -1, -1}}}, {}};
  EXPECT_EQ(refused(input("[]", "[1,0,4611686018427387904]"), open).code, Code::kTooLarge);
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
  EXPECT_EQ(refused(input("[1,2]", "[1,2]", "float32")).message,
            "input 'x': unknown datatype 'float32', model 'one' version 1 expects 'FP32'");
  EXPECT_EQ(refused(input("[1,2]", "[1,2]", "int32")).message,
            "input 'x': unknown datatype 'int32' (did you mean 'INT32'?), model 'one' version 1 expects 'FP32'");
  for (const auto& [word, meant] : {std::pair("STRING", "BYTES"),
                                    {"TYPE_STRING", "BYTES"},
                                    {"torch.half", "FP16"},
                                    {"UNIT8", "UINT8"},
                                    {"DT_DOUBLE", "FP64"},
                                    {"Bool", "BOOL"},
                                    {"TYPE_INT64", "INT64"}})
    EXPECT_THAT(refused(input("[1,2]", "[1,2]", word)).message, HasSubstr(std::string("(did you mean '") + meant + "'?)"));
  EXPECT_EQ(refused(input("[1,2]", "[1,2]", "complex64")).message,
            "input 'x': unknown datatype 'complex64', model 'one' version 1 expects 'FP32'");
  const Signature flags = {"model 'f' version 1", {{"x", DType::kBool, {-1}}}, {}};
  EXPECT_TRUE(decoded(input("[true,false,1,0]", "[4]", "BOOL"), flags));
  EXPECT_THAT(refused(input("[2]", "[1]", "BOOL"), flags).message, HasSubstr("element 0 is 2, which is not a BOOL"));
}

TEST(OipDecode, P3_TheLargestFloatAndTheSignOfZeroAreRead) {
  const auto values = floats(input("[3.4028235e+38,-0.0]"));
  EXPECT_EQ(values[0], std::numeric_limits<float>::max());
  EXPECT_TRUE(std::signbit(values[1]));
  EXPECT_THAT(refused(input("[3.4028236e38,0]")).message, HasSubstr("element 0 is 3.4028236e+38, which is not an FP32"));
}

TEST(OipDecode, P10_RaggedDataIsRefused) {
  EXPECT_THAT(refused(input("[[1,2],[3]]", "[2,2]")).message, HasSubstr("a list at depth 2 has 1 elements, shape [2,2] has 2 there"));
  EXPECT_THAT(refused(input("[[1,2],3]", "[2,2]")).message, HasSubstr("nested unevenly"));
  EXPECT_THAT(refused(input("[[[1],[2]]]", "[1,2]")).message, HasSubstr("element 0 is an array"));
  EXPECT_THAT(refused(input("[1,[2]]", "[1,2]")).message, HasSubstr("element 1 is an array"));
}

template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}
std::string raw_texts(std::initializer_list<std::string_view> texts) {
  std::string bytes;
  for (const std::string_view text : texts) (bytes += raw({static_cast<uint32_t>(text.size())})) += text;
  return bytes;
}
/// JSON and what is behind it.
Result<InferRequest> decoded(const std::string& json, const std::string& tail, const Signature& signature) {
  return decode_infer_request({json + tail, json.size()}, signature, nullptr);
}
Refused refused(const std::string& json, const std::string& tail, const Signature& signature = kOne) {
  return refused(json + tail, signature, json.size());
}
constexpr std::string_view kTwoFloats = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]})";

TEST(OipDecode, BytesBehindTheJsonAreInTheOrderOfItsInputs) {
  const auto request = decoded(R"({"inputs":[{"name":"k","datatype":"INT64","shape":[1],"parameters":{"binary_data_size":8}},
                                             {"name":"x","datatype":"FP32","shape":[2,2],"parameters":{"binary_data_size":16}}]})",
                               raw<int64_t>({-7}) + raw({1.F, 2.F, 3.F, NAN}), kModel);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs[1].span<int64_t>()[0], -7);
  EXPECT_EQ(request->inputs[0].span<float>()[2], 3.F);
  EXPECT_TRUE(std::isnan(request->inputs[0].span<float>()[3]));
}

TEST(OipDecode, BytesAndDataInOneRequest) {
  const auto request = decoded(R"({"inputs":[{"name":"k","datatype":"INT64","shape":[1],"data":[5]},
                                             {"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]})",
                               raw({1.F, 2.F}), kModel);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs[1].span<int64_t>()[0], 5);
  EXPECT_EQ(request->inputs[0].span<float>()[1], 2.F);
}

TEST(OipDecode, BytesOfTextsAndOfTruths) {
  const Signature model = {"model 'm' version 1", {{"t", DType::kString, {-1}}, {"b", DType::kBool, {-1}}}, {}};
  const auto request = decoded(R"({"inputs":[{"name":"t","datatype":"BYTES","shape":[3],"parameters":{"binary_data_size":16}},
                                             {"name":"b","datatype":"BOOL","shape":[3],"parameters":{"binary_data_size":3}}]})",
                               raw_texts({"ab", "", {"\0\xff", 2}}) + std::string("\0\1\7", 3), model);
  ASSERT_TRUE(request) << request.error().message;
  const auto texts = request->inputs[0].span<const std::string>();
  EXPECT_THAT(std::vector<std::string>(texts.begin(), texts.end()), ElementsAre("ab", "", std::string("\0\xff", 2)));
  const auto truths = request->inputs[1].span<const bool>();
  EXPECT_THAT(std::vector<bool>(truths.begin(), truths.end()), ElementsAre(false, true, true));
}

TEST(OipDecode, HalfPrecisionAsNumbersAndAsBytes) {
  const Signature model = {"model 'm' version 1", {{"h", DType::kFloat16, {-1}}, {"b", DType::kBFloat16, {-1}}}, {}};
  const auto request = decoded(R"({"inputs":[{"name":"h","datatype":"FP16","shape":[2],"data":[1.5,65504]},
                                             {"name":"b","datatype":"BF16","shape":[1],"parameters":{"binary_data_size":2}}]})",
                               raw<uint16_t>({0x3fc0}), model);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs[0].span<uint16_t>()[0], 0x3e00);
  EXPECT_EQ(request->inputs[0].span<uint16_t>()[1], 0x7bff);
  EXPECT_EQ(request->inputs[1].span<uint16_t>()[0], 0x3fc0);
  const Signature half = {"model 'm' version 1", {{"x", DType::kFloat16, {-1}}}, {}};
  EXPECT_THAT(refused(input("[65520]", "[1]", "FP16"), half).message, HasSubstr("element 0 is 65520, which is not an FP16"));
}

TEST(OipDecode, ABodyWithoutJsonIsTheOnlyInput) {
  const auto request = decode_infer_request({raw({1.F, 2.F}), 0}, kOne, nullptr);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs[0].shape, (Shape{1, 2}));
  EXPECT_EQ(request->inputs[0].span<float>()[1], 2.F);
  EXPECT_TRUE(request->outputs[0].binary);

  const Signature open = {"model 'o' version 1", {{"x", DType::kInt16, {-1, 2, -1}}}, {}};
  const auto deduced = decode_infer_request({raw<int16_t>({1, 2, 3, 4, 5, 6}), 0}, open, nullptr);
  ASSERT_TRUE(deduced) << deduced.error().message;
  EXPECT_EQ(deduced->inputs[0].shape, (Shape{1, 2, 3}));

  EXPECT_THAT(refused(raw({1.F}), kOne, 0).message, HasSubstr("FP32 of shape [1,2] takes 8 bytes, the request has 4"));
  EXPECT_THAT(refused("", kOne, 0).message, HasSubstr("takes 8 bytes, the request has 0"));
  EXPECT_THAT(refused(raw({1.F}), kModel, 0).message, HasSubstr("takes a model with one input, model 'm' version 3 has 2"));
  const Signature vague = {"model 'v' version 1", {{"x", DType::kInt8, {-1, -1, -1}}}, {}};
  EXPECT_THAT(refused("abcd", vague, 0).message, HasSubstr("one open dimension besides the batch, 'x' is [-1,-1,-1]"));
}

TEST(OipDecode, P11_BytesThatAreNotWhatTheJsonSays) {
  const auto with_size = [](std::string_view size) {
    return R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":)" + std::string(size) + "}}]}";
  };
  const std::string eight = raw({1.F, 2.F});
  EXPECT_THAT(refused(std::string(kTwoFloats), "1234").message, HasSubstr("'binary_data_size' is 8, but 4 bytes are left behind the JSON"));
  EXPECT_THAT(refused(std::string(kTwoFloats), eight + "x").message, HasSubstr("1 bytes behind the JSON belong to no input"));
  EXPECT_THAT(refused(std::string(kTwoFloats) + eight).message, HasSubstr("failed to parse"));  // no header
  EXPECT_THAT(refused(with_size("4"), "1234").message, HasSubstr("takes 8 bytes, the request has 4"));
  for (const auto* bad : {"-8", "8.5", "\"8\"", "null", "[8]"})
    EXPECT_THAT(refused(with_size(bad), eight).message, HasSubstr("'binary_data_size' must be a number of bytes")) << bad;
  EXPECT_EQ(refused(with_size("-8"), eight).field, "/inputs/0/parameters/binary_data_size");
  EXPECT_THAT(refused(std::string(kTwoFloats) + eight, kOne, 1000).message, HasSubstr("is 1000, but the body has 101 bytes"));
  EXPECT_THAT(
      refused(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2],"parameters":{"binary_data_size":8}}]})", eight)
          .message,
      HasSubstr("has both 'data' and 'binary_data_size'"));
}

TEST(OipDecode, P12_TextsThatAreNotWhatTheirLengthsSay) {
  const Signature model = {"model 't' version 1", {{"x", DType::kString, {-1}}}, {}};
  const auto with = [&](const std::string& tail) {
    return refused(R"({"inputs":[{"name":"x","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":)" +
                       std::to_string(tail.size()) + "}}]}",
                   tail, model)
        .message;
  };
  EXPECT_THAT(with(raw_texts({"ab"}) + raw<uint32_t>({0x80000000}) + "x"), HasSubstr("element 1 cut short"));
  EXPECT_THAT(with(raw_texts({"ab"}) + "xyz"), HasSubstr("element 1 cut short"));
  EXPECT_THAT(with(raw_texts({"ab"})), HasSubstr("takes 2 elements, the request has 1"));
  EXPECT_THAT(with(raw_texts({"ab", "", "c"})), HasSubstr("takes 2 elements, the request has 3"));
  EXPECT_THAT(with(""), HasSubstr("takes 2 elements, the request has 0"));
}

TEST(OipDecode, OutputsAsBytesAndAsClasses) {
  const auto asked = [](const std::string& rest) {
    return decoded(
        R"({"inputs":[{"name":"k","datatype":"INT64","shape":[1],"data":[5]},{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}])" +
            rest + "}",
        kModel);
  };
  EXPECT_FALSE(asked("")->outputs[0].binary);
  EXPECT_TRUE(asked(R"(,"parameters":{"binary_data_output":true})")->outputs[1].binary);
  const auto mixed = asked(R"(,"parameters":{"binary_data_output":true},"outputs":[{"name":"z","parameters":{"binary_data":false}},
                              {"name":"y","parameters":{"classification":3}}])");
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_FALSE(mixed->outputs[0].binary);
  EXPECT_TRUE(mixed->outputs[1].binary);
  EXPECT_EQ(mixed->outputs[1].classes, 3);
}

TEST(OipDecode, P14_CountsOfClassesThatAreNone) {
  for (const auto* bad : {"0", "-1", "1.5", "\"3\"", "18446744073709551615"}) {
    const Refused got = refused(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}],"outputs":[
                                   {"name":"y","parameters":{"classification":)" +
                                std::string(bad) + "}}]}");
    EXPECT_THAT(got.message, HasSubstr("must be a number of classes, at least 1")) << bad;
    EXPECT_EQ(got.field, "/outputs/0/parameters/classification");
  }
}

}  // namespace
}  // namespace serin::protocol
