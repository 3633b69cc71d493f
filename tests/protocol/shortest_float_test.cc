#include "runtime/protocol/shortest_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace serin::protocol {
namespace {

std::string print(float value) {
  char text[kShortestFloatBytes];
  return {text, write_shortest_float(value, text)};
}

/// The digits alone, without zeros at either end.
std::string digits_of(std::string_view text) {
  std::string digits;
  for (const char c : text.substr(0, text.find('e')))
    if (c >= '0' && c <= '9' && !(digits.empty() && c == '0')) digits += c;
  while (digits.ends_with('0')) digits.pop_back();
  return digits;
}

/// The C++ library prints the shortest text as well, by another algorithm.
void expect_shortest(uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  const std::string text = print(value);
  float back = 0;
  ASSERT_EQ(std::from_chars(text.data(), text.data() + text.size(), back).ptr, text.data() + text.size()) << text;
  ASSERT_EQ(std::bit_cast<uint32_t>(back), bits) << text;
  char reference[64];
  const auto end = std::to_chars(reference, reference + sizeof reference, value, std::chars_format::scientific).ptr;
  ASSERT_EQ(digits_of(text), digits_of({reference, end})) << text;
  ASSERT_LE(text.size(), 17u) << text;
}

TEST(ShortestFloat, PrintsAsPeopleWrite) {
  EXPECT_EQ(print(0.f), "0");
  EXPECT_EQ(print(-0.f), "-0.0");
  EXPECT_EQ(print(1.f), "1");
  EXPECT_EQ(print(-2.5f), "-2.5");
  EXPECT_EQ(print(0.1f), "0.1");
  EXPECT_EQ(print(100.f), "100");
  EXPECT_EQ(print(16777216.f), "16777216");
  EXPECT_EQ(print(123456.7f), "123456.7");
  EXPECT_EQ(print(1e-5f), "0.00001");
  EXPECT_EQ(print(1e-6f), "1e-06");
  EXPECT_EQ(print(1e14f), "100000000000000");
  EXPECT_EQ(print(1e15f), "1e+15");
  EXPECT_EQ(print(-1e16f), "-1e+16");
  EXPECT_EQ(print(3.4028235e38f), "3.4028235e+38");
  EXPECT_EQ(print(1e-45f), "1e-45");
  EXPECT_EQ(print(-1.1754944e-38f), "-1.1754944e-38");
}

TEST(ShortestFloat, IsShortestAndReadsBack) {
  constexpr uint32_t kInfinity = 0x7f800000;
  const uint32_t step = std::getenv("SERIN_LONG") != nullptr ? 13 : 4099;
  for (uint32_t bits = 1; bits < kInfinity; bits += step) {
    expect_shortest(bits);
    expect_shortest(bits | 0x80000000);
    if (HasFatalFailure()) return;
  }
}

TEST(ShortestFloat, EightAtOnceAreWhatEachIsAlone) {
  std::mt19937 random(5);
  size_t printed = 0;
  for (int i = 0; i < 100'000; ++i) {
    float values[8];
    for (float& value : values) {  // of every size that has no exponent, many of them with few digits
      value = std::bit_cast<float>(static_cast<uint32_t>((random() & 0x807fffff) | (112 + random() % 64) << 23));
      if (random() % 4 == 0) value = std::round(value * 8) / 8;
    }
    std::string expected, expected_with_point;
    for (const float value : values) {
      expected += print(value) + ",";
      expected_with_point += print(value) + (print(value).find_first_of(".e") == std::string::npos ? ".0," : ",");
    }
    char text[8 * kShortestFloatBytes];
    char* end = text;
    if (!write_eight_floats(values, false, end)) continue;
    ++printed;
    ASSERT_EQ(std::string(text, end), expected);
    end = text;
    ASSERT_TRUE(write_eight_floats(values, true, end));
    ASSERT_EQ(std::string(text, end), expected_with_point);
  }
  if (printed == 0) GTEST_SKIP() << "no AVX-512 here";
  EXPECT_GT(printed, 1000u);
  for (const float odd : {0.f, -0.f, 1e-20f, 1e20f, HUGE_VALF, NAN}) {
    float values[8] = {1, 2, 3, 4, 5, 6, 7, odd};
    char text[8 * kShortestFloatBytes];
    char* end = text;
    EXPECT_FALSE(write_eight_floats(values, false, end));
    EXPECT_EQ(end, text);
  }
}

TEST(ShortestFloat, IsShortestAroundPowersOfTwoAndTen) {
  for (uint32_t exponent = 1; exponent < 255; ++exponent)
    for (uint32_t near = 0; near < 16; ++near) {
      expect_shortest((exponent << 23) - 8 + near);
      if (HasFatalFailure()) return;
    }
  for (int power = -44; power <= 38; ++power) {
    const auto ten = std::bit_cast<uint32_t>(std::strtof(("1e" + std::to_string(power)).c_str(), nullptr));
    for (uint32_t near = 0; near < 16 && ten + near > 8; ++near) expect_shortest(ten - 8 + near);
  }
}

}  // namespace
}  // namespace serin::protocol
