// paddle_test.cc: what Paddle Serving's three forms of a request have apart from each other; tests/e2e/dialects/test_paddle.py asks a server.

#include "runtime/protocol/paddle/paddle.h"

#include <gtest/gtest.h>

namespace serin::protocol {
namespace {

TEST(Paddle, RefusesOutputsThatItHasNoTypeFor) {
  const Signature wide = {"m", {{"x", DType::kFloat32, {-1}}}, {{"y", DType::kUInt64, {-1}}, {"z", DType::kFloat32, {-1}}}};
  const std::string tensor = R"({"tensor": [{"name": "x", "elem_type": 1, "shape": [1], "float_data": [1]}])";
  std::string field;
  const auto all = decode_paddle(PaddleForm::kJson, tensor + "}", wide, &field);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().message, "output 'y' is UINT64, which Paddle Serving has no type for");
  EXPECT_TRUE(decode_paddle(PaddleForm::kJson, tensor + R"(, "fetch_var_names": ["z"]})", wide, &field));
  EXPECT_TRUE(decode_paddle(PaddleForm::kPipeline, R"({"key": ["x"], "value": ["[1]"]})", wide, &field)) << "numbers in a text";
}

TEST(Paddle, TakesAPipelinesTextAsItIs) {
  const Signature texts = {"m", {{"x", DType::kString, {-1}}}, {{"y", DType::kFloat32, {-1}}}};
  const auto read = [&](const std::string& value) {
    auto request = decode_paddle(PaddleForm::kPipeline, R"({"key": ["x"], "value": [")" + value + R"("]})", texts, nullptr);
    EXPECT_TRUE(request) << value << ": " << request.error().message;
    if (!request) return std::vector<std::string>();
    const auto span = request->infer.inputs[0].span<const std::string>();
    return std::vector<std::string>(span.begin(), span.end());
  };
  for (const std::string text : {"7", "true", "null", "NaN", "a word", ""}) EXPECT_EQ(read(text), std::vector<std::string>{text});
  EXPECT_EQ(read(R"(\"quoted\")"), std::vector<std::string>{"\"quoted\""});
  EXPECT_EQ(read(R"({\"b64\": \"YQ==\"})"), std::vector<std::string>{R"({"b64": "YQ=="})"});
  EXPECT_EQ(read(R"( [\"a\", \"b\"])"), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(decode_paddle(PaddleForm::kPipeline, R"({"key": ["x"], "value": ["['a']"]})", texts, nullptr)) << "as Python's str has it";
}

}  // namespace
}  // namespace serin::protocol
