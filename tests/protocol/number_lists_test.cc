#include "runtime/protocol/number_lists.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>

namespace serin::protocol {
namespace {

/// A request whose list ends with `last`, long enough to be cut.
std::string request(std::string_view last, std::string_view before = "") {
  std::string text = R"({"inputs":[{"name":"x",)" + std::string(before) + R"("data":[)";
  for (int i = 0; i < 1500; ++i) text += "0.5, ";
  return text + std::string(last) + "]}]}";
}

TEST(NumberLists, ReadsNumbersAsTheLibraryDoes) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200'000; ++i) {
    char text[64];
    char* end = text;
    switch (i % 4) {
      case 0: end = std::to_chars(text, text + 64, std::bit_cast<float>(static_cast<uint32_t>(random()))).ptr; break;
      case 1: end = std::to_chars(text, text + 64, static_cast<float>(static_cast<int64_t>(random())) * 0x1p-62f).ptr; break;
      case 2:
        end = std::to_chars(text, text + 64, static_cast<double>(static_cast<int64_t>(random())) * 0x1p-50, std::chars_format::fixed).ptr;
        break;
      default: end = std::to_chars(text, text + 64, static_cast<int64_t>(random()) >> (random() % 64)).ptr; break;
    }
    const std::string_view printed(text, end);
    double expected = 0;
    if (std::from_chars(text, end, expected).ec != std::errc() || !std::isfinite(expected)) continue;
    const std::string whole = "{\"data\":[" + std::string(printed) + "," + std::string(5000, ' ') + std::string(printed) + "]}";
    const auto cut = cut_number_lists(whole, "data");
    ASSERT_TRUE(cut) << printed;
    ASSERT_EQ(cut->text, "{\"data\":0}");
    for (const double value : cut->lists.at(0)) ASSERT_EQ(std::bit_cast<uint64_t>(value), std::bit_cast<uint64_t>(expected)) << printed;
  }
}

TEST(NumberLists, ReadsEveryFormBesideOtherText) {
  const struct {
    std::string_view text;
    double value;
  } cases[] = {{"0", 0},
               {"-0", -0.0},
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
               {"100000000000000000000", 1e20}};  // clang-format off
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
  EXPECT_FALSE(cut_number_lists(request("1", R"("id":"data",)"), "data"));
  EXPECT_FALSE(cut_number_lists(request("1", R"("d\u0061ta":0,)"), "data")) << "the same key, written otherwise";
  EXPECT_FALSE(cut_number_lists(request("1", R"("x\"data":[1],)"), "data")) << "another key that ends so";
  EXPECT_FALSE(cut_number_lists(request("1", R"("data":[],)"), "data"));
}

TEST(NumberLists, NamesSeveralByTheirOrder) {
  const auto cut = cut_number_lists(R"({"data" : [ 1, 2 ],"b":{"data":[3]}})" + std::string(5000, ' '), "data");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->text.substr(0, 28), R"({"data" : 0,"b":{"data":1}} )");
  EXPECT_EQ(cut->lists.at(0).size(), 2u);
  EXPECT_EQ(cut->lists.at(1).back(), 3);
}

}  // namespace
}  // namespace serin::protocol
