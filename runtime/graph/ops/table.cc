// Which rules an operator follows: its shape rule, and how small integers go through it. One line an operator; families with a table of their
// own are joined below.

#include <array>
#include <span>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

constexpr OpRules kCoreRules[] = {
    {Op::kAbs, infer_unary, nullptr},
    {Op::kAdd, infer_arithmetic, values_arithmetic},
    {Op::kAnd, infer_logic, values_arithmetic},
    {Op::kArgMax, infer_arg, nullptr},
    {Op::kArgMin, infer_arg, nullptr},
    {Op::kAveragePool, infer_pool, nullptr},
    {Op::kBatchNormalization, infer_batch_normalization, nullptr},
    {Op::kCast, infer_cast, values_copy},
    {Op::kCeil, infer_unary, nullptr},
    {Op::kClip, infer_clip, nullptr},
    {Op::kConcat, infer_concat, values_concat},
    {Op::kConstantOfShape, infer_constant_of_shape, values_constant_of_shape},
    {Op::kConv, infer_conv, nullptr},
    {Op::kCos, infer_unary, nullptr},
    {Op::kCumSum, infer_cumsum, nullptr},
    {Op::kDiv, infer_arithmetic, values_arithmetic},
    {Op::kElu, infer_unary, nullptr},
    {Op::kEqual, infer_comparison, values_arithmetic},
    {Op::kErf, infer_unary, nullptr},
    {Op::kExp, infer_unary, nullptr},
    {Op::kExpand, infer_expand, values_expand},
    {Op::kFlatten, infer_flatten, values_copy},
    {Op::kFloor, infer_unary, nullptr},
    {Op::kGather, infer_gather, values_gather},
    {Op::kGelu, infer_unary, nullptr},
    {Op::kGemm, infer_gemm, nullptr},
    {Op::kGlobalAveragePool, infer_global_pool, nullptr},
    {Op::kGlobalMaxPool, infer_global_pool, nullptr},
    {Op::kGreater, infer_comparison, values_arithmetic},
    {Op::kGreaterOrEqual, infer_comparison, values_arithmetic},
    {Op::kHardSigmoid, infer_unary, nullptr},
    {Op::kHardSwish, infer_unary, nullptr},
    {Op::kIdentity, infer_identity, values_copy},
    {Op::kIf, infer_if, nullptr},
    {Op::kIsInf, infer_predicate, nullptr},
    {Op::kIsNaN, infer_predicate, nullptr},
    {Op::kLayerNormalization, infer_layer_normalization, nullptr},
    {Op::kLeakyRelu, infer_unary, nullptr},
    {Op::kLess, infer_comparison, values_arithmetic},
    {Op::kLessOrEqual, infer_comparison, values_arithmetic},
    {Op::kLog, infer_unary, nullptr},
    {Op::kLogSoftmax, infer_softmax, nullptr},
    {Op::kLoop, infer_loop, nullptr},
    {Op::kMatMul, infer_matmul, nullptr},
    {Op::kMax, infer_arithmetic, values_arithmetic},
    {Op::kMaxPool, infer_pool, nullptr},
    {Op::kMean, infer_arithmetic, nullptr},
    {Op::kMin, infer_arithmetic, values_arithmetic},
    {Op::kMod, infer_arithmetic, values_arithmetic},
    {Op::kMul, infer_arithmetic, values_arithmetic},
    {Op::kNeg, infer_unary, values_neg},
    {Op::kNonZero, infer_nonzero, nullptr},
    {Op::kNot, infer_not, values_neg},
    {Op::kOr, infer_logic, values_arithmetic},
    {Op::kPad, infer_pad, nullptr},
    {Op::kPow, infer_pow, nullptr},
    {Op::kRange, infer_range, values_range},
    {Op::kReciprocal, infer_unary, nullptr},
    {Op::kReduceL1, infer_reduce, nullptr},
    {Op::kReduceL2, infer_reduce, nullptr},
    {Op::kReduceMax, infer_reduce, nullptr},
    {Op::kReduceMean, infer_reduce, nullptr},
    {Op::kReduceMin, infer_reduce, nullptr},
    {Op::kReduceProd, infer_reduce, values_reduce_prod},
    {Op::kReduceSum, infer_reduce, nullptr},
    {Op::kReduceSumSquare, infer_reduce, nullptr},
    {Op::kRelu, infer_unary, nullptr},
    {Op::kReshape, infer_reshape, values_copy},
    {Op::kRound, infer_unary, nullptr},
    {Op::kShape, infer_shape, values_shape},
    {Op::kSigmoid, infer_unary, nullptr},
    {Op::kSign, infer_unary, nullptr},
    {Op::kSin, infer_unary, nullptr},
    {Op::kSize, infer_size, values_size},
    {Op::kSlice, infer_slice, values_slice},
    {Op::kSoftmax, infer_softmax, nullptr},
    {Op::kSoftplus, infer_unary, nullptr},
    {Op::kSplit, infer_split, nullptr},
    {Op::kSqrt, infer_unary, nullptr},
    {Op::kSqueeze, infer_squeeze, values_copy},
    {Op::kSub, infer_arithmetic, values_arithmetic},
    {Op::kSum, infer_arithmetic, values_arithmetic},
    {Op::kSwish, infer_unary, nullptr},
    {Op::kTanh, infer_unary, nullptr},
    {Op::kTile, infer_tile, nullptr},
    {Op::kTranspose, infer_transpose, values_transpose},
    {Op::kUnsqueeze, infer_unsqueeze, values_copy},
    {Op::kWhere, infer_where, values_where},
    {Op::kXor, infer_logic, nullptr},
    {Op::kFusedConv, infer_conv, nullptr},
    {Op::kFusedMatMul, infer_fused_matmul, nullptr},
};

using Table = std::array<OpRules, kOpCount>;

Table joined() {
  Table table{};
  for (const std::span<const OpRules> family :
       {std::span<const OpRules>(kCoreRules), math_rules(), norm_rules(), selection_rules(), image_rules(), quant_rules(),
        recurrent_rules(), text_rules(), classifier_rules(), dynamic_rules()}) {
    for (const OpRules& row : family) table[static_cast<size_t>(row.op)] = row;
  }
  return table;
}

}  // namespace

const OpRules& rules(Op op) {
  static const Table kTable = joined();
  return kTable[static_cast<size_t>(op)];
}

}  // namespace serin::graph
