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

}  // namespace
}  // namespace serin::protocol
