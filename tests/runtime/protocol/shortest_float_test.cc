#include "runtime/protocol/json/shortest_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

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
  EXPECT_EQ(print(0.f), "0.0");
  EXPECT_EQ(print(-0.f), "-0.0");
  EXPECT_EQ(print(1.f), "1.0");
  EXPECT_EQ(print(-2.5f), "-2.5");
  EXPECT_EQ(print(0.1f), "0.1");
  EXPECT_EQ(print(100.f), "100.0");
  EXPECT_EQ(print(16777216.f), "16777216.0");
  EXPECT_EQ(print(123456.7f), "123456.7");
  EXPECT_EQ(print(1e-5f), "0.00001");
  EXPECT_EQ(print(1e-6f), "1e-06");
  EXPECT_EQ(print(1e12f), "1000000000000.0");
  EXPECT_EQ(print(-8388608e6f), "-8388608000000.0");
  EXPECT_EQ(print(1e14f), "1e+14");
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

bool writes_many() {
  const std::vector<float> ones(8, 1.f);
  char text[8 * kShortestFloatBytes];
  char* end = text;
  return write_floats(ones.data(), ones.size(), end) == ones.size();
}

/// As many as are written are written as each of them alone.
size_t expect_as_alone(const std::vector<float>& values) {
  std::vector<char> text(values.size() * kShortestFloatBytes), expected = text;
  char* end = text.data();
  const size_t written = write_floats(values.data(), values.size(), end);
  char* at = expected.data();
  for (size_t i = 0; i < written; ++i) {
    at = write_shortest_float(values[i], at);
    *at++ = ',';
  }
  EXPECT_EQ(std::string_view(text.data(), end), std::string_view(expected.data(), at));
  return written;
}

TEST(ShortestFloat, ManyAtOnceAreWhatEachIsAlone) {
  if (!writes_many()) GTEST_SKIP() << "no AVX2 here";
  constexpr size_t kMany = 256;
  const uint32_t step = std::getenv("SERIN_LONG") != nullptr ? 13 : 4099;
  size_t tried = 0, written = 0;
  for (uint64_t first = 0; first < uint64_t{1} << 32; first += kMany * step) {
    std::vector<float> values(kMany);
    for (size_t i = 0; i < kMany; ++i) values[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i * step));
    tried += kMany;
    written += expect_as_alone(values);
    if (HasFailure()) return;
  }
  EXPECT_GT(written, tried / 10 * 9);  // the rest is subnormal or not finite
}

TEST(ShortestFloat, ManyAtOnceAroundPowersOfTwo) {
  if (!writes_many()) GTEST_SKIP() << "no AVX2 here";
  for (uint32_t exponent = 2; exponent < 255; ++exponent) {
    std::vector<float> values(16);
    for (uint32_t near = 0; near < values.size(); ++near) values[near] = std::bit_cast<float>((exponent << 23) - 8 + near);
    EXPECT_EQ(expect_as_alone(values), 16u);
  }
}

TEST(ShortestFloat, ManyAtOnceMayBeAnythingFinite) {
  if (!writes_many()) GTEST_SKIP() << "no AVX2 here";
  std::mt19937 random(5);
  const float some[] = {0.f,    -0.f,   1.f,       -1.f,          0.5f,           16777216.f,      1e-4f, 1e-5f,
                        1e-6f,  1e10f,  -1e-7f,    3.4028235e38f, 1.1754944e-38f, -1.1754944e-38f, 100.f, -0.000012345678f,
                        2e-38f, 1e-20f, 9999999.f, 0.099999994f,  1e9f,           0.33333334f,     1e38f, -123.456f};
  for (int i = 0; i < 20'000; ++i) {
    std::vector<float> values(random() % 300);
    for (float& value : values) {
      value = some[random() % std::size(some)];
      if (random() % 2 == 0) value = std::round(static_cast<float>(static_cast<int32_t>(random())) * 0x1p-20f) / 8;
    }
    EXPECT_EQ(expect_as_alone(values), values.size() / 8 * 8);  // none of them has to be written alone
    if (HasFailure()) return;
  }
}

TEST(ShortestFloat, ManyAtOnceEndBeforeOneThatIsWrittenAlone) {
  if (!writes_many()) GTEST_SKIP() << "no AVX2 here";
  for (const float odd : {HUGE_VALF, -HUGE_VALF, NAN, 1e-45f, -1.1754942e-38f}) {
    for (size_t place = 0; place < 300; ++place) {
      std::vector<float> values(300, 2.5f);
      values[place] = odd;
      EXPECT_EQ(expect_as_alone(values), std::min<size_t>(place / 8 * 8, 296)) << odd;
    }
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
