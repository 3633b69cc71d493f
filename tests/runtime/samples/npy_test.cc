// .npy files byte by byte, as numpy.save writes them, and those it never would.

#include "runtime/samples/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace serin::samples {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy(const std::string& header, const std::string& elements, char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0' + static_cast<char>(header.size()) + '\0';
  if (version > 1) file += std::string(2, '\0');
  return file + header + elements;
}
template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}
std::string error_of(const std::string& file) {
  const auto tensor = read_npy(file);
  return tensor ? "no error" : tensor.error().message;
}

TEST(Npy, NumbersInCOrder) {
  const auto tensor = read_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n", raw<float>({1, 2})));
  ASSERT_TRUE(tensor) << tensor.error().message;
  EXPECT_EQ((*tensor)->shape, (Shape{1, 2}));
  EXPECT_THAT((*tensor)->span<float>(), ElementsAre(1, 2));
}

TEST(Npy, VectorsScalarsAndVersion2) {
  const auto vector = read_npy(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n", raw<int64_t>({3, 4}), 2));
  ASSERT_TRUE(vector) << vector.error().message;
  EXPECT_THAT((*vector)->span<int64_t>(), ElementsAre(3, 4));
  const auto scalar = read_npy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", "\x01"));
  ASSERT_TRUE(scalar) << scalar.error().message;
  EXPECT_EQ((*scalar)->shape, Shape{});
  const auto nothing = read_npy(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }\n", ""));
  ASSERT_TRUE(nothing) << nothing.error().message;
}

TEST(Npy, RefusesWhatItCannotRead) {
  const std::string f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  EXPECT_THAT(error_of(""), HasSubstr("not a .npy file"));
  EXPECT_THAT(error_of(npy(f4, raw<float>({1}))), HasSubstr("shape [2] of f32 does not go with 4 bytes"));
  EXPECT_THAT(error_of(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }\n", "")), HasSubstr("'>f4'"));
  EXPECT_THAT(error_of(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }\n", "")), HasSubstr("Fortran order"));
  EXPECT_THAT(error_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }\n", "")),
              HasSubstr("does not go with"));
  EXPECT_THAT(error_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", "")), HasSubstr("no number"));
  EXPECT_THAT(error_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", "")), HasSubstr("plain numbers"));
  EXPECT_THAT(error_of(npy(f4, "").substr(0, 20)), HasSubstr("ends within its header"));
  EXPECT_THAT(error_of(npy(f4, "", 9)), HasSubstr("version 9"));
}

TEST(Npy, CutAnywhereItIsAnError) {
  const std::string file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", raw<float>({1, 2}));
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(read_npy(file.substr(0, size))) << size;
}

}  // namespace
}  // namespace serin::samples
