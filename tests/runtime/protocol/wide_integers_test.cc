#include "runtime/protocol/json/wide_integers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "runtime/protocol/json/json.h"
#include "runtime/protocol/json/number_lists.h"
#include "runtime/protocol/oip/oip_rest.h"
#include "runtime/protocol/paddle/paddle.h"
#include "runtime/protocol/tensorflow/tfserving_rest.h"

namespace serin::protocol {
namespace {

using testing::HasSubstr;

/// The text afterwards; empty where there was none.
std::string rounded(std::string text) { return round_wide_integers(text) ? text : ""; }

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

std::string digits(std::mt19937_64& random, size_t count) {
  std::string text(1, static_cast<char>('1' + random() % 9));
  while (text.size() < count) text += static_cast<char>('0' + random() % 10);
  return text;
}

TEST(WideIntegers, AreRoundedInTheirPlace) {
  EXPECT_EQ(rounded("[100000000000000000001]"), "[10000000000000000e4  ]");
  EXPECT_EQ(rounded("[18446744073709551616]"), "[18446744073709552e3 ]");
  EXPECT_EQ(rounded("[-9223372036854775809,1]"), "[-92233720368547758e2,1]") << "the shortest there is";
  EXPECT_EQ(rounded("[99999999999999999999]"), "[10000000000000000e4 ]");
  EXPECT_EQ(rounded(R"({"99999999999999999999":99999999999999999999})"), R"({"99999999999999999999":10000000000000000e4 })");
  EXPECT_EQ(rounded(R"(["a\"99999999999999999999",99999999999999999999)"), R"(["a\"99999999999999999999",10000000000000000e4 )");
}

TEST(WideIntegers, LeavesEverythingElse) {
  for (const std::string text : {"", "[]", "[18446744073709551615]", "[9223372036854775808]", "[-9223372036854775808]",
                                 "[1234567890123456789]", "[012345678901234567890]", "[-012345678901234567890]", "[99999999999999999999.5]",
                                 "[99999999999999999999e5]", "[1.99999999999999999999]", "[--99999999999999999999]",
                                 "[9999999999-9999999999]", "[\"99999999999999999999\"]", "\"99999999999999999999", "[-]"})
    EXPECT_EQ(rounded(text), "") << text;
  EXPECT_EQ(rounded("[" + std::string(400, '9') + "]"), "") << "no double holds it";
  EXPECT_EQ(rounded("[" + std::string(309, '9') + "]"), "") << "nor this";
  EXPECT_NE(rounded("[1" + std::string(308, '0') + "]"), "");
}

/// Beside the C library's reading, which shares no code with any of the readers here.
TEST(WideIntegers, AreTheNearestDoubleByEveryWayThereIs) {
  std::mt19937_64 random(5);
  const std::string filler(5000, ' ');  // long enough for lists to be cut out
  for (int i = 0; i < 20'000; ++i) {
    std::string token = digits(random, 19 + random() % (i % 8 == 0 ? 290 : 12));
    // The middle between two doubles, and one beside it: what sixteen digits would get wrong.
    if (i % 4 == 1)
      token = std::to_string((uint64_t{1} << 63 | (random() & 0xfff) << 11 | uint64_t{1} << 10) + random() % 3 - 1) +
              std::string(random() % 2, '0');
    if (i % 2 == 1) token.insert(token.begin(), '-');
    const double expected = std::strtod(token.c_str(), nullptr);
    std::string text = "[" + token + "]";
    const auto parsed = parse_json(text, 8);
    ASSERT_TRUE(parsed) << token;
    ASSERT_EQ(bits(parsed->root.at(0).get_double().value_unsafe()), bits(expected)) << token;
    const auto cut = cut_number_lists(fmt::format("{{\"data\":[0,0,0,0,{}]{}}}", token, filler), "data");
    ASSERT_TRUE(cut) << token;
    ASSERT_EQ(bits(cut->lists.at(0).back()), bits(expected)) << token;
  }
}

TEST(WideIntegers, AreNumbersOfFloatTensorsAndOfNoOthers) {
  const auto model = [](DType dtype) { return Signature{"m", {{"x", dtype, {-1}}}, {{"y", dtype, {-1}}}}; };
  const auto read = [&](std::string_view number, DType dtype, std::string_view datatype, bool with_word = false) {
    const std::string data = with_word ? std::string(number) + ",NaN" : std::string(number) + ",1";
    return decode_infer_request(
        {R"({"inputs":[{"name":"x","shape":[2],"datatype":")" + std::string(datatype) + R"(","data":[)" + data + "]}]}", {}}, model(dtype),
        nullptr);
  };
  EXPECT_EQ(read("123456789012345678901234567890", DType::kFloat32, "FP32")->inputs[0].as<float>()[0], 123456789012345678901234567890.f);
  EXPECT_EQ(read("-123456789012345678901234567890", DType::kFloat64, "FP64")->inputs[0].as<double>()[0], -123456789012345678901234567890.);
  EXPECT_EQ(read("18446744073709551616", DType::kFloat32, "FP32", /*with_word=*/true)->inputs[0].as<float>()[0], 0x1p64f)
      << "beside a word";
  EXPECT_THAT(read("1" + std::string(39, '0'), DType::kFloat32, "FP32").error().message,
              HasSubstr("element 0 is 1e+39, which is not an FP32"));
  EXPECT_THAT(read("18446744073709551616", DType::kFloat16, "FP16").error().message,
              HasSubstr("element 0 is 1.8446744073709552e+19, which is not an FP16"));
  EXPECT_THAT(read("18446744073709551616", DType::kUInt64, "UINT64").error().message,
              HasSubstr("element 0 is 1.8446744073709552e+19, which is not a UINT64"));
  EXPECT_THAT(read("-9223372036854775809", DType::kInt64, "INT64").error().message, HasSubstr("which is not an INT64"));
  EXPECT_THAT(read("18446744073709551616", DType::kBool, "BOOL").error().message, HasSubstr("which is not a BOOL"));
  EXPECT_THAT(read("18446744073709551616", DType::kString, "BYTES").error().message, HasSubstr("which is not a BYTES"));
  EXPECT_THAT(read(std::string(400, '9'), DType::kFloat64, "FP64").error().message,
              HasSubstr("is 9999999999999999..., more than a number"));
  EXPECT_THAT(decode_infer_request({R"({"inputs":[{"name":"x","shape":[18446744073709551616],"datatype":"FP32","data":[1]}]})", {}},
                                   model(DType::kFloat32), nullptr)
                  .error()
                  .message,
              HasSubstr("a dimension is too large"));
}

TEST(WideIntegers, AreNumbersAtEveryDoor) {
  const Signature model = {"m", {{"x", DType::kFloat32, {-1}}}, {{"y", DType::kFloat32, {-1}}}};
  const Signature whole = {"m", {{"x", DType::kInt64, {-1}}}, {{"y", DType::kInt64, {-1}}}};
  const std::string number = "123456789012345678901234567890";
  const float value = 123456789012345678901234567890.f;
  for (const std::string& body :
       {R"({"instances":[)" + number + "]}", R"({"inputs":[)" + number + "]}", R"({"inputs":{"x":[)" + number + "]}}"}) {
    const auto read = decode_tf_predict(body, model, nullptr);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->infer.inputs[0].as<float>()[0], value);
    EXPECT_THAT(decode_tf_predict(body, whole, nullptr).error().message, HasSubstr("which is not an INT64"));
  }
  const auto too_large = decode_tf_predict(R"({"instances":[1)" + std::string(39, '0') + "]}", model, nullptr);
  ASSERT_TRUE(too_large) << "as 1e39 is";
  EXPECT_EQ(too_large->infer.inputs[0].as<float>()[0], HUGE_VALF);

  const std::string tensor = R"({"tensor":[{"name":"x","shape":[1],"elem_type":)";
  const std::string listed = tensor + R"(1,"float_data":[)" + number + "]}]}", texts = R"({"key":["x"],"value":["[)" + number + R"(]"]})";
  for (const auto& [form, body] : {std::pair{PaddleForm::kJson, listed}, {PaddleForm::kPipeline, texts}}) {
    const auto read = decode_paddle(form, body, model, nullptr);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->infer.inputs[0].as<float>()[0], value);
  }
  EXPECT_THAT(decode_paddle(PaddleForm::kJson, tensor + R"(0,"int64_data":[)" + number + "]}]}", whole, nullptr).error().message,
              HasSubstr("which is not an INT64"));
}

}  // namespace
}  // namespace serin::protocol
