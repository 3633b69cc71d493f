#include "runtime/protocol/shortest_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
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
  EXPECT_EQ(print(1e15f), "1000000000000000");
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
