// Types of eight bits and fewer: every code of every type there and back, and the tables of ONNX's Cast for what is out of range.

#include "kernels/narrow.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/harness.h"

namespace serin::kernels {
namespace {

constexpr DType kFloats[] = {DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ, DType::kFloat4E2M1};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

int codes(DType dtype) { return 1 << dtype_bits(dtype); }

TEST(Narrow, EveryFloatSurvivesTheWayThereAndBack) {
  for (const DType dtype : kFloats) {
    for (int code = 0; code < codes(dtype); ++code) {
      const auto byte = static_cast<uint8_t>(code);
      const double value = narrow_to_double(dtype, byte);
      const uint8_t back = narrow_from_double(dtype, value, /*saturate=*/false);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(narrow_to_double(dtype, back))) << dtype_name(dtype) << " " << code;
      else
        EXPECT_EQ(back, byte) << dtype_name(dtype) << " " << code << " = " << value;
    }
  }
}

TEST(Narrow, NeighboursRoundToTheNearerAndHalvesToEven) {
  for (const DType dtype : kFloats) {
    const uint8_t largest = narrow_format(dtype).largest;
    for (uint8_t code = 0; code < largest; ++code) {
      const double low = narrow_to_double(dtype, code), high = narrow_to_double(dtype, static_cast<uint8_t>(code + 1));
      const double half = (low + high) / 2;
      EXPECT_EQ(narrow_from_double(dtype, std::nextafter(half, low), true), code) << dtype_name(dtype);
      EXPECT_EQ(narrow_from_double(dtype, std::nextafter(half, high), true), code + 1) << dtype_name(dtype);
      EXPECT_EQ(narrow_from_double(dtype, half, true), code % 2 == 0 ? code : code + 1) << dtype_name(dtype);
    }
  }
}

struct Range {
  DType dtype;
  double x;
  uint8_t saturated, not_saturated;
};
constexpr Range kRange[] = {
    {DType::kFloat8E4M3FN, kInf, 0x7e, 0x7f},   {DType::kFloat8E4M3FN, -kInf, 0xfe, 0xff},   {DType::kFloat8E4M3FN, 1e6, 0x7e, 0x7f},
    {DType::kFloat8E4M3FN, 464, 0x7e, 0x7e},    {DType::kFloat8E4M3FN, 465, 0x7e, 0x7f},     {DType::kFloat8E4M3FN, -0.0, 0x80, 0x80},
    {DType::kFloat8E4M3FNUZ, kInf, 0x7f, 0x80}, {DType::kFloat8E4M3FNUZ, -1e6, 0xff, 0x80},  {DType::kFloat8E4M3FNUZ, -0.0, 0, 0},
    {DType::kFloat8E4M3FNUZ, -1e-9, 0, 0},      {DType::kFloat8E4M3FNUZ, kNan, 0x80, 0x80},  {DType::kFloat8E5M2, kInf, 0x7b, 0x7c},
    {DType::kFloat8E5M2, -1e9, 0xfb, 0xfc},     {DType::kFloat8E5M2, 61439, 0x7b, 0x7b},     {DType::kFloat8E5M2, 61440, 0x7b, 0x7c},
    {DType::kFloat8E5M2FNUZ, kInf, 0x7f, 0x80}, {DType::kFloat8E5M2FNUZ, 1e300, 0x7f, 0x80}, {DType::kFloat4E2M1, kInf, 0x07, 0x07},
    {DType::kFloat4E2M1, -9, 0x0f, 0x0f},       {DType::kFloat4E2M1, kNan, 0x08, 0x08},      {DType::kFloat4E2M1, 0.25, 0x00, 0x00},
};

TEST(Narrow, BeyondTheRange) {
  for (const Range& each : kRange) {
    EXPECT_EQ(narrow_from_double(each.dtype, each.x, true), each.saturated) << dtype_name(each.dtype) << " " << each.x;
    EXPECT_EQ(narrow_from_double(each.dtype, each.x, false), each.not_saturated) << dtype_name(each.dtype) << " " << each.x;
  }
}

TEST(Narrow, PowersOfTwo) {
  for (int code = 0; code < 255; ++code) {
    const double value = narrow_to_double(DType::kFloat8E8M0, static_cast<uint8_t>(code));
    for (const RoundMode mode : {RoundMode::kUp, RoundMode::kDown, RoundMode::kNearest}) {
      EXPECT_EQ(e8m0_from_double(value, true, mode), code);
    }
  }
  EXPECT_EQ(e8m0_from_double(1.25, true, RoundMode::kUp), 128);
  EXPECT_EQ(e8m0_from_double(1.25, true, RoundMode::kDown), 127);
  EXPECT_EQ(e8m0_from_double(1.49, true, RoundMode::kNearest), 127);
  EXPECT_EQ(e8m0_from_double(1.5, true, RoundMode::kNearest), 128);
  EXPECT_EQ(e8m0_from_double(0, true, RoundMode::kUp), 0);
  EXPECT_EQ(e8m0_from_double(0, false, RoundMode::kNearest), 255);
  EXPECT_EQ(e8m0_from_double(kInf, true, RoundMode::kUp), 254);
  EXPECT_EQ(e8m0_from_double(kInf, false, RoundMode::kUp), 255);
  EXPECT_EQ(e8m0_from_double(1e40, true, RoundMode::kUp), 254);
  EXPECT_EQ(e8m0_from_double(kNan, true, RoundMode::kUp), 255);
}

TEST(Narrow, IntegersWrapAndHaveTheirSignInMemory) {
  EXPECT_EQ(narrow_from_integer(DType::kInt4, 9), 0xf9);
  EXPECT_EQ(narrow_from_integer(DType::kInt4, -9), 0x07);
  EXPECT_EQ(narrow_from_integer(DType::kUInt4, -1), 0x0f);
  EXPECT_EQ(narrow_from_integer(DType::kInt2, 2), 0xfe);
  EXPECT_EQ(narrow_from_integer(DType::kUInt2, 7), 0x03);
  EXPECT_EQ(narrow_to_double(DType::kInt4, 0x0d), -3);  // the low bits say it all
  EXPECT_EQ(packed_bytes(DType::kInt4, 5), 3U);
  EXPECT_EQ(packed_bytes(DType::kUInt2, 5), 2U);
  EXPECT_EQ(packed_bytes(DType::kUInt2, 0), 0U);
}

// ---- casts by name ----

Attributes attributes(int64_t saturate) {
  Attributes result;
  result.set("saturate", saturate);
  return result;
}

std::vector<std::string> cast_to_strings(const TensorView& x) {
  std::vector<std::string> y(static_cast<size_t>(x.elements()));
  TensorView out{DType::kString, x.shape, y.data()};
  PackedWeights weights;
  PrepareContext context{&weights, 1};
  const auto prepared = test::reference_backend().prepare({Generic{"Cast", {}}, {{x.dtype, x.shape}}, {{out.dtype, out.shape}}}, context);
  Stream stream;
  EXPECT_FALSE(prepared.kernel->run(stream, {&x, 1}, {&out, 1}));
  return y;
}

TEST(Cast, SpellsNumbersAsNumPyDoes) {
  const std::vector<float> x = {0.f, -0.f, 1.f, 314.15926f, 1e6f, 1e16f, 1e-5f, 1e-4f, 0.1f, INFINITY, -INFINITY, NAN, 3.4028235e38f};
  const test::Tensor tensor(Shape{static_cast<int64_t>(x.size())}, x);
  const std::vector<std::string> expected = {"0.0",    "-0.0", "1.0", "314.15927", "1000000.0", "1e+16",        "1e-05",
                                             "0.0001", "0.1",  "inf", "-inf",      "nan",       "3.4028235e+38"};
  EXPECT_EQ(cast_to_strings(tensor.view()), expected);
  const test::Tensor integers(Shape{2}, std::vector<int64_t>{-7, INT64_MAX});
  EXPECT_EQ(cast_to_strings(integers.view()), (std::vector<std::string>{"-7", "9223372036854775807"}));
}

Fault cast_from_string(std::string text, const TensorView& y) {
  const TensorView x{DType::kString, y.shape, &text};
  TensorView out = y;
  PackedWeights weights;
  PrepareContext context{&weights, 1};
  const auto prepared =
      test::reference_backend().prepare({Generic{"Cast", attributes(1)}, {{x.dtype, x.shape}}, {{y.dtype, y.shape}}}, context);
  Stream stream;
  return prepared.kernel->run(stream, {&x, 1}, {&out, 1});
}

template <class T>
T number(const std::string& text) {
  T value{};
  EXPECT_FALSE(cast_from_string(text, {dtype_of<T>(), {}, &value})) << text;
  return value;
}

TEST(Cast, ReadsNumbersFromStrings) {
  EXPECT_EQ(number<float>("3.14"), 3.14f);
  EXPECT_EQ(number<float>(" 1E8 "), 1e8f);
  EXPECT_EQ(number<double>("+1e-5"), 1e-5);
  EXPECT_EQ(number<float>("-INF"), -INFINITY);
  EXPECT_EQ(number<float>("+Inf"), INFINITY);
  EXPECT_TRUE(std::isnan(number<float>("NaN")));
  EXPECT_EQ(number<double>("1e999"), kInf);
  EXPECT_EQ(number<int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(number<int32_t>("100.5"), 100);
  EXPECT_EQ(number<uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_TRUE(number<bool>("True"));
}

TEST(Cast, SaysWhichStringIsNoNumber) {
  float value = 0;
  for (const std::string text : {"Hello World!", "", "1.5x", "0x10"}) {
    const Fault fault = cast_from_string(text, {DType::kFloat32, {}, &value});
    ASSERT_TRUE(fault) << text;
    EXPECT_NE(fault->find("'" + text + "'"), std::string::npos) << *fault;
  }
}

}  // namespace
}  // namespace serin::kernels
