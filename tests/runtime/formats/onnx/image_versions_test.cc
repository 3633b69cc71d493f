// Image and selection operators in the versions that exporters wrote: attributes that became operands, modes that were renamed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The graph of one node over x: f32[1,3,4,4], as text, without its first and last line.
std::string lowered(int64_t opset, const Encoder& one_node, const std::vector<Encoder>& constants = {}) {
  const auto graph = read(model(opset, {{one_node}, constants, {value("x", {"1", "3", "4", "4"})}, {value("y", {})}}));
  if (!graph) return graph.error().message;
  const std::string text = print(*graph);
  const size_t first = text.find('\n') + 1;
  return text.substr(first, text.find("return") - first);
}

TEST(ImageVersions, UpsampleIsAResize) {
  const auto of = [](int64_t opset, const std::vector<std::string>& inputs, const std::vector<Encoder>& attributes) {
    std::vector<Encoder> constants;
    if (inputs.size() > 1) constants.push_back(f32("s", {4}));
    return lowered(opset, node("Upsample", "y", inputs, {"y"}, attributes), constants);
  };
  for (const std::string& text : {of(9, {"x", "s"}, {}), of(1, {"x"}, {attribute("height_scale", 2.0F), attribute("width_scale", 3.0F)})}) {
    EXPECT_THAT(text, HasSubstr("y = Resize(x, "));
    EXPECT_THAT(text, HasSubstr("coordinate_transformation_mode=asymmetric"));
    EXPECT_THAT(text, HasSubstr("nearest_mode=floor"));
  }
  EXPECT_THAT(of(9, {"x"}, {}), HasSubstr("has no scales"));
  EXPECT_THAT(of(7, {"x"}, {}), HasSubstr("has no scales"));
}

TEST(ImageVersions, ResizeBeforeOpset11RoundsInItsOwnWay) {
  const std::string text = lowered(10, node("Resize", "y", {"x", "s"}, {"y"}), {f32("s", {4})});
  EXPECT_THAT(text, HasSubstr("coordinate_transformation_mode=asymmetric"));
  EXPECT_THAT(text, HasSubstr("nearest_mode=simple"));
}

TEST(ImageVersions, TopKWithAnAttribute) {
  EXPECT_THAT(lowered(9, node("TopK", "y", {"x"}, {"y", "i"}, {attribute("k", int64_t{2})})), HasSubstr("TopK(x, y/k:i64[1]{2}, axis=-1)"));
  EXPECT_THAT(lowered(9, node("TopK", "y", {"x"}, {"y", "i"})), HasSubstr("attribute 'k' is missing"));
  EXPECT_THAT(lowered(11, node("TopK", "y", {"x"}, {"y", "i"})), HasSubstr("has no k"));
}

TEST(ImageVersions, RoiAlignShiftsBoxesSinceOpset16) {
  const auto of = [](int64_t opset) {
    return lowered(opset, node("RoiAlign", "y", {"x", "b", "i"}, {"y"}), {f32("b", {1, 4}), i64("i", {0})});
  };
  EXPECT_THAT(of(10), HasSubstr("coordinate_transformation_mode=output_half_pixel"));
  EXPECT_THAT(of(16), Not(HasSubstr("output_half_pixel")));
}

TEST(ImageVersions, ModesOfGridSampleWereRenamed) {
  const auto of = [](int64_t opset, const char* mode) {
    return lowered(opset, node("GridSample", "y", {"x", "g"}, {"y"}, {attribute("mode", std::string(mode))}), {f32("g", {1, 2, 2, 2})});
  };
  EXPECT_THAT(of(16, "bilinear"), HasSubstr("mode=linear"));
  EXPECT_THAT(of(16, "bicubic"), HasSubstr("mode=cubic"));
  EXPECT_THAT(of(20, "nearest"), HasSubstr("mode=nearest"));
}

TEST(ImageVersions, IndicesOfMaxPoolMakeAnotherOperator) {
  const Encoder kernel = attribute("kernel_shape", std::vector<int64_t>{2, 2});
  EXPECT_THAT(lowered(12, node("MaxPool", "y", {"x"}, {"y"}, {kernel})), HasSubstr("y = MaxPool(x"));
  EXPECT_THAT(lowered(12, node("MaxPool", "y", {"x"}, {"y", "i"}, {kernel})), HasSubstr("MaxPoolWithIndices(x"));
}

}  // namespace
}  // namespace serin::formats
