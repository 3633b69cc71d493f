#include "runtime/protocol/tensor/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace serin::protocol {
namespace {

using testing::ElementsAre;

TEST(Classification, TheHighestOfEachRowFirst) {
  float y[] = {0.25F, 0.5F, 0.125F, 7, -1, 7};
  const Classes two = classify({DType::kFloat32, {2, 3}, y}, true, 2, {});
  EXPECT_EQ(two.shape, (Shape{2, 2}));
  EXPECT_THAT(two.texts, ElementsAre("0.500000:1", "0.250000:0", "7.000000:0", "7.000000:2"));
  const Classes whole = classify({DType::kFloat32, {2, 3}, y}, false, 1, {});
  EXPECT_EQ(whole.shape, Shape{1});
  EXPECT_THAT(whole.texts, ElementsAre("7.000000:3"));
}

TEST(Classification, LabelsWhereThereAreSome) {
  int32_t y[] = {1, 3, 2};
  const std::string labels[] = {"cat", "dog"};
  EXPECT_THAT(classify({DType::kInt32, {3}, y}, false, 99, labels).texts, ElementsAre("3:1:dog", "2:2", "1:0:cat"));
}

TEST(Classification, NotANumberIsLastAndNarrowFloatsAreRead) {
  float y[] = {NAN, -5, NAN};
  EXPECT_THAT(classify({DType::kFloat32, {3}, y}, false, 1, {}).texts, ElementsAre("-5.000000:1"));
  uint16_t h[] = {0x3c00, 0x4000};
  EXPECT_THAT(classify({DType::kFloat16, {1, 2}, h}, true, 1, {}).texts, ElementsAre("2.000000:1"));
}

TEST(Classification, NoElementsHaveNoClasses) {
  EXPECT_EQ(classify({DType::kFloat32, {0, 3}, nullptr}, true, 2, {}).shape, (Shape{0, 0}));
  EXPECT_EQ(classify({DType::kFloat32, {2, 0}, nullptr}, true, 2, {}).shape, (Shape{2, 0}));
}

}  // namespace
}  // namespace serin::protocol
