#include "runtime/protocol/json/number_lists.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/protocol/json/json.h"

namespace serin::protocol {
namespace {

/// A request whose list ends with `last`, long enough to be cut.
std::string request(std::string_view last, std::string_view before = "") {
  std::string text = R"({"inputs":[{"name":"x",)" + std::string(before) + R"("data":[)";
  for (int i = 0; i < 1500; ++i) text += "0.5, ";
  return text + std::string(last) + "]}]}";
}

/// The shortest text of one of four kinds of numbers.
std::string drawn_number(std::mt19937_64& random, int kind) {
  char text[64];
  char* end = text;
  switch (kind) {
    case 0: end = std::to_chars(text, text + 64, std::bit_cast<float>(static_cast<uint32_t>(random()))).ptr; break;
    case 1: end = std::to_chars(text, text + 64, static_cast<float>(static_cast<int64_t>(random())) * 0x1p-62f).ptr; break;
    case 2:
      end = std::to_chars(text, text + 64, static_cast<double>(static_cast<int64_t>(random())) * 0x1p-50, std::chars_format::fixed).ptr;
      break;
    default: end = std::to_chars(text, text + 64, static_cast<int64_t>(random()) >> (4 + random() % 60)).ptr; break;
  }
  return {text, end};
}

TEST(NumberLists, ReadsNumbersAsTheLibraryDoes) {
  std::mt19937_64 random(3);
  for (int list = 0; list < 1000; ++list) {
    std::string text = "{\"data\":[0,0,0,0";
    std::vector<double> expected(4);
    std::string printed;
    for (int i = 0; i < 200; ++i) {
      const std::string number = drawn_number(random, i % 4);
      double value = 0;
      if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc() || !std::isfinite(value)) continue;
      expected.push_back(value);
      text += (i % 3 == 0 ? "," : " ,\n\t") + number;
      printed = number;
    }
    text += "," + std::string(5000, ' ') + printed + "]}";
    expected.push_back(expected.back());
    const auto cut = cut_number_lists(text, "data");
    ASSERT_TRUE(cut) << text;
    ASSERT_EQ(cut->text, "{\"data\":0 }");
    const auto read = cut->lists.at(0);
    ASSERT_EQ(read.size(), expected.size());
    for (size_t i = 0; i < read.size(); ++i) ASSERT_EQ(std::bit_cast<uint64_t>(read[i]), std::bit_cast<uint64_t>(expected[i])) << text;
  }
}

TEST(NumberLists, ReadsEveryFormBesideOtherText) {
  const struct {
    std::string_view text;
    double value;
  } cases[] = {{"0", 0},
               {"-0", 0},
               {"-0.0", -0.0},
               {"7", 7},
               {"12345678", 12345678},
               {"123456789", 123456789},
               {"0.1", 0.1},
               {"-1.5", -1.5},
               {"1e5", 1e5},
               {"1E-5", 1e-5},
               {"1.25e+3", 1250},
               {"99999999.99999", 99999999.99999},
               {"1.2345678901234", 1.2345678901234},
               {"0.00000000000001", 1e-14},
               {"12345678.123456", 12345678.123456},
               {"0.123456789012345678", 0.123456789012345678},
               {"-123456789012345678", -123456789012345678.0},
               {"1234567890123456789", 1234567890123456789.0},
               {"18446744073709551615", 0x1p64},
               {"-100000000000000000001", -1e20}};  // clang-format off
  for (const auto& [text, value] : cases) {
    for (const std::string_view behind : {"", " ", "\n\t\r "}) {
      const auto cut = cut_number_lists(request(std::string(text) + std::string(behind)), "data");
      ASSERT_TRUE(cut) << text;
      EXPECT_EQ(cut->lists.at(0).size(), 1501u);
      EXPECT_EQ(std::bit_cast<uint64_t>(cut->lists.at(0).back()), std::bit_cast<uint64_t>(value)) << text;
    }
  }
}  // clang-format on

TEST(NumberLists, LeavesWhatIsNoFlatListOfNumbers) {
  for (const std::string_view last :
       {"",     "01",    "+1",  ".5", "1.",  "1.e5", "1e", "1e+", "-",   "--1", "0x10", "NaN",   "Infinity", "1e400", "null",
        "true", "\"1\"", "[1]", "{}", "1 2", "1,",   ",1", "1;",  "1_0", "-01", "00",   "1.5.5", "1..5",     "0.5x",  "1d"})
    EXPECT_FALSE(cut_number_lists(request(last), "data")) << last;
  EXPECT_FALSE(cut_number_lists(request("1").substr(0, 5000), "data")) << "cut off";
  EXPECT_FALSE(cut_number_lists("{\"data\":[1,2]}", "data")) << "not worth it";
  EXPECT_FALSE(cut_number_lists(request("1", R"("data":3,)"), "data")) << "one of them is no list";
  EXPECT_FALSE(cut_number_lists(request("1", R"("data":[0.12345678901234567],)"), "data")) << "numbers that a parser reads faster";
  EXPECT_FALSE(cut_number_lists(request("1", R"("d\u0061ta":0,)"), "data")) << "the same key, written otherwise";
  EXPECT_FALSE(cut_number_lists(request("1", R"("x\"data":[1],)"), "data")) << "another key that ends so";
  EXPECT_FALSE(cut_number_lists(request("1", R"("data":[],)"), "data"));
}

TEST(NumberLists, NamesSeveralByTheirOrder) {
  const auto cut = cut_number_lists(R"({"data" : [ 1, 2 ],"b":{"data":[3]}})" + std::string(5000, ' '), "data");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->text.substr(0, 28), R"({"data" : 0 ,"b":{"data":1 })");
  EXPECT_EQ(cut->lists.at(0).size(), 2u);
  EXPECT_EQ(cut->lists.at(1).back(), 3);
  EXPECT_TRUE(cut_number_lists(request("1", R"("id":"data","ids":["data" , "data"],)"), "data")) << "a value that is called so";
}

TEST(NumberLists, LeavesADigitBehindAListToTheParser) {
  auto cut = cut_number_lists(R"({"data":[1,2]0})" + std::string(5000, ' '), "data");
  ASSERT_TRUE(cut);
  EXPECT_FALSE(parse_json(cut->text, 8));
}

/// Rows of twenty numbers, long enough to be cut.
std::string rows(std::string_view behind = "") {
  std::string text = R"({"instances":[)";
  for (int i = 0; i < 100; ++i) text += "[0.5,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],";
  return text + "[1]" + std::string(behind) + "]}";
}

TEST(NumberLists, LeavesWhatMightBeTakenForAMark) {
  ASSERT_TRUE(cut_inner_lists(rows()));
  EXPECT_FALSE(cut_inner_lists(rows(R"(,"\u007f0")"))) << "a mark, written otherwise";
  EXPECT_FALSE(
      cut_inner_lists(rows(",\"\x7f"
                           "0\"")))
      << "a mark";
  EXPECT_FALSE(cut_inner_lists(rows(",{[1] : 2}"))) << "a list is no key";
}

TEST(NumberLists, TakesNumbersAsTheParserDoes) {
  for (const std::string token : {"0",
                                  "-0",
                                  "-0.0",
                                  "-0e0",
                                  "0e5",
                                  "1",
                                  "-1",
                                  "12345678",
                                  "123456789",
                                  "999999999999999999",
                                  "9223372036854775808",
                                  "-9223372036854775808",
                                  "-9223372036854775809",
                                  "18446744073709551615",
                                  "18446744073709551616",
                                  "100000000000000000001",
                                  "1e19",
                                  "1e400",
                                  "1e-400",
                                  "4.9e-324",
                                  "0.1",
                                  "1.7976931348623157e308",
                                  "01",
                                  "1.",
                                  "-",
                                  "1e",
                                  "+1",
                                  ".5"}) {
    const auto cut = cut_number_lists(request(token), "data");
    std::string text = "[" + token + "]";
    const auto document = parse_json(text, 8);
    if (!cut) continue;  // the parser reads it
    ASSERT_TRUE(document) << token;
    EXPECT_EQ(std::bit_cast<uint64_t>(cut->lists.at(0).back()), std::bit_cast<uint64_t>(document->root.at(0).get_double().value_unsafe()))
        << token;
  }
}

}  // namespace
}  // namespace serin::protocol
