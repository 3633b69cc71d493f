// op.h: the canonical operators. Importers convert every format to these; passes and the engine know no others.
//
// Semantics are those of the newest ONNX operator of that name (attributes, input order). There is one exception, so that one form is left:
// constant values that older versions had as attributes (axes, pads, k, ...) are always attributes. If such a value is computed, it is an
// operand, and `constant_operands` (passes/) makes it an attribute once it is known. Conventions that ONNX alone does not settle:
//
//   Cast                 to: the name of a dtype as in the text form ("f32", "i64", "bool")
//   Clip                 min, max: numbers; or operands 1 and 2. Absent: no bound
//   Reduce*              axes (operand 1), keepdims = 1, noop_with_empty_axes = 0
//   Squeeze, Unsqueeze   axes (operand 1)
//   Slice                starts, ends, axes, steps (operands 1..4)
//   Split                axis = 0, split: sizes (operand 1); without them equal parts, the last one smaller
//   Pad                  pads: begins, then ends (operand 1); value: a number (operand 2); axes (operand 3);
//                        mode = "constant" | "reflect" | "edge" | "wrap"
//   ConstantOfShape      value: a constant of one element (absent: f32 zero)
//   Conv, *Pool          strides, dilations, pads, group, kernel_shape, auto_pad, ceil_mode, count_include_pad: as in ONNX;
//                        ops/window.h resolves them into one explicit form
//   Tokenizer            as in ONNX Runtime: separators or tokenexp, mark = 0, mincharnum = 1, pad_value
//   Swish                alpha = 1: x * sigmoid(alpha x).   Gelu   approximate = "none" | "tanh"
//   Attention            as in ONNX, and masked_to_zero = 1: a query that may attend to nothing gives zeros, not NaN; heads_inside = 1:
//                        operands of rank 4 give [batch, length, heads, head]
//   If                   operands: condition, then the values that the bodies read. Both bodies have exactly those (without the condition)
//                        as inputs.
//   Loop                 operands: trip count or none, condition or none, the `carried` (attribute) values, then the values that the body
//                        reads. Body inputs: iteration, condition, carried, read. Body outputs: condition, carried, scanned.
//                        Outputs: carried, scanned.
//   Scan                 operands: lengths or none (only if batched = 1), the `carried` values, the `scanned` ones, then the values that
//                        the body reads. Body inputs: carried, one slice of each scanned, read.
//                        Body outputs: carried, one slice of each result.
//                        input_axes, input_directions, output_axes, output_directions; batched = 1: axis 0 of all is a batch, and they
//                        are scanned along axis 1
//   SequenceMap          operands: `mapped` of them, of which sequences are iterated and tensors repeated, then the values that the body
//                        reads
//   SequenceEmpty        dtype as in Cast.   Optional   without operand: kind = "tensor" | "sequence", dtype
//
// Fused operators exist after passes only:
//
//   quantised tensors (passes/quantise_*.cc); a number x is given as q, scale, zero point; channels_last = 1 means [n, spatial..., c]:
//     QLinearConv(..., residual, scale, zero, y2 scale, y2 zero)   more than ONNX's nine: y2 = act2(y + residual), quantised again;
//                                                                  activation and sum_activation are "" or "Relu"
//     QuantizedBinary(a..., b..., y scale, y zero)      function = "Add" | "Mul", activation
//     QuantizedGlobalAveragePool(x..., y scale, y zero)
//     QuantizedLookup(x, table)                         y = table[x], for a function of one element
//     QuantizedMatMul(a..., b..., bias, y scale, y zero)   b [k, n]; without y scale the result is f32; activation
//     QuantizedMaxPool(x)                               attributes of MaxPool
//     DynamicQuantizeMatMul(a, b, b scale, b zero, bias)   f32: a is quantised as in DynamicQuantizeLinear, with by_row each row of a
//                                                       separately, and the product is scaled back; activation
//   FusedConv(x, w, bias or none, residual or none)     y = act(Conv(x, w) + bias + residual), attributes of Conv
//   FusedMatMul(a, b, bias or none, residual or none)   y = act(a b + bias + residual), with transA and transB swapping the last two axes;
//                                                       no scale (Gemm's alpha and beta are folded into constants before)
//   both: activation = "" (none) | "Relu" | "LeakyRelu" (alpha: slope) | "Clip" (alpha..beta) | "Sigmoid" | "Tanh"
//         | "HardSigmoid" (alpha, beta) | "HardSwish" | "Elu" (alpha) | "Swish" | "Gelu" | "GeluTanh"; bias of a convolution is [channels],
//         of a product anything that broadcasts to y; residual has the shape of y.
#pragma once

#include <cstddef>
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
  X(Neg, 1, 1, 1) X(NonZero, 1, 1, 1) X(Not, 1, 1, 1) X(Or, 2, 2, 1) X(Pad, 1, 4, 1) X(Pow, 2, 2, 1) X(Range, 3, 3, 1) \
  X(Reciprocal, 1, 1, 1) X(ReduceL1, 1, 2, 1) X(ReduceL2, 1, 2, 1) X(ReduceMax, 1, 2, 1) X(ReduceMean, 1, 2, 1) \
  X(ReduceMin, 1, 2, 1) X(ReduceProd, 1, 2, 1) X(ReduceSum, 1, 2, 1) X(ReduceSumSquare, 1, 2, 1) X(Relu, 1, 1, 1) \
  X(Reshape, 2, 2, 1) X(Round, 1, 1, 1) X(Shape, 1, 1, 1) X(Sigmoid, 1, 1, 1) X(Sign, 1, 1, 1) X(Sin, 1, 1, 1) X(Size, 1, 1, 1) \
  X(Slice, 1, 5, 1) X(Softmax, 1, 1, 1) X(Softplus, 1, 1, 1) X(Split, 1, 2, -1) X(Sqrt, 1, 1, 1) X(Squeeze, 1, 2, 1) \
  X(Sub, 2, 2, 1) X(Sum, 1, -1, 1) X(Swish, 1, 1, 1) X(Tanh, 1, 1, 1) X(Tile, 2, 2, 1) X(Transpose, 1, 1, 1) X(Unsqueeze, 1, 2, 1) \
  X(Where, 3, 3, 1) X(Xor, 2, 2, 1) \
  /* math */ X(Acos, 1, 1, 1) X(Acosh, 1, 1, 1) X(Asin, 1, 1, 1) X(Asinh, 1, 1, 1) X(Atan, 1, 1, 1) X(Atanh, 1, 1, 1) \
  X(BitCast, 1, 1, 1) X(BitShift, 2, 2, 1) X(BitwiseAnd, 2, 2, 1) X(BitwiseNot, 1, 1, 1) X(BitwiseOr, 2, 2, 1) X(BitwiseXor, 2, 2, 1) \
  X(BlackmanWindow, 1, 1, 1) X(Bernoulli, 1, 1, 1) X(CastLike, 2, 2, 1) X(Celu, 1, 1, 1) X(Cosh, 1, 1, 1) X(CumProd, 2, 2, 1) \
  X(DFT, 1, 3, 1) X(Det, 1, 1, 1) X(Einsum, 1, -1, 1) X(EyeLike, 1, 1, 1) X(HammingWindow, 1, 1, 1) X(HannWindow, 1, 1, 1) \
  X(MelWeightMatrix, 5, 5, 1) X(Mish, 1, 1, 1) X(Multinomial, 1, 1, 1) X(PRelu, 2, 2, 1) X(RandomNormal, 0, 0, 1) \
  X(RandomNormalLike, 1, 1, 1) X(RandomUniform, 0, 0, 1) X(RandomUniformLike, 1, 1, 1) X(STFT, 2, 4, 1) X(Selu, 1, 1, 1) \
  X(Shrink, 1, 1, 1) X(Sinh, 1, 1, 1) X(Softsign, 1, 1, 1) X(Tan, 1, 1, 1) X(ThresholdedRelu, 1, 1, 1) \
  /* norm */ X(Adagrad, 3, -1, -1) X(Adam, 3, -1, -1) X(BatchNormalizationTraining, 5, 5, 3) X(Dropout, 1, 3, 2) \
  X(GroupNormalization, 3, 3, 1) X(Hardmax, 1, 1, 1) X(InstanceNormalization, 3, 3, 1) X(LayerNormalizationTraining, 2, 3, 3) \
  X(LpNormalization, 1, 1, 1) X(LRN, 1, 1, 1) X(MeanVarianceNormalization, 1, 1, 1) X(Momentum, 3, -1, -1) \
  X(NegativeLogLikelihoodLoss, 2, 3, 1) X(ReduceLogSumExp, 1, 2, 1) X(RMSNormalization, 2, 2, 1) \
  X(SoftmaxCrossEntropyLoss, 2, 3, -1) \
  /* selection */ X(Compress, 2, 2, 1) X(GatherElements, 2, 2, 1) X(GatherND, 2, 2, 1) X(NonMaxSuppression, 2, 5, 1) X(OneHot, 3, 3, 1) \
  X(ReverseSequence, 2, 2, 1) X(ScatterElements, 3, 3, 1) X(ScatterND, 3, 3, 1) X(TensorScatter, 2, 3, 1) X(TopK, 2, 2, 2) \
  X(Trilu, 1, 2, 1) X(Unique, 1, 1, 4) \
  /* image */ X(AffineGrid, 2, 2, 1) X(CenterCropPad, 2, 2, 1) X(Col2Im, 3, 3, 1) X(ConvTranspose, 2, 3, 1) X(DeformConv, 3, 5, 1) \
  X(DepthToSpace, 1, 1, 1) X(GlobalLpPool, 1, 1, 1) X(GridSample, 2, 2, 1) X(LpPool, 1, 1, 1) \
  X(MaxPoolWithIndices, 1, 1, 2) X(MaxRoiPool, 2, 2, 1) X(MaxUnpool, 2, 3, 1) X(Resize, 1, 4, 1) X(RoiAlign, 3, 3, 1) \
  X(SpaceToDepth, 1, 1, 1) \
  /* quant */ X(ConvInteger, 2, 4, 1) X(DequantizeLinear, 2, 3, 1) X(DynamicQuantizeLinear, 1, 1, 3) X(MatMulInteger, 2, 4, 1) \
  X(MatMulNBits, 3, 6, 1) X(QLinearConv, 8, 14, 1) X(QLinearMatMul, 8, 8, 1) X(QuantizeLinear, 2, 3, 1) \
  /* recurrent */ X(Attention, 3, 7, -1) X(CausalConvWithState, 2, 4, 2) X(GRU, 3, 6, -1) \
  X(LinearAttention, 3, 6, 2) X(LSTM, 3, 8, -1) X(RNN, 3, 6, -1) X(RotaryEmbedding, 3, 4, 1) \
  /* text */ X(RegexFullMatch, 1, 1, 1) X(StringConcat, 2, 2, 1) X(StringNormalizer, 1, 1, 1) X(StringSplit, 1, 1, 2) \
  X(TfIdfVectorizer, 1, 1, 1) X(Tokenizer, 1, 1, 1) \
  /* classifier */ X(ArrayFeatureExtractor, 2, 2, 1) X(Binarizer, 1, 1, 1) \
  X(FeatureVectorizer, 1, -1, 1) X(Imputer, 1, 1, 1) X(LabelEncoder, 1, -1, 1) X(LinearClassifier, 1, 1, 2) X(LinearRegressor, 1, 1, 1) \
  X(Normalizer, 1, 1, 1) X(OneHotEncoder, 1, 1, 1) X(Scaler, 1, 1, 1) X(SVMClassifier, 1, 1, 2) X(SVMRegressor, 1, 1, 1) \
  X(TreeEnsemble, 1, -1, 1) X(TreeEnsembleClassifier, 1, -1, 2) X(TreeEnsembleRegressor, 1, -1, 1) \
  /* dynamic */ X(ConcatFromSequence, 1, 1, 1) X(Optional, 0, 1, 1) X(OptionalGetElement, 1, 1, 1) X(OptionalHasElement, 0, 1, 1) \
  X(Scan, 1, -1, -1) X(SequenceAt, 2, 2, 1) X(SequenceConstruct, 1, -1, 1) X(SequenceEmpty, 0, 0, 1) X(SequenceErase, 1, 2, 1) \
  X(SequenceInsert, 2, 3, 1) X(SequenceLength, 1, 1, 1) X(SequenceMap, 1, -1, -1) X(SplitToSequence, 1, 2, 1) \
  X(DynamicQuantizeMatMul, 3, 5, 1) X(QuantizedBinary, 8, 8, 1) X(QuantizedGlobalAveragePool, 5, 5, 1) \
  X(QuantizedLookup, 2, 2, 1) X(QuantizedMatMul, 6, 9, 1) X(QuantizedMaxPool, 1, 1, 1) \
  X(FusedConv, 2, 4, 1) X(FusedMatMul, 2, 4, 1)
// clang-format on

enum class Op : uint16_t {
#define SERIN_X(name, min, max, out) k##name,
  SERIN_GRAPH_OPS(SERIN_X)
#undef SERIN_X
};
inline constexpr size_t kOpCount = static_cast<size_t>(Op::kFusedMatMul) + 1;

struct OpSchema {
  std::string_view name;
  int min_inputs, max_inputs, outputs;  ///< -1: any number
};
const OpSchema& schema(Op op);
inline std::string_view op_name(Op op) { return schema(op).name; }
std::optional<Op> find_op(std::string_view name);

}  // namespace serin::graph
