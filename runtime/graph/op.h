// op.h: the canonical operators. Importers lower every format to these; passes and the engine know no others.
//
// Semantics are those of the newest ONNX operator of that name (attributes, input order), with what older versions had as attributes
// (axes, pads, k, ...) always given as attributes when constant, so that one form is left. Where it is computed, it is an operand, and
// `constant_operands` (passes/) makes it an attribute once it is known. The conventions that ONNX alone does not settle:
//
//   Cast                 to: the name of a dtype as in the text form ("f32", "i64", "bool")
//   Clip                 min, max: numbers; or operands 1 and 2. Absent: no bound
//   Reduce*              axes (operand 1), keepdims = 1, noop_with_empty_axes = 0
//   Squeeze, Unsqueeze   axes (operand 1)
//   Slice                starts, ends, axes, steps (operands 1..4)
//   Split                axis = 0, split: sizes (operand 1); without them equal parts, the last one smaller
//   Pad                  pads: begins, then ends (operand 1); value: a number (operand 2); axes; mode = "constant" | "reflect" | "edge" | "wrap"
//   ConstantOfShape      value: a constant of one element (absent: f32 zero)
//   Conv, *Pool          strides, dilations, pads, group, kernel_shape, auto_pad, ceil_mode, count_include_pad: as ONNX has them;
//                        ops/window.h resolves them into one explicit form
//   Swish                alpha = 1: x * sigmoid(alpha x).   Gelu   approximate = "none" | "tanh"
//   If                   operands: condition, then what the bodies read. Both bodies have exactly those (without the condition) as inputs.
//   Loop                 operands: trip count or none, condition or none, the `carried` (attribute) values, then what the body reads.
//                        Body inputs: iteration, condition, carried, read. Body outputs: condition, carried, scanned. Outputs: carried, scanned.
//
// Fused operators exist after passes only:
//
//   FusedConv(x, w, bias or none, residual or none)     y = act(Conv(x, w) + bias + residual), attributes of Conv
//   FusedMatMul(a, b, bias or none, residual or none)   y = act(a b + bias + residual), with transA and transB swapping the last two axes;
//                                                       no scale (Gemm's alpha and beta are folded into constants before)
//   both: activation = "" (none) | "Relu" | "LeakyRelu" (alpha: slope) | "Clip" (alpha..beta) | "Sigmoid" | "Tanh" | "HardSigmoid" (alpha, beta)
//         | "HardSwish" | "Elu" (alpha) | "Swish" | "Gelu" | "GeluTanh"; bias of a convolution is [channels], of a product anything that
//         broadcasts to y; residual has the shape of y.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace serin::graph {

// X(enumerator suffix = printed name, minimum inputs, maximum inputs, outputs)   -1: any number
// clang-format off
#define SERIN_GRAPH_OPS(X) \
  X(Abs, 1, 1, 1) X(Add, 2, 2, 1) X(And, 2, 2, 1) X(ArgMax, 1, 1, 1) X(ArgMin, 1, 1, 1) X(AveragePool, 1, 1, 1) \
  X(BatchNormalization, 5, 5, 1) X(Cast, 1, 1, 1) X(Ceil, 1, 1, 1) X(Clip, 1, 3, 1) X(Concat, 1, -1, 1) X(ConstantOfShape, 1, 1, 1) \
  X(Conv, 2, 3, 1) X(Cos, 1, 1, 1) X(CumSum, 2, 2, 1) X(Div, 2, 2, 1) X(Elu, 1, 1, 1) X(Equal, 2, 2, 1) X(Erf, 1, 1, 1) \
  X(Exp, 1, 1, 1) X(Expand, 2, 2, 1) X(Flatten, 1, 1, 1) X(Floor, 1, 1, 1) X(Gather, 2, 2, 1) X(Gelu, 1, 1, 1) X(Gemm, 2, 3, 1) \
  X(GlobalAveragePool, 1, 1, 1) X(GlobalMaxPool, 1, 1, 1) X(Greater, 2, 2, 1) X(GreaterOrEqual, 2, 2, 1) X(HardSigmoid, 1, 1, 1) \
  X(HardSwish, 1, 1, 1) X(Identity, 1, 1, 1) X(If, 1, -1, -1) X(IsInf, 1, 1, 1) X(IsNaN, 1, 1, 1) X(LayerNormalization, 2, 3, 1) \
  X(LeakyRelu, 1, 1, 1) X(Less, 2, 2, 1) X(LessOrEqual, 2, 2, 1) X(Log, 1, 1, 1) X(LogSoftmax, 1, 1, 1) X(Loop, 2, -1, -1) \
  X(MatMul, 2, 2, 1) X(Max, 1, -1, 1) X(MaxPool, 1, 1, 1) X(Mean, 1, -1, 1) X(Min, 1, -1, 1) X(Mod, 2, 2, 1) X(Mul, 2, 2, 1) \
  X(Neg, 1, 1, 1) X(NonZero, 1, 1, 1) X(Not, 1, 1, 1) X(Or, 2, 2, 1) X(Pad, 1, 3, 1) X(Pow, 2, 2, 1) X(Range, 3, 3, 1) \
  X(Reciprocal, 1, 1, 1) X(ReduceL1, 1, 2, 1) X(ReduceL2, 1, 2, 1) X(ReduceMax, 1, 2, 1) X(ReduceMean, 1, 2, 1) \
  X(ReduceMin, 1, 2, 1) X(ReduceProd, 1, 2, 1) X(ReduceSum, 1, 2, 1) X(ReduceSumSquare, 1, 2, 1) X(Relu, 1, 1, 1) \
  X(Reshape, 2, 2, 1) X(Round, 1, 1, 1) X(Shape, 1, 1, 1) X(Sigmoid, 1, 1, 1) X(Sign, 1, 1, 1) X(Sin, 1, 1, 1) X(Size, 1, 1, 1) \
  X(Slice, 1, 5, 1) X(Softmax, 1, 1, 1) X(Softplus, 1, 1, 1) X(Split, 1, 2, -1) X(Sqrt, 1, 1, 1) X(Squeeze, 1, 2, 1) \
  X(Sub, 2, 2, 1) X(Sum, 1, -1, 1) X(Swish, 1, 1, 1) X(Tanh, 1, 1, 1) X(Tile, 2, 2, 1) X(Transpose, 1, 1, 1) X(Unsqueeze, 1, 2, 1) \
  X(Where, 3, 3, 1) X(Xor, 2, 2, 1) X(FusedConv, 2, 4, 1) X(FusedMatMul, 2, 4, 1)
// clang-format on

enum class Op : uint16_t {
#define SERIN_X(name, min, max, out) k##name,
  SERIN_GRAPH_OPS(SERIN_X)
#undef SERIN_X
};

struct OpSchema {
  std::string_view name;
  int min_inputs, max_inputs, outputs;  ///< -1: any number
};
const OpSchema& schema(Op op);
inline std::string_view op_name(Op op) { return schema(op).name; }
std::optional<Op> find_op(std::string_view name);

}  // namespace serin::graph
