// JSON as values that are read where they stand: what is JSON, what is not, and numbers.

#include "runtime/formats/json_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace serin::formats {
namespace {

using ::testing::HasSubstr;

JsonDocument parse(std::string text) {
  auto document = JsonDocument::parse(std::move(text));
  EXPECT_TRUE(document) << document.error().message;
  return document ? *document : *JsonDocument::parse("null");
}

TEST(Json, ReadsValuesInTheirOrder) {
  const JsonDocument document = parse(R"( {"a": [1, {"b": []}, "x"], "c": null, "d": {"e": true, "f": false}} )");
  const Json root = document.root();
  std::vector<std::string> keys;
  for (const auto& [key, value] : root.members()) keys.push_back(key);
  EXPECT_THAT(keys, ::testing::ElementsAre("a", "c", "d"));
  EXPECT_EQ(root["a"].size(), 3U);
  std::vector<bool> kinds;
  for (const Json& each : root["a"].items()) kinds.push_back(each.is_number());
  EXPECT_THAT(kinds, ::testing::ElementsAre(true, false, false));
  EXPECT_TRUE(root["c"].is_null());
  EXPECT_EQ(root["d"]["e"].boolean(), true);
  EXPECT_FALSE(root["d"]["g"]);
  EXPECT_FALSE(root["a"]["b"]);
}

TEST(Json, DecodesTexts) {
  EXPECT_EQ(parse(R"("a\"\\\/\b\f\n\r\tA\u00e9\u20ac\ud83d\ude00\ud83d!")").root().text(),
            "a\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001F600\uFFFD!");
  EXPECT_EQ(parse(R"({"\u0061": 1})").root()["a"].integer(), 1);
}

TEST(Json, ConvertsNumbersExactly) {
  EXPECT_EQ(parse("-9223372036854775808").root().integer(), INT64_MIN);
  EXPECT_FALSE(parse("9223372036854775808").root().integer());
  EXPECT_FALSE(parse("1.5").root().integer());
  EXPECT_EQ(parse("0.1").root().number_f32(), 0.1F);
  EXPECT_EQ(parse("1e-5").root().number(), 1e-5);
  EXPECT_EQ(parse("1e999").root().number(), INFINITY);
  EXPECT_EQ(parse("-1e999").root().number(), -INFINITY);
  EXPECT_EQ(parse("1e-999").root().number(), 0);
  EXPECT_EQ(parse("-Infinity").root().number(), -INFINITY);
  EXPECT_TRUE(std::isnan(*parse("NaN").root().number()));
}

TEST(Json, RefusesWhatIsNone) {
  for (const char* text :
       {"",   " ", "{",  "}",  "[1,]", "[1 2]", "{\"a\"}", "{\"a\":}",  "{\"a\":1,}", "{1:2}", "01",  "1.",
        "1e", "-", "+1", ".5", "nul",  "\"",    "\"\\q\"", "\"\\u12\"", "\"\n\"",     "[1] 2", "'a'", "{\"a\":1 \"b\":2}",
        "Inf"})
    EXPECT_FALSE(JsonDocument::parse(text)) << text;
  EXPECT_FALSE(JsonDocument::parse("\"\xff\""));
  EXPECT_THAT(JsonDocument::parse(R"({"a": 1, "\u0061": 2})").error().message, HasSubstr("'a' occurs twice"));
  EXPECT_TRUE(JsonDocument::parse(std::string(100, '[') + std::string(100, ']')));
  EXPECT_THAT(JsonDocument::parse(std::string(1'000'000, '[')).error().message, HasSubstr("nested more than 128 deep"));
}

TEST(Json, SurvivesTruncation) {
  const std::string whole = R"({"a": [1, 2.5e-3, "x\u0041"], "b": {"c": [true, null]}})";
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(JsonDocument::parse(whole.substr(0, size))) << size;
}

}  // namespace
}  // namespace serin::formats
