// Shape inference: what results are, and what is refused in which words.

#include <fmt/format.h>

#include "runtime/graph/ops/infer.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

TEST(Infer, Broadcast) {
  EXPECT_EQ(output_type("a: f32[n,1,8]\nb: f32[4,1]\ny = Add(a, b)\nreturn y"), "f32[n,4,8]");
  EXPECT_EQ(output_type("a: f32[n]\nb: f32[m]\ny = Less(a, b)\nreturn y"), "bool[max(m, n)]");
  EXPECT_EQ(refusal("a: f32[2,3]\nb: f32[4]\ny = Add(a, b)\nreturn y"), "node 'y' (Add): shapes [2,3] and [4] do not broadcast");
  EXPECT_EQ(refusal("a: f32[2]\nb: i64[2]\ny = Add(a, b)\nreturn y"),
            "node 'y' (Add): operand 0 is f32, operand 1 is i64; they must have one type");
}

TEST(Infer, Conv) {
  EXPECT_EQ(output_type("x: f32[n,3,224,224]\ny = Conv(x, w[64,3,7,7], strides=[2,2], pads=[3,3,3,3])\nreturn y"), "f32[n,64,112,112]");
  EXPECT_EQ(output_type("x: f32[n,8,h,16]\ny = Conv(x, w[8,1,3,3], group=8, strides=[2,1], auto_pad=SAME_UPPER)\nreturn y"),
            "f32[n,8,floor((h + 1) / 2),16]");
  EXPECT_EQ(output_type("x: f32[n,8,9]\ny = Conv(x, w[8,8,3], dilations=[2])\nreturn y"), "f32[n,8,5]");
}

TEST(Infer, ConvRefusesWhatIsNoConvolution) {
  const auto conv = [](std::string_view rest) { return refusal(fmt::format("x: f32[n,8,4,4]\ny = Conv(x, {})\nreturn y", rest)); };
  EXPECT_EQ(conv("w[4,16,3,3]"), "node 'y' (Conv): weight has 16 channels, input has 8");
  EXPECT_EQ(conv("w[6,4,3,3], group=2, strides=[0,1]"), "node 'y' (Conv): strides has 0, it must be 1 to 2147483647");
  EXPECT_EQ(conv("w[6,2,3,3], group=3"), "node 'y' (Conv): weight has 2 channels per group in 3 groups, input has 8");
  EXPECT_EQ(conv("w[5,4,3,3], group=2"), "node 'y' (Conv): weight has 5 output channels, which 2 groups do not divide");
  EXPECT_EQ(conv("w[4,8,3,3], group=0"), "node 'y' (Conv): group is 0, it must be positive");
  EXPECT_EQ(conv("w[4,8,3,3], pads=[-1,0,0,0]"), "node 'y' (Conv): pads has -1, it must be 0 to 2147483647");
  EXPECT_EQ(conv("w[4,8,3,3], pads=[1,1]"), "node 'y' (Conv): pads has 2 elements, 2 spatial axes need 4");
  EXPECT_EQ(conv("w[4,8,5,5]"), "node 'y' (Conv): a kernel that covers 5 does not fit spatial axis 0 of 4 with padding 0");
  EXPECT_EQ(conv("w[4,8,3,3], dilations=[9223372036854775807,1]"),
            "node 'y' (Conv): dilations has 9223372036854775807, it must be 1 to 2147483647");
  EXPECT_EQ(conv("w[4,8,3,3], b[5]"), "node 'y' (Conv): bias has shape [5], it needs [4]");
  EXPECT_EQ(conv("w[4,8,3]"), "node 'y' (Conv): weight has rank 3, input has 4");
}

TEST(Infer, Pool) {
  EXPECT_EQ(output_type("x: f32[n,8,9,9]\ny = MaxPool(x, kernel_shape=[3,3], strides=[2,2], ceil_mode=1)\nreturn y"), "f32[n,8,4,4]");
  EXPECT_EQ(output_type("x: f32[n,8,10,10]\ny = MaxPool(x, kernel_shape=[3,3], strides=[2,2], ceil_mode=1)\nreturn y"), "f32[n,8,5,5]");
  EXPECT_EQ(output_type("x: f32[n,8,9,9]\ny = GlobalAveragePool(x)\nreturn y"), "f32[n,8,1,1]");
  EXPECT_EQ(refusal("x: f32[n,8,9]\ny = MaxPool(x)\nreturn y"), "node 'y' (MaxPool): attribute 'kernel_shape' is missing");
  EXPECT_EQ(refusal("x: f32[n,8,9]\ny = MaxPool(x, kernel_shape=[0])\nreturn y"),
            "node 'y' (MaxPool): kernel_shape has 0, it must be 1 to 2147483647");
  EXPECT_EQ(refusal("x: f32[n,8,9]\ny = MaxPool(x, kernel_shape=[2], pads=[2,0])\nreturn y"),
            "node 'y' (MaxPool): padding 2 is not smaller than the kernel, which covers 2: a window would see nothing");
}

TEST(Infer, MatMul) {
  EXPECT_EQ(output_type("a: f32[n,4,s,16]\nb: f32[n,4,16,s]\ny = MatMul(a, b)\nreturn y"), "f32[n,4,s,s]");
  EXPECT_EQ(output_type("a: f32[8]\nb: f32[3,8,2]\ny = MatMul(a, b)\nreturn y"), "f32[3,2]");
  EXPECT_EQ(output_type("a: f32[n,8]\ny = Gemm(a, w[10,8], b[10], transB=1)\nreturn y"), "f32[n,10]");
  EXPECT_EQ(refusal("a: f32[n,8]\ny = MatMul(a, w[9,2])\nreturn y"),
            "node 'y' (MatMul): cannot multiply [n,8] by [9,2]: inner dimensions are 8 and 9");
  EXPECT_EQ(refusal("a: f32[n,8]\ny = Gemm(a, w[8,2], b[3])\nreturn y"),
            "node 'y' (Gemm): bias has shape [3], which does not broadcast to [n,2]");
}

TEST(Infer, Reshape) {
  EXPECT_EQ(output_type("x: f32[n,4,8]\ny = Reshape(x, i64{0,-1})\nreturn y"), "f32[n,32]");
  EXPECT_EQ(output_type("x: f32[n,s,64]\ny = Reshape(x, i64{-1,64})\nreturn y"), "f32[n*s,64]");
  EXPECT_EQ(refusal("x: f32[2,8]\ny = Reshape(x, i64{-1,-1})\nreturn y"), "node 'y' (Reshape): target [-1,-1] has more than one -1");
  EXPECT_EQ(refusal("x: f32[2,8]\ny = Reshape(x, i64{3,5})\nreturn y"),
            "node 'y' (Reshape): cannot reshape [2,8] to [3,5]: 16 elements to 15");
  EXPECT_EQ(refusal("x: f32[2,8]\ny = Reshape(x, i64{3,-1})\nreturn y"),
            "node 'y' (Reshape): cannot reshape [2,8] to [3,-1]: 16 elements are not a multiple of 3");
  EXPECT_EQ(refusal("x: f32[2,8]\ny = Reshape(x, i64{1,1,0})\nreturn y"),
            "node 'y' (Reshape): target [1,1,0] copies dimension 2, input has shape [2,8]");
  EXPECT_EQ(refusal("x: f32[2,8]\ny = Reshape(x, i64{-7})\nreturn y"), "node 'y' (Reshape): target [-7] has dimension -7");
}

TEST(Infer, AxesAndPermutations) {
  EXPECT_EQ(output_type("x: f32[n,3,4]\ny = Transpose(x, perm=[2,0,1])\nreturn y"), "f32[4,n,3]");
  EXPECT_EQ(output_type("x: f32[n,1,4]\ny = Squeeze(x, axes=[-2])\nreturn y"), "f32[n,4]");
  EXPECT_EQ(output_type("x: f32[n,4]\ny = Unsqueeze(x, axes=[0,-1])\nreturn y"), "f32[1,n,4,1]");
  EXPECT_EQ(output_type("x: f32[n,3,4]\ny = ReduceMean(x, axes=[-1], keepdims=0)\nreturn y"), "f32[n,3]");
  EXPECT_EQ(output_type("x: f32[n,3,4]\ny = ArgMax(x, axis=1)\nreturn y"), "i64[n,1,4]");
  EXPECT_EQ(refusal("x: f32[n,3]\ny = Transpose(x, perm=[0,0])\nreturn y"),
            "node 'y' (Transpose): perm [0,0] is not a permutation of the 2 axes");
  EXPECT_EQ(refusal("x: f32[n,3]\ny = Softmax(x, axis=2)\nreturn y"), "node 'y' (Softmax): axis 2 is out of range for rank 2");
  EXPECT_EQ(refusal("x: f32[n,3]\ny = ReduceSum(x, axes=[1,-1])\nreturn y"), "node 'y' (ReduceSum): axis 1 is given twice");
  EXPECT_EQ(refusal("x: f32[n,3]\ny = Squeeze(x, axes=[1])\nreturn y"), "node 'y' (Squeeze): axis 1 of [n,3] is 3, only 1 can be squeezed");
}

TEST(Infer, ConcatSplitSlicePad) {
  EXPECT_EQ(output_type("a: f32[n,3]\nb: f32[n,s]\ny = Concat(a, b, axis=1)\nreturn y"), "f32[n,s + 3]");
  EXPECT_EQ(refusal("a: f32[2,3]\nb: f32[4,3]\ny = Concat(a, b, axis=1)\nreturn y"),
            "node 'y' (Concat): operand 1 has shape [4,3], operand 0 has [2,3]; only axis 1 may differ");
  EXPECT_EQ(output_type("x: f32[n,9]\na, b = Split(x, axis=1, split=[4,5])\nreturn b"), "f32[n,5]");
  EXPECT_EQ(refusal("x: f32[n,9]\na, b = Split(x, axis=1, split=[4,4])\nreturn b"),
            "node 'a' (Split): sizes [4,4] add up to 8, axis 1 of [n,9] has 9");
  EXPECT_EQ(output_type("x: f32[n,9]\ny = Slice(x, starts=[-1], ends=[-9223372036854775807], axes=[1], steps=[-2])\nreturn y"), "f32[n,5]");
  EXPECT_EQ(output_type("x: f32[n,s]\ny = Slice(x, starts=[0,1], ends=[9223372036854775807,-1])\nreturn y"), "f32[n,max(0, s - 2)]");
  EXPECT_EQ(refusal("x: f32[n,9]\ny = Slice(x, starts=[0], ends=[1], axes=[1], steps=[0])\nreturn y"),
            "node 'y' (Slice): the step of axis 1 is 0");
  EXPECT_EQ(output_type("x: f32[n,9]\ny = Pad(x, pads=[0,1,0,-2])\nreturn y"), "f32[n,8]");
  EXPECT_EQ(refusal("x: f32[n,9]\ny = Pad(x, pads=[0,-5,0,-5])\nreturn y"),
            "node 'y' (Pad): the result would have shape [n,-1], a dimension is negative");
}

TEST(Infer, RefusesBombs) {
  EXPECT_EQ(refusal("y = ConstantOfShape(i64{1048576,1048576})\nreturn y"),
            "node 'y' (ConstantOfShape): the result would have shape [1048576,1048576], more than the limit of 17179869184 elements");
  EXPECT_NE(refusal("x: f32[1]\ny = Expand(x, i64{9223372036854775807,2})\nreturn y"), "");
  EXPECT_NE(refusal("x: f32[2]\ny = Tile(x, i64{9223372036854775807})\nreturn y"), "");
  EXPECT_NE(refusal("x: f32[2]\ny = Pad(x, pads=[9223372036854775807,9223372036854775807])\nreturn y"), "");
  EXPECT_EQ(refusal("y = Range(i64[]{0}, i64[]{1099511627776}, i64[]{1})\nreturn y"),
            "node 'y' (Range): from 0 to 1099511627776 by 1 is more than the limit of 17179869184 elements");
}

TEST(Infer, NonZeroHasABound) {
  const Graph graph = graph_of("x: f32[n,4]\ny = NonZero(x)\nreturn y");
  EXPECT_EQ(print(graph.value(graph.outputs()[0]).type), "i64[2,?y]");
  EXPECT_EQ(graph.data_dims.at("?y").str(), "4*n");
}

TEST(Infer, BranchesOfIfAreJoined) {
  EXPECT_EQ(output_type(R"(
    flag: bool[]
    x: f32[n,4]
    y = If(flag, x)
      then:
        x: f32[...]
        a = Relu(x)
        return a
      else:
        x: f32[...]
        a = Concat(x, x, axis=1)
        return a
    return y
  )"),
            "f32[n,?y]");
}

// ---- shapes that are computed ----

TEST(Infer, AttentionReshapesFollowTheShapeOfTheInput) {
  EXPECT_EQ(output_type(R"(
    x: f32[batch,seq,64]
    s = Shape(x)
    b = Gather(s, i64[]{0})
    t = Gather(s, i64[]{1})
    b1 = Unsqueeze(b, axes=[0])
    t1 = Unsqueeze(t, axes=[0])
    target = Concat(b1, t1, i64{4}, i64{16}, axis=0)
    r = Reshape(x, target)
    y = Transpose(r, perm=[0,2,1,3])
    return y
  )"),
            "f32[batch,4,seq,16]");
}

TEST(Infer, HeadsByDivision) {
  EXPECT_EQ(output_type(R"(
    x: f32[batch,seq,64]
    s = Shape(x)
    width = Slice(s, starts=[2], ends=[3])
    head = Div(width, i64{4})
    front = Slice(s, starts=[0], ends=[2])
    target = Concat(front, i64{-1}, head, axis=0)
    y = Reshape(x, target)
    return y
  )"),
            "f32[batch,seq,4,16]");
}

TEST(Infer, ExpandAsTorchWritesIt) {
  EXPECT_EQ(output_type(R"(
    x: f32[batch,1,64]
    s = Shape(x)
    b = Slice(s, starts=[0], ends=[1])
    want = Concat(b, i64{8}, i64{-1}, axis=0)
    rank = Shape(want)
    ones = ConstantOfShape(rank, value=i64[1]{1})
    minus = Mul(ones, i64[]{-1})
    same = Equal(want, minus)
    target = Where(same, ones, want)
    y = Expand(x, target)
    return y
  )"),
            "f32[batch,8,64]");
}

TEST(Infer, RangeOverASymbol) {
  EXPECT_EQ(output_type(R"(
    x: f32[batch,seq]
    s = Shape(x)
    t = Gather(s, i64[]{1})
    y = Range(i64[]{0}, t, i64[]{1})
    return y
  )"),
            "i64[seq]");
}

TEST(Infer, TargetThatOnlyTheDataKnows) {
  EXPECT_EQ(output_type("x: f32[n,4]\nshape: i64[3]\ny = Reshape(x, shape)\nreturn y"), "f32[?y,?y.1,?y.2]");
  EXPECT_EQ(output_type("x: f32[n,4]\nshape: i64[k]\ny = Reshape(x, shape)\nreturn y"), "f32[...]");
}

TEST(Infer, EveryOperatorHasARule) {
  for (size_t op = 0; op < kOpCount; ++op) EXPECT_NE(rules(static_cast<Op>(op)).infer, nullptr) << op_name(static_cast<Op>(op));
}

}  // namespace
}  // namespace serin::graph
