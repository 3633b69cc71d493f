// lowering_table.cc: every operator of the graph and the function that lowers it, in one place.

#include "runtime/engine/lower/lowering_table.h"

#include <algorithm>

#include "kernels/function_names.h"
#include "runtime/engine/program/block.h"

namespace serin::engine {

namespace {

struct Row {
  graph::Op op;
  LowerFn lower;
};

using enum graph::Op;

constexpr Row kRows[] = {
    // One element at a time; functions of kernels/functions.def that are not here are lower_unary and lower_binary.
    {kClip, lower_clip},
    {kSwish, lower_swish},
    {kCast, lower_cast},
    {kCastLike, lower_cast},
    {kBitCast, lower_bit_cast},
    {kPow, lower_pow},
    {kMax, lower_chain},
    {kMin, lower_chain},
    {kSum, lower_chain},
    {kMean, lower_chain},
    {kWhere, lower_where},
    // Windows and products.
    {kConv, lower_conv},
    {kFusedConv, lower_conv},
    {kConvInteger, lower_quantized_conv},
    {kQLinearConv, lower_quantized_conv},
    {kQuantizedMaxPool, lower_quantized_max_pool},
    {kMaxPool, lower_pool},
    {kAveragePool, lower_pool},
    {kGlobalAveragePool, lower_global_pool},
    {kGlobalMaxPool, lower_global_pool},
    {kConvTranspose, lower_conv_transpose},
    {kDeformConv, lower_deform_conv},
    {kLpPool, lower_windowed_pool},
    {kMaxPoolWithIndices, lower_windowed_pool},
    {kMatMul, lower_matmul},
    {kFusedMatMul, lower_fused_matmul},
    {kGemm, lower_gemm},
    {kEinsum, lower_einsum},
    // Along axes.
    {kReduceL1, lower_reduce},
    {kReduceL2, lower_reduce},
    {kReduceMax, lower_reduce},
    {kReduceMean, lower_reduce},
    {kReduceMin, lower_reduce},
    {kReduceProd, lower_reduce},
    {kReduceSum, lower_reduce},
    {kReduceSumSquare, lower_reduce},
    {kArgMax, lower_arg_max},
    {kArgMin, lower_arg_max},
    {kCumSum, lower_cum_sum},
    {kSoftmax, lower_softmax},
    {kLogSoftmax, lower_softmax},
    {kLayerNormalization, lower_layer_norm},
    {kBatchNormalization, lower_batch_norm},
    // Moving elements, or only looking at them differently.
    {kIdentity, lower_view},
    {kReshape, lower_view},
    {kFlatten, lower_view},
    {kSqueeze, lower_view},
    {kUnsqueeze, lower_view},
    {kTranspose, lower_transpose},
    {kSlice, lower_slice},
    {kSplit, lower_split},
    {kExpand, lower_expand},
    {kTile, lower_tile},
    {kDepthToSpace, lower_depth_to_space},
    {kSpaceToDepth, lower_space_to_depth},
    {kConcat, lower_concat},
    {kPad, lower_pad},
    {kGather, lower_gather},
    {kNonZero, lower_non_zero},
};

std::string_view kind_name(graph::ValueKind kind) { return kind == graph::ValueKind::kSequence ? "a sequence" : "an optional"; }

}  // namespace

LowerFn lower_fn(graph::Op op) {
  for (const Row& row : kRows) {
    if (row.op == op) return row.lower;
  }
  if (kernels::find_unary(op_name(op))) return lower_unary;
  if (kernels::find_binary(op_name(op))) return lower_binary;
  return works_on_values(op) || has_no_kernel(op) ? nullptr : lower_generic;
}

Result<Tensor> tensor_of(const graph::Graph& graph, graph::ValueId id, Bounds& bounds) {
  const graph::Value& value = graph.value(id);
  const auto refuse = [&](const std::string& why) { return Error{Code::kUnsupported, "'" + value.name + "' " + why}; };
  Tensor tensor{.name = value.name, .dtype = value.type.dtype, .constant = value.constant};
  if (value.type.kind != graph::ValueKind::kTensor)
    return refuse("is " + std::string(kind_name(value.type.kind)) + ", which a plan cannot contain");
  if (value.constant) {
    tensor.dtype = value.constant->dtype;
    tensor.shape = value.constant->shape;
  } else if (!value.type.shape) {
    return refuse("has a rank that is not known");
  } else {
    SERIN_CHECK(bounds.apply(*value.type.shape, tensor));
  }
  if (tensor.dtype == DType::kString) return refuse("contains strings, which a plan cannot contain");
  if (tensor.dtype == DType::kUndefined) return refuse("has a type that is not known");
  return tensor;
}

}  // namespace serin::engine
