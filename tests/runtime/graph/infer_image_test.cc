// Shape inference of image and selection operators: symbolic sizes, and what is refused in which words.

#include <fmt/format.h>

#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

/// The type of Resize(x: f32[n,3,h,w]) by these scales.
std::string resized(const std::vector<float>& scales, Dims x = {Dim::symbol("n"), 3, Dim::symbol("h"), Dim::symbol("w")}) {
  Graph graph;
  const ValueId input = graph.add_input("x", Type::tensor(DType::kFloat32, std::move(x)));
  const ValueId constant =
      graph.add_constant("s", make_constant(DType::kFloat32, Shape{static_cast<int64_t>(scales.size())}, scales.data()));
  const NodeId node = graph.add_node(Op::kResize, "y", {input, kNone, constant});
  graph.set_outputs({graph.output(node)});
  const Status status = infer_shapes(graph);
  return status ? print(graph.value(graph.output(node)).type) : status.error().message;
}

TEST(InferImage, ResizeByScales) {
  EXPECT_EQ(resized({1, 1, 2, 2}), "f32[n,3,2*h,2*w]");
  EXPECT_EQ(resized({1, 1, 0.5F, 1.5F}), "f32[n,3,floor((h) / 2),w + floor((w) / 2)]");
  EXPECT_EQ(resized({1, 1, 0.6F, 4.0F / 3.0F}, {1, 3, 10, 10}), "f32[1,3,6,13]");
  EXPECT_EQ(resized({1, 1, 2}), "node 'y' (Resize): 3 scales are given for 4 axes");
  EXPECT_EQ(resized({1, 1, 0, 2}), "node 'y' (Resize): scale 0 of axis 2 is not a positive number");
  EXPECT_EQ(resized({1, 1, std::numeric_limits<float>::quiet_NaN(), 2}), "node 'y' (Resize): scale nan of axis 2 is not a positive number");
  EXPECT_THAT(resized({1, 1, 1e30F, 1}, {1, 3, 10, 10}), testing::HasSubstr("more than the limit of"));
}

TEST(InferImage, ResizeToSizes) {
  const auto to = [](std::string_view rest) {
    return output_type(fmt::format("x: f32[n,3,20,30]\ny = Resize(x, _, _, {})\nreturn y", rest));
  };
  EXPECT_EQ(to("i64{1,3,40,50}"), "f32[1,3,40,50]");
  EXPECT_EQ(to("i64{40,50}, axes=[2,-1]"), "f32[n,3,40,50]");
  EXPECT_EQ(to("i64{40,50}, axes=[2,3], keep_aspect_ratio_policy=not_larger"), "f32[n,3,33,50]");
  EXPECT_EQ(to("i64{40,50}, axes=[2,3], keep_aspect_ratio_policy=not_smaller"), "f32[n,3,40,60]");
  EXPECT_EQ(refusal("x: f32[4]\ny = Resize(x, _, _, i64{-1})\nreturn y"), "node 'y' (Resize): size -1 of axis 0 is negative");
  EXPECT_EQ(refusal("x: f32[4]\ny = Resize(x)\nreturn y"), "node 'y' (Resize): has neither scales nor sizes");
}

/// torch writes its pads innermost first; the exporter turns them around as a matrix of begins and ends.
TEST(InferImage, PadsTurnedAroundAsAMatrix) {
  EXPECT_EQ(output_type(R"(
    x: f32[n,h,w]
    m = Reshape(i64{0,1,2,3,0,0}, i64{3,2})
    r = Slice(m, i64{-1}, i64{-9223372036854775807}, i64{0}, i64{-1})
    t = Transpose(r, perm=[1,0])
    p = Reshape(t, i64{-1})
    y = Pad(x, p)
    return y)"),
            "f32[n,h + 5,w + 1]");
}

TEST(InferImage, ConvTranspose) {
  const auto of = [](std::string_view rest) {
    return output_type(fmt::format("x: f32[n,8,h,4]\ny = ConvTranspose(x, {})\nreturn y", rest));
  };
  EXPECT_EQ(of("w[8,4,2,2], strides=[2,2]"), "f32[n,4,2*h,8]");
  EXPECT_EQ(of("w[8,2,3,3], group=2, strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]"), "f32[n,4,2*h,8]");
  EXPECT_EQ(of("w[8,4,3,3], strides=[3,3], auto_pad=SAME_UPPER"), "f32[n,4,3*h,12]");
  EXPECT_EQ(of("w[8,4,3,3], strides=[2,2], output_shape=[10,9]"), "f32[n,4,10,9]");
  const auto refused = [](std::string_view rest) {
    return refusal(fmt::format("x: f32[1,8,4,4]\ny = ConvTranspose(x, {})\nreturn y", rest));
  };
  EXPECT_EQ(refused("w[6,4,2,2]"), "node 'y' (ConvTranspose): weight has 6 input channels, input has 8");
  EXPECT_EQ(refused("w[8,4,2,2], group=3"), "node 'y' (ConvTranspose): 3 groups do not divide 8 channels");
  EXPECT_EQ(refused("w[8,4,2,2], b[5]"), "node 'y' (ConvTranspose): bias has shape [5], it needs [4]");
  EXPECT_EQ(refused("w[8,4,2,2], pads=[4,0,4,0]"), "node 'y' (ConvTranspose): pads leave nothing of spatial axis 0: it would be -3");
  EXPECT_EQ(refused("w[8,4,2,2], output_padding=[1,0]"), "node 'y' (ConvTranspose): output_padding 1 is not within 0 to 0");
}

TEST(InferImage, SpaceAndDepth) {
  EXPECT_EQ(output_type("x: f32[n,64,h,w]\ny = DepthToSpace(x, blocksize=2)\nreturn y"), "f32[n,16,2*h,2*w]");
  EXPECT_EQ(output_type("x: f32[n,3,h,8]\ny = SpaceToDepth(x, blocksize=4)\nreturn y"), "f32[n,48,floor((h) / 4),2]");
  EXPECT_EQ(refusal("x: f32[n,6,4,4]\ny = DepthToSpace(x, blocksize=2)\nreturn y"),
            "node 'y' (DepthToSpace): 6 channels are not a multiple of 2 squared");
  EXPECT_EQ(refusal("x: f32[n,6,4,4]\ny = DepthToSpace(x)\nreturn y"), "node 'y' (DepthToSpace): blocksize is 0, it must be 1 to 65536");
}

TEST(InferSelection, SizesFromOperands) {
  EXPECT_EQ(output_type("x: f32[n,100]\ny, i = TopK(x, i64{5})\nreturn y"), "f32[n,5]");
  EXPECT_EQ(output_type("x: i64[n,4]\ny = OneHot(x, i64{7}, v[2], axis=1)\nreturn y"), "f32[n,7,4]");
  EXPECT_EQ(output_type("x: f32[n,4,8]\ni: i64[n,s,1]\ny = GatherND(x, i, batch_dims=1)\nreturn y"), "f32[n,s,8]");
  EXPECT_EQ(refusal("x: f32[n,4]\ny, i = TopK(x, i64{5})\nreturn y"), "node 'y' (TopK): k is 5, axis 1 of [n,4] has 4");
  EXPECT_EQ(refusal("x: f32[n,4]\ni: i64[n,3]\ny = GatherND(x, i)\nreturn y"),
            "node 'y' (GatherND): tuples of 3 indices are too long for data of rank 2");
  EXPECT_EQ(refusal("x: f32[2,4]\ni: i64[3,4]\ny = GatherElements(x, i, axis=1)\nreturn y"),
            "node 'y' (GatherElements): indices of shape [3,4] reach over the data of shape [2,4] at axis 0");
  EXPECT_EQ(refusal("x: f32[4]\ni: i64[2]\nu: f32[3]\ny = ScatterElements(x, i, u)\nreturn y"),
            "node 'y' (ScatterElements): updates have shape [3], indices [2]");
}

/// What the data decides is bounded, so that it can be planned.
TEST(InferSelection, SizesThatTheDataDecides) {
  const Graph graph = graph_of("b: f32[n,100,4]\ns: f32[n,80,100]\ny = NonMaxSuppression(b, s, i64{30})\nreturn y");
  EXPECT_EQ(print(graph.value(graph.outputs()[0]).type), "i64[?y,3]");
  EXPECT_EQ(graph.data_dims.at("?y").str(), "2400*n");
}

}  // namespace
}  // namespace serin::graph
