#include "runtime/protocol/json/json_pointer.h"

#include <gtest/gtest.h>

namespace serin::protocol {
namespace {

constexpr char kJson[] = R"({"id": "7", "parameters": {"language": "de", "a/b": 2.50, "deep": [1, {"x": true}], "none": null}, "n": -3 })";

TEST(JsonPointer, ReadsTextsNumbersAndBooleans) {
  JsonPointerReader reader;
  EXPECT_EQ(reader.read(kJson, "/parameters/language"), "de");
  EXPECT_EQ(reader.read(kJson, "/parameters/a~1b"), "2.50") << "as it is written";
  EXPECT_EQ(reader.read(kJson, "/parameters/deep/1/x"), "true");
  EXPECT_EQ(reader.read(kJson, "/n"), "-3");
  EXPECT_EQ(reader.read(R"({"text": "\u00e9\n"})", "/text"), "\u00e9\n");
}

TEST(JsonPointer, FindsNothingInTheRest) {
  JsonPointerReader reader;
  for (const char* pointer : {"/parameters", "/parameters/none", "/parameters/deep", "/parameters/deep/7", "/missing", "/id/x", "", "id"})
    EXPECT_EQ(reader.read(kJson, pointer), "") << pointer;
  for (const char* json : {"", " ", "{", "7", "[1, 2", R"({"id": )", R"({"id": 1x})", "\xff\xfe"})
    EXPECT_EQ(reader.read(json, "/id"), "") << json;
  EXPECT_EQ(reader.read(kJson, "/id"), "7") << "and still reads the next one";
}

TEST(JsonPointer, ReadsLargeDocumentsAfterSmallOnes) {
  JsonPointerReader reader;
  EXPECT_EQ(reader.read(R"({"a": 1})", "/a"), "1");
  const std::string large = R"({"data": [)" + std::string(500'000, '7') + R"(], "a": "end"})";
  EXPECT_EQ(reader.read(large, "/a"), "end");
}

TEST(JsonPointer, RedactsWithoutTouchingTheRest) {
  JsonPointerReader reader;
  const std::vector<std::string> places{"/user", "/parameters/a~1b", "/list/1/secret", "/deep", "/flag", "/none", "/missing/x"};
  EXPECT_EQ(
      *reader.redact(R"({"user" : "Li \"Ming\"" , "n":1.50, "parameters": {"a/b":[1,[2]], "c": {"user": "stays"}}, )"
                     R"("list": [{"secret": 1}, {"secret" :-2e5 , "x": 1}], "deep": {"k": "v", "l": [{}]}, "flag": true, "none": null})",
                     places),
      R"({"user" : "" , "n":1.50, "parameters": {"a/b":[], "c": {"user": "stays"}}, )"
      R"("list": [{"secret": 1}, {"secret" :0 , "x": 1}], "deep": {}, "flag": false, "none": null})");
  EXPECT_EQ(*reader.redact(R"({"user": "a", "user": "b"})", places), R"({"user": "", "user": ""})") << "every one of a repeated key";
  EXPECT_EQ(*reader.redact(R"({"us\u0065r": "a"})", places), R"({"us\u0065r": ""})") << "however it is written";
  EXPECT_EQ(*reader.redact("[1, 2]", places), "[1, 2]");
}

TEST(JsonPointer, RedactsNothingThatIsNotJson) {
  JsonPointerReader reader;
  for (const char* text :
       {"", " ", "{", R"({"user": )", R"({"user": "a")", R"({"user": "a"} 7)", "user=a", "\x08\x01", R"({"a": [1, 2}, "user": "b"})"})
    EXPECT_FALSE(reader.redact(text, {"/user"})) << text;
}

}  // namespace
}  // namespace serin::protocol
