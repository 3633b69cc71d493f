// tfserving_test.cc: TensorFlow Serving's REST API as its documentation and its clients have it: what each body means, what is refused and how answers are printed.

#include "runtime/protocol/tensorflow/tfserving_rest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "runtime/base/wire_writer.h"
#include "runtime/protocol/tensor/request_builder.h"
#include "runtime/protocol/tensorflow/tensor_proto.h"
#include "runtime/protocol/tensorflow/tfserving_grpc.h"

namespace serin::protocol {
namespace {

const Signature kOne = {"model 'one' version 1", {{"x", DType::kFloat32, {-1, 2}}}, {{"y", DType::kFloat32, {-1, 2}}}};
const Signature kScalars = {"model 'half' version 1", {{"x", DType::kFloat32, {-1}}}, {{"y", DType::kFloat32, {-1}}}};
const Signature kThree = {"model 'three' version 1",
                          {{"tag", DType::kString, {-1}}, {"signal", DType::kInt64, {-1, 3}}, {"sensor", DType::kFloat32, {-1, 2, 2}}},
                          {{"y", DType::kFloat32, {-1}}}};

template <class T>
std::vector<T> values(const TensorView& tensor) {
  const auto span = tensor.span<const T>();
  return {span.begin(), span.end()};
}

TfPredict read_json(const std::string& body, const Signature& signature) {
  std::string field;
  auto request = decode_tf_predict(body, signature, &field);
  EXPECT_TRUE(request) << body << ": " << request.error().message;
  return request ? std::move(*request) : TfPredict{};
}

std::string why_refused(const std::string& body, const Signature& signature, std::string* field = nullptr) {
  const auto request = decode_tf_predict(body, signature, field);
  EXPECT_FALSE(request) << body;
  return request ? "" : request.error().message;
}

TEST(TfServing, ReadsRowsOfOneInput) {
  for (const char* body : {R"({"instances": [[1, 2], [3, 4.5]]})", R"({"instances": [{"x": [1, 2]}, {"x": [3, 4.5]}], "nested": [[1]]})",
                           R"({"signature_name": "serving_default", "instances": [[1e0, 2], [3, 45e-1]]})"}) {
    const TfPredict request = read_json(body, kOne);
    EXPECT_TRUE(request.rows);
    ASSERT_EQ(request.infer.inputs.size(), 1u);
    EXPECT_EQ(request.infer.inputs[0].shape, (Shape{2, 2}));
    EXPECT_EQ(values<float>(request.infer.inputs[0]), (std::vector<float>{1, 2, 3, 4.5}));
    ASSERT_EQ(request.infer.outputs.size(), 1u);
  }
  EXPECT_EQ(values<float>(read_json(R"({"instances": [1.0, 2.0, 5.0]})", kScalars).infer.inputs[0]), (std::vector<float>{1, 2, 5}));
}

TEST(TfServing, ReadsColumnsOfOneInput) {
  for (const char* body : {R"({"inputs": [[1, 2]]})", R"({"inputs": {"x": [[1, 2]]}})"}) {
    const TfPredict request = read_json(body, kOne);
    EXPECT_FALSE(request.rows);
    EXPECT_EQ(request.infer.inputs[0].shape, (Shape{1, 2}));
    EXPECT_EQ(values<float>(request.infer.inputs[0]), (std::vector<float>{1, 2}));
  }
  const Signature scalar = {"model 's' version 1", {{"x", DType::kInt32, {}}}, {{"y", DType::kInt32, {}}}};
  EXPECT_EQ(values<int32_t>(read_json(R"({"inputs": 7})", scalar).infer.inputs[0]), std::vector<int32_t>{7});
}

TEST(TfServing, ReadsSeveralInputsInRowsAndColumns) {
  for (
      const char* body :
      {R"({"instances": [{"tag": "foo", "signal": [1,2,3], "sensor": [[1,2],[3,4]]}, {"sensor": [[4,5],[6,8]], "tag": {"b64": "YmFy"}, "signal": [3,4,1]}]})",
       R"({"inputs": {"tag": ["foo", {"b64": "YmFy"}], "signal": [[1,2,3],[3,4,1]], "sensor": [[[1,2],[3,4]],[[4,5],[6,8]]]}})"}) {
    const TfPredict request = read_json(body, kThree);
    EXPECT_EQ(values<std::string>(request.infer.inputs[0]), (std::vector<std::string>{"foo", "bar"}));
    EXPECT_EQ(values<int64_t>(request.infer.inputs[1]), (std::vector<int64_t>{1, 2, 3, 3, 4, 1}));
    EXPECT_EQ(request.infer.inputs[2].shape, (Shape{2, 2, 2}));
    EXPECT_EQ(values<float>(request.infer.inputs[2]), (std::vector<float>{1, 2, 3, 4, 4, 5, 6, 8}));
  }
}

TEST(TfServing, ReadsBase64) {
  const Signature texts = {"model 't' version 1", {{"t", DType::kString, {-1, -1}}}, {{"y", DType::kString, {-1}}}};
  const TfPredict request = read_json(R"({"instances": [[{"b64": "aW1hZ2UgYnl0ZXM="}, {"b64": ""}], ["plain", {"b64": "/wA"}]]})", texts);
  EXPECT_EQ(values<std::string>(request.infer.inputs[0]), (std::vector<std::string>{"image bytes", "", "plain", std::string("\xff\0", 2)}));
  EXPECT_EQ(read_json(R"({"inputs": {"b64": "YQ=="}})", {"m", {{"t", DType::kString, {}}}, {}}).infer.inputs[0].as<std::string>()[0], "a");
  for (const char* wrong : {"a", "YQ=", "YQ===", "Y=Q=", "*Q==", "Y Q=", "Y\\u0000=="})
    EXPECT_NE(why_refused(R"({"instances": [[{"b64": ")" + std::string(wrong) + R"("}]]})", texts).find("is no base64"), std::string::npos)
        << wrong;
  EXPECT_NE(why_refused(R"({"instances": [[{"b64": "YQ==", "x": 1}]]})", texts).find("an object, which is not a BYTES"), std::string::npos);
  EXPECT_NE(why_refused(R"({"instances": [[{"b64": "YQ=="}, 1]]})", kOne).find("which is not an FP32"), std::string::npos);
}

TEST(TfServing, ReadsWordsForNumbersThatJsonHasNone) {
  const auto request = read_json(R"({"instances": [NaN, -Infinity, Infinity, 1], "comment": "NaN \" Infinity"})", kScalars);
  const auto floats = values<float>(request.infer.inputs[0]);
  EXPECT_TRUE(std::isnan(floats[0]));
  EXPECT_EQ(floats[1], -HUGE_VALF);
  EXPECT_EQ(floats[2], HUGE_VALF);
  const Signature whole = {"m", {{"x", DType::kInt32, {-1}}}, {{"y", DType::kInt32, {-1}}}};
  EXPECT_NE(why_refused(R"({"instances": [NaN]})", whole).find("element 0 is NaN or infinite, which is not an INT32"), std::string::npos);
  for (const char* wrong : {"nan", "NAN", "Inf", "infinity", "+Infinity", "NaNs", "--Infinity", "NaN NaN", "\"NaN\""})
    EXPECT_FALSE(why_refused(R"({"instances": [)" + std::string(wrong) + "]}", kScalars).empty()) << wrong;
}

TEST(TfServing, RoundsWhatIsTooLargeOrTooSmall) {
  const auto floats = values<float>(read_json(R"({"instances": [3.5e38, -1e300, 1e-50, 0.1, 16777217]})", kScalars).infer.inputs[0]);
  EXPECT_EQ(floats, (std::vector<float>{HUGE_VALF, -HUGE_VALF, 0, 0.1f, 16777216}));
  // Of that JSON's reader there has no number either.
  EXPECT_EQ(why_refused(R"({"instances": [1, 1e400]})", kScalars),
            "JSON Parse error: /instances/1 is 1e400, more than a number of any datatype, at 18");
  EXPECT_EQ(why_refused(R"({"inputs": {"x": [-1e400]}})", kScalars),
            "JSON Parse error: /inputs/x/0 is -1e400, more than a number of any datatype, at 18");
}

struct Wrong {
  const char* body;
  const Signature* signature;
  const char* message;  ///< a part of it
  const char* field;
};

TEST(TfServing, RefusesAndSaysWhy) {
  const Wrong cases[] = {
      {"", &kOne, "The document is empty", ""},
      {"[1]", &kOne, "must be a JSON object, not an array", ""},
      {"{}", &kOne, "Missing 'inputs' or 'instances' key", ""},
      {R"({"instances": [[1, 2]]}X)", &kOne, "JSON Parse error", ""},
      {R"({"instances": [[1, 2]], "inputs": [[1, 2]]})", &kOne, "Not formatted correctly expecting only one of", ""},
      {R"({"instances": [[1, 2]], "instances": [[1, 2]]})", &kOne, "key 'instances' is given twice", "/instances"},
      {R"({"signature_name": 5, "instances": [[1, 2]]})", &kOne, "'signature_name' key must be a string value", "/signature_name"},
      {R"({"signature_name": "other", "instances": [[1, 2]]})", &kOne, R"(Serving signature name: "other" not found in signature def)",
       "/signature_name"},
      {R"({"instances": {"x": [1, 2]}})", &kOne, "Expecting 'instances' to be an list/array", "/instances"},
      {R"({"instances": []})", &kOne, "No values in 'instances' array", "/instances"},
      {R"({"instances": [1, 2]})", &kOne, "input 'x' expects [-1,2] FP32, the request has [2]", "/instances"},
      {R"({"instances": [[1, 2, 3]]})", &kOne, "input 'x' expects [-1,2] FP32, the request has [1,3]", "/instances"},
      {R"({"instances": [[]]})", &kOne, "the request has [1,0]", "/instances"},
      {R"({"instances": [[1, 2], [3]]})", &kOne, "a list at depth 2 has 1 elements, shape [2,2] has 2 there", "/instances"},
      {R"({"instances": [[1, 2], 3]})", &kOne, "data is nested unevenly", "/instances"},
      {R"({"instances": [[1, [2]]]})", &kOne, "element 1 is an array, which is not an FP32", "/instances"},
      {R"({"instances": [[1, "2"]]})", &kOne, "element 1 is a string, which is not an FP32", "/instances"},
      {R"({"instances": [[1, null]]})", &kOne, "element 1 is null, which is not an FP32", "/instances"},
      {R"({"instances": [[[[[[[[[[[[[[1]]]]]]]]]]]]]]})", &kOne, "input 'x' expects [-1,2] FP32", "/instances"},
      {R"({"instances": [{"x": [1, 2]}, [1, 2]]})", &kOne, "Expecting object but got list at item 1", "/instances/1"},
      {R"({"instances": [{"x": [1, 2]}, {"x": [1]}]})", &kOne, "element", "/instances/1/x"},
      {R"({"instances": [{"x": [1, 2]}, {"z": [1, 2]}]})", &kOne, "element 1 of 'instances' has no input 'x'", "/instances/1"},
      {R"({"instances": [{"signal": [1,2,3], "sensor": [[1,2],[3,4]], "tag": "a"}, {"signal": [1,2,3], "senser": [[1,2],[3,4]], "tag": "a"}]})",
       &kThree, "element 1 of 'instances' has no input 'sensor'; did you mean it by 'senser'?", "/instances/1"},
      {R"({"inputs": {"singal": [[1,2,3]]}})", &kThree,
       "unexpected inference input 'singal' for model 'three' version 1; did you mean 'signal'?", "/inputs/singal"},
      {R"({"instances": [{"x": [1, 2]}, {"x": [1, 2], "z": 1}]})", &kOne, "element 1 of 'instances' has 2 inputs", "/instances/1"},
      {R"({"instances": [{"z": [1, 2]}]})", &kOne, "unexpected inference input 'z' for model 'one' version 1; it has 'x'",
       "/instances/0/z"},
      {R"({"instances": [{"x": [1, 2], "x": [1, 2]}]})", &kOne, "input 'x' is given twice", "/instances/0/x"},
      {R"({"instances": [{}]})", &kOne, "input 'x' is missing", "/instances/0"},
      {R"({"instances": ["foo"]})", &kThree, "instances is a plain list, but expecting list of objects", "/instances"},
      {R"({"inputs": ["foo"]})", &kThree, "inputs is a plain value/list, but expecting an object", "/inputs"},
      {R"({"inputs": {"tag": ["a"], "signal": [[1,2,3]]}})", &kThree, "input 'sensor' is missing", "/inputs"},
      {R"({"inputs": {"tag": ["a"], "signal": [[1,2,3.5]], "sensor": [[[1,2],[3,4]]]}})", &kThree,
       "element 2 is 3.5, which is not an INT64", "/inputs/signal"},
      {R"({"inputs": 5})", &kOne, "the request has []", "/inputs"},
      {R"({"inputs": null})", &kOne, "the request has []", "/inputs"},
  };
  for (const Wrong& wrong : cases) {
    std::string field;
    EXPECT_NE(why_refused(wrong.body, *wrong.signature, &field).find(wrong.message), std::string::npos)
        << wrong.body << ": " << why_refused(wrong.body, *wrong.signature);
    EXPECT_EQ(field, wrong.field) << wrong.body;
  }
}

TEST(TfServing, TakesNoMemoryForWhatHasNotCome) {
  const Signature open = {"m", {{"x", DType::kFloat64, {-1, -1}}}, {{"y", DType::kFloat64, {-1}}}};
  std::string rows = "[0";
  for (int i = 0; i < 1000; ++i) rows += ",0";
  rows += "]";
  for (int i = 0; i < 20000; ++i) rows += ",[]";  // a shape of 20 million elements, in 60 KB
  EXPECT_NE(why_refused(R"({"instances": [)" + rows + "]}", open).find("its first lists make a shape of [20001,1001]"), std::string::npos);
  std::string deep = R"({"instances": )" + std::string(200, '[') + "1" + std::string(200, ']') + "}";
  EXPECT_NE(why_refused(deep, kOne).find("nested deeper than 100 levels"), std::string::npos);
  std::string name(1 << 20, 'n'), field;
  EXPECT_LT(why_refused(R"({"inputs": {")" + name + R"(": 1}})", kOne, &field).size(), 1000u);
  EXPECT_LE(field.size(), 256u);
}

/// Long enough to be read another way (number_lists.h), which must not show.
std::string long_rows(const std::string& last, size_t rows = 40) {
  std::string text = "[";
  for (size_t row = 0; row < rows; ++row) {
    text += row > 0 ? ", [ " : "[";
    for (int i = 0; i < 39; ++i) text += std::to_string(row) + "." + std::to_string(10 + i) + (i % 3 == 0 ? "e0, " : ",");
    text += (row + 1 == rows ? last : "-1") + "]";
  }
  return text + "]";
}

TEST(TfServing, ReadsLongListsAsItReadsShortOnes) {
  const Signature wide = {"m", {{"x", DType::kFloat32, {-1, 40}}}, {{"y", DType::kFloat32, {-1}}}};
  for (const std::string& body :
       {R"({"comment": "[1,2] \" [", "instances": )" + long_rows("3e39") + "}", R"({"inputs": {"x": )" + long_rows("3e39") + "}}"}) {
    const TfPredict request = read_json(body, wide);
    ASSERT_EQ(request.infer.inputs[0].shape, (Shape{40, 40})) << body;
    const auto floats = values<float>(request.infer.inputs[0]);
    EXPECT_EQ(floats[0], 0.10f);
    EXPECT_EQ(floats[40 * 7 + 5], 7.15f);
    EXPECT_EQ(floats[40 * 7 + 39], -1);
    EXPECT_EQ(floats.back(), HUGE_VALF);
  }
  const auto words = values<float>(read_json(R"({"instances": )" + long_rows("NaN") + "}", wide).infer.inputs[0]);
  EXPECT_TRUE(std::isnan(words.back()));
  EXPECT_EQ(words[40 * 7 + 5], 7.15f);
  const std::pair<const char*, const char*> wrong[] = {{"1, 2", "a list at depth 2 has more elements"},
                                                       {"\"\x7f"
                                                        "0\"",
                                                        "which is not an FP32"},
                                                       {"[1]", "is an array, which is not an FP32"},
                                                       {"1e400", "JSON Parse error"},
                                                       {"01", "JSON Parse error"}};
  for (const auto& [last, message] : wrong)
    EXPECT_NE(why_refused(R"({"instances": )" + long_rows(last) + "}", wide).find(message), std::string::npos) << last;
  std::string ragged = long_rows("1");
  for (int i = 0; i < 1000; ++i) ragged.insert(ragged.size() - 1, ",[]");
  EXPECT_NE(why_refused(R"({"instances": )" + ragged + "}", wide).find("a list at depth 2 has 0 elements"), std::string::npos);
  EXPECT_NE(why_refused(R"({"instances": )" + long_rows("1") + R"(, "signature_name": )" + long_rows("1", 1) + "}", wide)
                .find("must be a string"),
            std::string::npos);
}

// --- answers --------------------------------------------------------------------------------------------------------------------

template <class T>
TensorView view(std::vector<T>& elements, Shape shape, DType dtype = dtype_of<T>()) {
  return {dtype, shape, elements.data()};
}

TEST(TfServing, PrintsRowsAndColumns) {
  std::vector<float> y = {3.5, 4, 5.5, 0.1f}, z = {1e20f, -0.f};
  std::vector<int64_t> n = {-1, 7};
  std::vector<std::string> t = {"a\"b", "\xff"};
  const NamedTensor one[] = {{"y", view(y, {2, 2})}};
  EXPECT_EQ(*encode_tf_predict("predictions", one, true), R"({"predictions":[[3.5,4.0],[5.5,0.1]]})");
  EXPECT_EQ(*encode_tf_predict("outputs", one, false), R"({"outputs":[[3.5,4.0],[5.5,0.1]]})");
  const NamedTensor four[] = {
      {"z", view(z, {2})}, {"n", view(n, {2, 1})}, {"t", view(t, {2}, DType::kString)}, {"t_bytes", view(t, {2}, DType::kString)}};
  EXPECT_EQ(
      *encode_tf_predict("predictions", four, true),
      R"({"predictions":[{"z":1e+20,"n":[-1],"t":"a\"b","t_bytes":{"b64":"YSJi"}},{"z":-0.0,"n":[7],"t":"ÿ","t_bytes":{"b64":"/w=="}}]})");
  EXPECT_EQ(*encode_tf_predict("outputs", four, false),
            R"({"outputs":{"z":[1e+20,-0.0],"n":[[-1],[7]],"t":["a\"b","ÿ"],"t_bytes":[{"b64":"YSJi"},{"b64":"/w=="}]}})");
}

TEST(TfServing, PrintsWhatIsNotFinite) {
  std::vector<double> y = {NAN, -HUGE_VAL, HUGE_VAL, 1};
  const NamedTensor one[] = {{"y", view(y, {4})}};
  EXPECT_EQ(*encode_tf_predict("predictions", one, true), R"({"predictions":[NaN,-Infinity,Infinity,1.0]})");
}

TEST(TfServing, PrintsScalarsAndEmptyTensorsInColumns) {
  std::vector<float> y = {2};
  const NamedTensor scalar[] = {{"y", view(y, {})}};
  EXPECT_EQ(*encode_tf_predict("outputs", scalar, false), R"({"outputs":2.0})");
  const auto rows = encode_tf_predict("predictions", scalar, true);
  ASSERT_FALSE(rows);
  EXPECT_NE(rows.error().message.find("Tensor name: y has no shape information"), std::string::npos);
  const NamedTensor empty[] = {{"y", view(y, {0, 3})}};
  EXPECT_EQ(*encode_tf_predict("predictions", empty, true), R"({"predictions":[]})");
  const NamedTensor hollow[] = {{"y", view(y, {2, 0})}};
  EXPECT_EQ(*encode_tf_predict("outputs", hollow, false), R"({"outputs":[[],[]]})");
}

TEST(TfServing, RefusesRowsOfDifferentNumbers) {
  std::vector<float> y = {1, 2, 3};
  const NamedTensor both[] = {{"y", view(y, {3})}, {"z", view(y, {1})}};
  const auto rows = encode_tf_predict("predictions", both, true);
  ASSERT_FALSE(rows);
  EXPECT_NE(rows.error().message.find("Tensor name: z has inconsistent batch size: 1 expecting: 3"), std::string::npos);
}

// --- classify and regress ---------------------------------------------------------------------------------------------------------

const Signature kScored = {"model 'c' version 1",
                           {{"a", DType::kFloat32, {-1, 2}}, {"b", DType::kInt64, {-1, 1}}},
                           {{"scores", DType::kFloat32, {-1, 2}}, {"classes", DType::kString, {-1, 2}}, {"n", DType::kInt64, {-1}}}};

TEST(TfServing, ReadsExamples) {
  for (const char* body :
       {R"({"examples": [{"a": [1, 2], "b": 7}, {"b": [8], "a": [3, 4]}]})",
        R"({"signature_name": "tensorflow/serving/classify", "examples": [{"a": [1, 2], "b": 7}, {"a": [3, 4], "b": 8}]})"}) {
    const auto request = decode_tf_examples(body, TfMethod::kClassify, kScored, nullptr);
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(values<float>(request->inputs[0]), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(values<int64_t>(request->inputs[1]), (std::vector<int64_t>{7, 8}));
    ASSERT_EQ(request->outputs.size(), 2u);
    EXPECT_EQ(request->outputs[0].index, 0u);
    EXPECT_EQ(request->outputs[1].index, 1u);
  }
  const auto shared =
      decode_tf_examples(R"({"context": {"b": 5}, "examples": [{"a": [1, 2]}, {"a": [3, NaN]}]})", TfMethod::kClassify, kScored, nullptr);
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_EQ(values<int64_t>(shared->inputs[1]), (std::vector<int64_t>{5, 5}));
}

Signature parses_examples_itself() {
  Signature signature = {"model 'p' version 1", {{"examples", DType::kString, {-1}}}, {{"scores", DType::kFloat32, {-1, 2}}}};
  signature.inputs[0].examples = true;
  return signature;
}

TEST(TfServing, WritesExamplesForAModelThatParsesThem) {
  const auto request = decode_tf_examples(
      R"({"context": {"c": true}, "examples": [{"a": [1, -2], "b": "x", "f": [1.5, NaN]}, {"e": [], "d": {"b64": "/w=="}}]})",
      TfMethod::kClassify, parses_examples_itself(), nullptr);
  ASSERT_TRUE(request) << request.error().message;
  const auto field = [](uint32_t number, const std::string& bytes) {
    std::string out;
    wire::write_bytes(out, number, bytes);
    return out;
  };
  const auto feature = [&](const std::string& name, const std::string& value) { return field(1, field(1, name) + field(2, value)); };
  const std::string context = field(1, feature("c", field(3, field(1, "\x01"))));
  const std::string minus_two = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  const std::string floats("\0\0\xc0\x3f\0\0\xc0\x7f", 8);
  const auto rows = values<std::string>(request->inputs[0]);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], context + field(1, feature("a", field(3, field(1, "\x01" + minus_two))) + feature("b", field(1, field(1, "x"))) +
                                            feature("f", field(2, field(1, floats)))));
  EXPECT_EQ(rows[1], context + field(1, feature("e", "") + feature("d", field(1, field(1, "\xff")))));
}

TEST(TfServing, RefusesFeaturesOfSeveralKinds) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"examples": [{"a": [1, 2.5]}]})", "Feature: a expecting type: int64_list"},
      {R"({"examples": [{"a": [1.5, "x"]}]})", "Feature: a expecting type: float_list"},
      {R"({"examples": [{"a": null}]})", "Feature: a has element with unexpected JSON type: null"},
      {R"({"examples": [{"a": [[1]]}]})", "unexpected JSON type: an array"},
      {R"({"examples": [{"a": {"b64": "*"}}]})", "is not base64"},
      {R"({"examples": [{"a": 18446744073709551615}]})", "unexpected JSON type"},
      {R"({"examples": [7]})", "Example must be JSON object but got JSON a number"},
  };
  for (const auto& [body, message] : cases) {
    std::string field;
    const auto request = decode_tf_examples(body, TfMethod::kClassify, parses_examples_itself(), &field);
    ASSERT_FALSE(request) << body;
    EXPECT_NE(request.error().message.find(message), std::string::npos) << body << ": " << request.error().message;
    EXPECT_EQ(field.find("/examples/0"), 0U) << field;
  }
}

TEST(TfServing, ASignatureMayBeForOneMethodOnly) {
  Signature signature = parses_examples_itself();
  signature.name = "classes";
  signature.method = "tensorflow/serving/classify";
  const auto problem = [&](TfMethod method, const std::string& name) {
    const auto found = only_tf_signature(signature, method)(name);
    return found ? std::string() : found.error().message;
  };
  EXPECT_EQ(problem(TfMethod::kClassify, "classes") + problem(TfMethod::kClassify, "") + problem(TfMethod::kPredict, "serving_default"),
            "");
  EXPECT_EQ(problem(TfMethod::kRegress, ""),
            "Expected regression signature method_name to be tensorflow/serving/regress. Was: tensorflow/serving/classify");
  EXPECT_EQ(problem(TfMethod::kPredict, "other"), "Serving signature name: \"other\" not found in signature def; there is \"classes\"");
}

TEST(TfServing, KeepsWordsAndTextsApart) {
  EXPECT_NE(why_refused(R"({"instances": ["\u007f"]})", kScalars).find("a string"), std::string::npos) << "no NaN";
  EXPECT_NE(why_refused(R"({"instances": ["\u007f", NaN]})", kScalars).find("JSON Parse error"), std::string::npos);
  EXPECT_NE(why_refused(R"({NaN : 1, "instances": [1]})", kScalars).find("JSON Parse error"), std::string::npos);
  const Signature words = {"m", {{"a", DType::kString, {-1}}}, {{"y", DType::kFloat32, {-1}}}};
  EXPECT_NE(why_refused(R"({"instances": [NaN]})", words).find("element 0 is NaN or infinite"), std::string::npos);
  EXPECT_EQ(values<std::string>(read_json(R"({"instances": ["\u007f", "\u007f+"]})", words).infer.inputs[0]),
            (std::vector<std::string>{"\x7f", "\x7f+"}));
}

TEST(TfServing, RefusesAFlatRowBesideNestedOnes) {
  const Signature pairs = {"m", {{"a", DType::kFloat32, {-1, 2, 2}}}, {{"y", DType::kFloat32, {-1}}}};
  EXPECT_NE(why_refused(R"({"instances": [{"a": [[1, 2], [3, 4]]}, {"a": [1, 2, 3, 4]}]})", pairs).find("nested unevenly"),
            std::string::npos);
}

TEST(TfServing, BoundsWhatAContextIsCopiedTo) {
  const Signature words = {"m", {{"a", DType::kString, {-1}}, {"b", DType::kFloat32, {-1}}}, {{"y", DType::kFloat32, {-1}}}};
  const RequestLimits limits{.tensor_bytes = 4096};
  const auto decode = [&](size_t letters) {
    const std::string text(letters, 'x');
    return decode_tf_examples(R"({"context": {"a": [")" + text + R"("]}, "examples": [{"b": 1}, {"b": 2}, {"b": 3}]})", TfMethod::kRegress,
                              words, nullptr, limits);
  };
  EXPECT_TRUE(decode(1365));
  const auto request = decode(1366);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, Code::kTooLarge);
  EXPECT_NE(request.error().message.find("the context's texts"), std::string::npos);
}

TEST(TensorProto, BoundsWhatATextIsFilledTo) {
  const auto filled = [](size_t letters) {
    std::string message;
    wire::write_integer(message, 1, tf_dtype(DType::kString));
    wire::write_bytes(message, 8, std::string(letters, 'x'));
    std::vector<std::string> texts(17);
    const TensorView tensor{DType::kString, {17}, reinterpret_cast<std::byte*>(texts.data())};
    const auto bytes = std::as_bytes(std::span(message));
    wire::Decoding decoding{.begin = bytes.data()};
    const TensorProto proto = TensorProto::read(decoding, bytes);
    EXPECT_TRUE(proto.check(tensor, "a"));
    return proto.copy_to(tensor, "a", decoding);
  };
  EXPECT_TRUE(filled(kMostFilled / 16));
  const Status refused = filled(kMostFilled / 16 + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
}

TEST(TfServing, AModelSpecThatOccursTwiceIsBothTogether) {
  const auto spec = [](auto write) {
    std::string message;
    wire::write_message(message, 1, write);
    return message;
  };
  const auto version = [](std::string& out, int64_t number) {
    wire::write_message(out, 2, [&](std::string& value) { wire::write_integer(value, 1, number); });
  };
  const std::string first = spec([&](std::string& out) {
    wire::write_text(out, 1, "service");
    wire::write_text(out, 3, "serving_default");
    wire::write_text(out, 4, "stable");
  });
  const std::string named = spec([](std::string& out) { wire::write_text(out, 1, "net"); });
  const std::string numbered = spec([&](std::string& out) { version(out, 3); });
  for (const std::string& message : {first + named + numbered, first + numbered + named}) {
    const auto read = TfPredictCall::read(message);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->spec.model, "net");
    EXPECT_EQ(read->spec.signature, "serving_default");
    EXPECT_EQ(read->spec.version, 3) << "as a router has appended it";
    EXPECT_EQ(read->spec.label, "") << "a version takes the place of a label";
  }
  const std::string both = numbered + first;
  const auto read = TfExamplesCall::read(both, TfMethod::kClassify);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tasks.front().spec.label, "stable");
  EXPECT_FALSE(read->tasks.front().spec.version);
}

TEST(TfServing, RefusesExamplesAndSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"instances": [[1, 2]]})", "key 'examples' is expected and was not found"},
      {R"({"examples": {}})", "Expecting 'examples' value to be an list/array"},
      {R"({"examples": []})", "'examples' value is an empty array"},
      {R"({"examples": [1]})", "Example must be JSON object but got JSON a number"},
      {R"({"context": 1, "examples": [{"a": [1, 2], "b": 7}]})", "Example must be JSON object but got JSON a number"},
      {R"({"examples": [{"a": [1, 2]}]})", "input 'b' is missing"},
      {R"({"examples": [{"a": [1, 2], "b": 7}, {"a": [1, 2]}]})", "example 1 has 1 features"},
      {R"({"examples": [{"a": [1, 2], "b": 7}, {"a": [1, 2], "z": 1}]})", "example 1 has no feature 'b'"},
      {R"({"examples": [{"a": [1, 2], "b": 7}, {"a": [1, 2], "B": 1}]})", "example 1 has no feature 'b'; did you mean it by 'B'?"},
      {R"({"examples": [{"a": [1, 2, 3], "b": 7}]})", "shape [2] takes 2 elements, data has 3"},
      {R"({"examples": [{"a": [1, 2], "b": 7.5}]})", "element 0 is 7.5, which is not an INT64"},
      {R"({"examples": [{"a": [1, 2], "b": 7, "a": 1}]})", "is given twice"},
      {R"({"examples": [{"a": [1, 2], "z": 7}]})", "unexpected inference input 'z'"},
      {R"({"context": {"a": [1, 2]}, "examples": [{"a": [1, 2], "b": 7}]})", "input 'a' is given twice"},
      {R"({"signature_name": "tensorflow/serving/regress", "examples": []})", "not found in signature def"},
  };
  for (const auto& [body, message] : cases) {
    const auto request = decode_tf_examples(body, TfMethod::kClassify, kScored, nullptr);
    ASSERT_FALSE(request) << body;
    EXPECT_NE(request.error().message.find(message), std::string::npos) << body << ": " << request.error().message;
  }
  const auto wide = decode_tf_examples(R"({"examples": [{"a": [1, 2], "b": 7}]})", TfMethod::kRegress, kScored, nullptr);
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().message.find("regress takes [rows] or [rows, 1]"), std::string::npos);
  const Signature texts = {"m", {{"a", DType::kFloat32, {-1}}}, {{"y", DType::kString, {-1}}}};
  const auto none = decode_tf_examples(R"({"examples": [{"a": 1}]})", TfMethod::kClassify, texts, nullptr);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("has no output of floats that 'classify' could mean (the only one, or 'scores'); it has 'y'"),
            std::string::npos);
}

TEST(TfServing, PrintsResults) {
  std::vector<float> scores = {0.25, 0.75, 1, 0};
  std::vector<std::string> classes = {"cat", "dog", "dog", "cat"};
  const NamedTensor outputs[] = {{"scores", view(scores, {2, 2})}, {"classes", view(classes, {2, 2}, DType::kString)}};
  EXPECT_EQ(*encode_tf_results(TfMethod::kClassify, outputs), R"({"results":[[["cat",0.25],["dog",0.75]],[["dog",1.0],["cat",0.0]]]})");
  EXPECT_EQ(*encode_tf_results(TfMethod::kClassify, std::span(outputs).first(1)),
            R"({"results":[[["",0.25],["",0.75]],[["",1.0],["",0.0]]]})");
  const NamedTensor values[] = {{"y", view(scores, {4, 1})}};
  EXPECT_EQ(*encode_tf_results(TfMethod::kRegress, values), R"({"results":[0.25,0.75,1.0,0.0]})");
  const NamedTensor uneven[] = {{"scores", view(scores, {2, 2})}, {"classes", view(classes, {2}, DType::kString)}};
  EXPECT_FALSE(encode_tf_results(TfMethod::kClassify, uneven));
}

}  // namespace
}  // namespace serin::protocol
