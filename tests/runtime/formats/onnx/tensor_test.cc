// M7: tensors in every form that the format has, and in forms that it does not have.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>

#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<graph::ConstantPtr> read_tensor(const Encoder& tensor) {
  const std::string path = ::testing::TempDir() + "onnx_tensor_test.pb";
  std::ofstream(path, std::ios::binary) << tensor.str();
  return read_tensor_file(path);
}
std::string tensor_error(const Encoder& tensor) {
  const auto constant = read_tensor(tensor);
  return constant ? "no error" : constant.error().message;
}

Encoder header(int64_t data_type, const std::vector<int64_t>& dims) {
  Encoder out;
  for (const int64_t dim : dims) out.number(1, dim);
  return out.number(2, data_type);
}
std::string varints(const std::vector<int64_t>& values) {
  Encoder out;
  for (const int64_t value : values) out.varint(static_cast<uint64_t>(value));
  return out.str();
}

TEST(Tensor, FloatsPackedAndOneByOne) {
  const auto packed = read_tensor(header(1, {2}).bytes(4, raw_bytes<float>({1.5F, -2})));
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_THAT((*packed)->span<float>(), ElementsAre(1.5F, -2));
  const auto single = read_tensor(header(1, {2}).real(4, 1.5F).real(4, -2));
  ASSERT_TRUE(single) << single.error().message;
  EXPECT_THAT((*single)->span<float>(), ElementsAre(1.5F, -2));
}

TEST(Tensor, SmallIntegersLiveInInt32Data) {
  const auto bytes = read_tensor(header(3, {3}).bytes(5, varints({-128, 0, 127})));
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_THAT((*bytes)->span<int8_t>(), ElementsAre(-128, 0, 127));
  const auto halves = read_tensor(header(10, {2}).number(5, 0x3c00).number(5, 0xbc00));
  ASSERT_TRUE(halves) << halves.error().message;
  EXPECT_THAT((*halves)->span<uint16_t>(), ElementsAre(0x3c00, 0xbc00));
}

TEST(Tensor, WideIntegers) {
  const auto signed_ones = read_tensor(header(7, {2}).bytes(7, varints({INT64_MIN, INT64_MAX})));
  ASSERT_TRUE(signed_ones) << signed_ones.error().message;
  EXPECT_THAT((*signed_ones)->span<int64_t>(), ElementsAre(INT64_MIN, INT64_MAX));
  const auto unsigned_ones = read_tensor(header(12, {1}).number(11, 4'000'000'000));
  ASSERT_TRUE(unsigned_ones) << unsigned_ones.error().message;
  EXPECT_THAT((*unsigned_ones)->span<uint32_t>(), ElementsAre(4'000'000'000U));
}

TEST(Tensor, DoublesStringsAndNothing) {
  const auto doubles = read_tensor(header(11, {1}).bytes(10, raw_bytes<double>({0.1})));
  ASSERT_TRUE(doubles) << doubles.error().message;
  EXPECT_THAT((*doubles)->span<double>(), ElementsAre(0.1));
  const auto strings = read_tensor(header(8, {2}).bytes(6, "finch").bytes(6, ""));
  ASSERT_TRUE(strings) << strings.error().message;
  EXPECT_THAT((*strings)->strings, ElementsAre("finch", ""));
  const auto nothing = read_tensor(header(1, {0, 5}));
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_EQ((*nothing)->elements(), 0);
}

TEST(Tensor, NarrowTypesLiePackedInFilesAndApartInMemory) {
  const auto raw = read_tensor(header(22, {5}).bytes(9, "\x9e\x70\x0f"));  // i4: -2 -7 0 7 -1
  ASSERT_TRUE(raw) << raw.error().message;
  EXPECT_THAT((*raw)->span<int8_t>(), ElementsAre(-2, -7, 0, 7, -1));
  const auto typed = read_tensor(header(21, {3}).bytes(5, varints({0x9e, 0x0f})));  // u4
  ASSERT_TRUE(typed) << typed.error().message;
  EXPECT_THAT((*typed)->span<uint8_t>(), ElementsAre(14, 9, 15));
  const auto quarters = read_tensor(header(26, {6}).bytes(9, "\xe4\x02"));  // i2: 0 1 -2 -1 -2 0
  ASSERT_TRUE(quarters) << quarters.error().message;
  EXPECT_THAT((*quarters)->span<int8_t>(), ElementsAre(0, 1, -2, -1, -2, 0));
  const auto floats = read_tensor(header(17, {2}).bytes(9, "\x7f\x80"));  // e4m3fn: whole bytes
  ASSERT_TRUE(floats) << floats.error().message;
  EXPECT_THAT((*floats)->span<uint8_t>(), ElementsAre(0x7f, 0x80));
}

TEST(Tensor, NarrowTypesAreCounted) {
  EXPECT_THAT(tensor_error(header(22, {5}).bytes(9, "ab")), HasSubstr("needs 3 bytes, raw_data has 2"));
  EXPECT_THAT(tensor_error(header(22, {5}).bytes(9, "abcd")), HasSubstr("needs 3 bytes, raw_data has 4"));
  EXPECT_THAT(tensor_error(header(25, {9}).bytes(5, varints({1, 2}))), HasSubstr("needs 3 elements, 2 are there"));
  EXPECT_THAT(tensor_error(header(22, {int64_t{1} << 62}).bytes(9, "ab")), HasSubstr("raw_data has 2"));
}

TEST(Tensor, AnyByteOtherThanZeroIsTrue) {
  const auto bools = read_tensor(header(9, {3}).bytes(9, std::string("\0\x01\x7f", 3)));
  ASSERT_TRUE(bools) << bools.error().message;
  EXPECT_THAT((*bools)->span<uint8_t>(), ElementsAre(0, 1, 1));
}

TEST(Tensor, IsAlignedWhereverItLiesInTheFile) {
  for (size_t shift = 0; shift < 8; ++shift) {
    const auto constant = read_tensor(header(1, {2}).bytes(8, std::string(shift, 'n')).bytes(9, raw_bytes<float>({1, 2})));
    ASSERT_TRUE(constant) << constant.error().message;
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*constant)->data().get()) % 64, 0U);
    EXPECT_THAT((*constant)->span<float>(), ElementsAre(1, 2));
  }
}

TEST(Tensor, M7ShapesThatCannotBe) {
  EXPECT_THAT(tensor_error(header(1, {-1}).bytes(9, "")), HasSubstr("negative dimension"));
  EXPECT_THAT(tensor_error(header(1, {INT64_MAX, 8}).bytes(9, "")), HasSubstr("64 bits"));
  EXPECT_THAT(tensor_error(header(1, {INT64_MAX}).bytes(9, "")), HasSubstr("64 bits"));  // elements fit, bytes do not
  EXPECT_THAT(tensor_error(header(1, std::vector<int64_t>(1000, 1)).bytes(9, "abcd")), HasSubstr("1000 dimensions"));
}

TEST(Tensor, M7ClaimsOfSizeAllocateNothing) {
  EXPECT_THAT(tensor_error(header(1, {int64_t{1} << 40}).bytes(9, "abcd")), HasSubstr("raw_data has 4"));
  EXPECT_THAT(tensor_error(header(1, {int64_t{1} << 40}).bytes(4, raw_bytes<float>({1}))), HasSubstr("1 are there"));
  EXPECT_THAT(tensor_error(header(8, {int64_t{1} << 40}).bytes(6, "s")), HasSubstr("1 are there"));
  EXPECT_THAT(tensor_error(header(1, {int64_t{1} << 40})), HasSubstr("0 are there"));
}

TEST(Tensor, M7ElementsInTheWrongPlace) {
  EXPECT_THAT(tensor_error(header(1, {1}).bytes(9, "abcd").real(4, 1)), HasSubstr("more than one field"));
  EXPECT_THAT(tensor_error(header(1, {1}).number(7, 1)), HasSubstr("a field that float elements do not go in"));
  EXPECT_THAT(tensor_error(header(8, {1}).bytes(9, "a")), HasSubstr("strings as raw bytes"));
  EXPECT_THAT(tensor_error(header(1, {1}).bytes(4, "abc")), HasSubstr("1 elements, 0 are there"));
  EXPECT_THAT(tensor_error(header(1, {1}).bytes(9, "abcd").bytes(9, "abcd")), HasSubstr("comes twice"));
}

TEST(Tensor, M7TypesThatAreNotSupported) {
  EXPECT_THAT(tensor_error(header(14, {1}).bytes(9, "12345678")), HasSubstr("complex64 is not supported"));
  EXPECT_THAT(tensor_error(header(99, {1}).bytes(9, "a")), HasSubstr("element type 99 does not exist"));
  EXPECT_THAT(tensor_error(Encoder()), HasSubstr("element type 0 does not exist"));
}

TEST(Tensor, M8ExternalDataOfATensorFileIsRefused) {
  EXPECT_THAT(tensor_error(header(1, {1}).message(13, Encoder().bytes(1, "location").bytes(2, "w")).number(14, 1)),
              HasSubstr("not allowed"));
}

}  // namespace
}  // namespace serin::formats
