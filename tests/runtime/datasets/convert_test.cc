// Cells to elements: exact conversions, shapes, and what does not fit.

#include "runtime/datasets/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace serin::datasets {
namespace {

using ::testing::HasSubstr;

Cell json(std::string_view text) { return {Cell::Kind::kJson, {}, text}; }
Cell field(std::string_view text) { return {Cell::Kind::kField, {}, text}; }

template <class T>
struct Converted {
  std::string shape;
  std::vector<T> elements;
  std::string error;
};

template <class T>
Converted<T> convert(std::span<const Cell> cells, const Shape& wanted) {
  std::vector<std::byte> bytes;
  const auto shape = append_elements(cells, dtype_of<T>(), wanted, bytes);
  if (!shape) return {{}, {}, shape.error().message};
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return {shape->str(), elements, {}};
}

TEST(Convert, ReadsNestedListsWithTheirShape) {
  const auto made = convert<float>({{json(" [[1, 2.5], [-3e1, 4] ]")}}, {2, 2});
  EXPECT_EQ(made.shape, "[2,2]");
  EXPECT_EQ(made.elements, (std::vector<float>{1, 2.5F, -30, 4}));
}

TEST(Convert, AFlatListStandsForAnyShapeOfItsSize) {
  EXPECT_EQ(convert<float>({{json("[1,2,3,4]")}}, {1, 2, 2}).shape, "[1,2,2]");
  EXPECT_EQ(convert<float>({{json("[1,2,3,4]")}}, {-1, 2}).shape, "[2,2]");
  EXPECT_EQ(convert<float>({{json("7")}}, {1}).shape, "[1]");
  EXPECT_THAT(convert<float>({{json("[1,2,3]")}}, {-1, 2}).error, HasSubstr("has shape [3], [-1,2] is wanted"));
}

TEST(Convert, SeveralFieldsAreOneAxis) {
  const std::vector<Cell> cells{field("1"), field("2"), field("0.5")};
  EXPECT_EQ(convert<double>(cells, {3}).elements, (std::vector<double>{1, 2, 0.5}));
  EXPECT_THAT(convert<double>({{field("1"), field("[2,3]")}}, {3}).error, HasSubstr("one of several columns has [2]"));
}

TEST(Convert, RefusesRaggedLists) {
  for (const char* text : {"[[1],[2,3]]", "[1,[2]]", "[[1],2]", "[[[1]],[2]]"})
    EXPECT_THAT(convert<float>({{json(text)}}, {-1, -1}).error, HasSubstr("different lengths or depths")) << text;
}

TEST(Convert, RefusesTextsThatAreNoNumbers) {
  EXPECT_EQ(convert<float>({{field("abc")}}, {}).error, "'abc' is no number");
  EXPECT_EQ(convert<float>({{json("[1,]")}}, {1}).error, "'' is no number");
  EXPECT_EQ(convert<float>({{json("[1")}}, {1}).error, "a list does not end");
  EXPECT_EQ(convert<float>({{field("1 2")}}, {}).error, "'2' follows the value");
  EXPECT_EQ(convert<float>({{Cell{}}}, {}).error, "the value is missing");
  EXPECT_THAT(convert<float>({{Cell{Cell::Kind::kText, {}, "5"}}}, {}).error, HasSubstr("the text '5', numbers of type f32"));
}

TEST(Convert, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(convert<uint8_t>({{json("[255,256]")}}, {2}).error, "256 does not fit u8");
  EXPECT_EQ(convert<int32_t>({{json("1.5")}}, {}).error, "1.5 does not fit i32");
  EXPECT_EQ(convert<uint64_t>({{json("-1")}}, {}).error, "-1 does not fit u64");
  EXPECT_EQ(convert<int64_t>({{json("9223372036854775807")}}, {}).elements, std::vector<int64_t>{INT64_MAX});
  EXPECT_FALSE(convert<int64_t>({{json("1e19")}}, {}).error.empty());
  EXPECT_EQ(convert<int64_t>({{json("1e3")}}, {}).elements, std::vector<int64_t>{1000});
}

TEST(Convert, TensorsChangeTheirTypeExactly) {
  std::vector<int64_t> whole{1, -2, 300};
  const Cell cell{Cell::Kind::kNumbers, {DType::kInt64, {3}, whole.data()}, {}};
  EXPECT_EQ(convert<float>({{cell}}, {3}).elements, (std::vector<float>{1, -2, 300}));
  EXPECT_EQ(convert<int8_t>({{cell}}, {3}).error, "300 does not fit i8");
}

TEST(Convert, TextsAndNumbersOfLabels) {
  int64_t seven = 7;
  EXPECT_EQ(*text_of({Cell::Kind::kNumbers, {DType::kInt64, {}, &seven}, {}}), "7");
  EXPECT_EQ(*text_of(json("7")), "7");
  EXPECT_EQ(*text_of(field("cat")), "cat");
  EXPECT_FALSE(text_of(json("[1]")));
  EXPECT_EQ(*number_of(field("-0.5")), -0.5);
  EXPECT_EQ(number_of(field("nan")).error().message, "nan is not finite");
  EXPECT_EQ(number_of(json("[1,2]")).error().message, "'[1,2]' is not one number");
}

}  // namespace
}  // namespace serin::datasets
