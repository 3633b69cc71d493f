// lower_conv_transpose, before and after. That the numbers stay: tests/runtime/engine/rewrites_test.cc.

#include <gtest/gtest.h>

#include "runtime/graph/passes/passes.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

std::string around(std::string_view node) { return "x: f32[n,8,h,w]\ny = ConvTranspose(x, " + std::string(node) + ")\nreturn y\n"; }

TEST(LowerConvTranspose, StrideOneIsAConvByTheWindowTurnedAround) {
  EXPECT_EQ(after(LowerConvTranspose(), around("w:f32[8,1,1,2]{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, b[4], group=4, pads=[0,1,0,0]")),
            dedent(R"(
    x: f32[n,8,h,w]
    y = Conv(x, w'[4,2,1,2], b[4], group=4, pads=[0,0,0,1])
    return y
  )"));
}

TEST(LowerConvTranspose, WindowsSideBySideAreChannelsThatMove) {
  EXPECT_EQ(after(LowerConvTranspose(), around("w[8,16,2,2], b[16], strides=[2,2], kernel_shape=[2,2]")), dedent(R"(
    x: f32[n,8,h,w]
    y = Conv(x, w'[64,8,1,1], b'[64])
    y~2 = DepthToSpace(y, blocksize=2, mode=DCR)
    return y~2
  )"));
}

TEST(LowerConvTranspose, WindowsThatOverlapAreChannelsOfNeighbours) {
  EXPECT_EQ(after(LowerConvTranspose(), R"(
    x: f32[n,16,h,w]
    y = ConvTranspose(x, k[16,16,4,4], b[16], strides=[2,2], pads=[1,1,1,1])
    return y
  )"),
            dedent(R"(
    x: f32[n,16,h,w]
    y = Conv(x, k'[64,16,3,3], b'[64], pads=[1,1,1,1])
    y~2 = DepthToSpace(y, blocksize=2, mode=DCR)
    return y~2
  )"));
  for (const char* text : {"x: f32[n,16,7,7]\ny = ConvTranspose(x, k[16,16,4,4], strides=[2,2], pads=[1,1,1,1])\nreturn y\n",  // few pixels
                           "x: f32[n,512,h,w]\ny = ConvTranspose(x, k[512,16,4,4], strides=[2,2], pads=[1,1,1,1])\nreturn y\n"})
    EXPECT_TRUE(leaves(LowerConvTranspose(), text)) << text;
}

TEST(LowerConvTranspose, LeavesTheOthers) {
  for (const char* node : {"w[8,16,4,4], strides=[2,2], pads=[1,1,1,1]",                        // windows overlap
                           "w[8,16,2,2], strides=[2,2], pads=[1,0,0,0]",                        // cut off
                           "w[8,16,2,2], strides=[2,2], output_padding=[1,0]",                  // with a gap
                           "w[8,12,2,2], strides=[2,2]",                                        // no whole blocks of channels
                           "w[8,4,2,2], strides=[2,2], group=4",                                //
                           "w[8,16,2,3], strides=[2,3]",                                        // DepthToSpace knows squares
                           "w[8,16,3,3], strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]",  // two by two neighbours
                           "w[8,4,3,3], pads=[3,0,0,0]",                                        // cuts more than a window reaches
                           "w[8,4,3,3], auto_pad=SAME_UPPER, strides=[2,2]",                    //
                           "w[8,4,3,3], output_shape=[20,20], strides=[1,1]"}) {                // pads that nobody knows yet
    EXPECT_TRUE(leaves(LowerConvTranspose(), around(node))) << node;
  }
  for (const char* more : {"[5,5], strides=[2,2]", "[6,6]"})
    EXPECT_TRUE(leaves(LowerConvTranspose(),
                       "x: f32[1,16,2,2]\ny = ConvTranspose(x, w[16,16,2,2], output_shape=" + std::string(more) + ")\nreturn y\n"))
        << "more than windows reach";
  EXPECT_TRUE(leaves(LowerConvTranspose(), "x: f32[n,8,h,w]\nk: f32[8,4,3,3]\ny = ConvTranspose(x, k)\nreturn y\n")) << "computed weights";
}

}  // namespace
}  // namespace serin::graph
