// Operators whose results are known from their definition, computed by the engine: those that no whole model of tests/formats/paddle has.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/formats/paddle/encode.h"

namespace serin::formats {
namespace {

using ::testing::HasSubstr;

TEST(PaddleOperators, ConvolutionsTakeTheirBiasAndActivation) {
  const auto vars = std::vector<Encoder>{var("x", {-1, 4, 8, 8}), var("b", {4}, true), var("w", {4, 4, 3, 3}, true)};
  const auto graph =
      read(program({block(vars, {feed("x"), op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}}),
                                 op("elementwise_add", {{"X", {"c"}}, {"Y", {"b"}}}, {{"Out", {"s"}}}, {attribute("axis", 1)}),
                                 op("hard_swish", {{"X", {"s"}}}, {{"Out", {"y"}}}), fetch("y")})}),
           stored_tensor(kF32, {4}, std::string(16, '\0')) + stored_tensor(kF32, {4, 4, 3, 3}, std::string(4 * 4 * 9 * 4, '\0')));
  ASSERT_TRUE(graph) << graph.error().message;
  const std::string text = graph::print(*graph);
  EXPECT_THAT(text, HasSubstr("HardSwish"));
  EXPECT_THAT(text, HasSubstr("Unsqueeze"));
}

}  // namespace
}  // namespace serin::formats
