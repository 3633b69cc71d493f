// passes.h: declares every pass. Each has one .cc file, whose first comment explains the rewrite and why the graph stays equivalent.
#pragma once

#include <utility>

#include "runtime/graph/passes/pass.h"

namespace serin::graph {

#define SERIN_PASS(Class, text)                             \
  class Class final : public Pass {                         \
   public:                                                  \
    std::string_view name() const override { return text; } \
    Result<bool> run(Graph& graph) const override;          \
  }

SERIN_PASS(RemoveIdentity, "remove_identity");              ///< Identity, Cast to the same type, Reshape to the same shape ...
SERIN_PASS(DeadCode, "dead_code");                          ///< nodes whose results are not read
SERIN_PASS(CommonSubexpressions, "common_subexpressions");  ///< nodes that compute the same
SERIN_PASS(FoldShapes, "fold_shapes");                      ///< integers that shape inference knows
SERIN_PASS(ConstantOperands, "constant_operands");          ///< known axes, bounds and pads become attributes
SERIN_PASS(LowerPairedGather, "lower_paired_gather");       ///< x[i, j] with i counting the rows -> x[:, j]
SERIN_PASS(LowerGridScatter, "lower_grid_scatter");         ///< ScatterND at the places of a slice -> Concat of slices
SERIN_PASS(SoftmaxOfRows, "softmax_of_rows");               ///< Flatten, Softmax, Reshape over the last axis -> Softmax
SERIN_PASS(InlineIf, "inline_if");                          ///< If with a known condition
SERIN_PASS(WidenHalves, "widen_halves");                    ///< f16 and bf16 steps with vector kernels only for f32 -> f32
SERIN_PASS(UnflattenRows, "unflatten_rows");                ///< Reshape to rows, product, Reshape back -> Reshape, product
SERIN_PASS(FuseConvBias, "fuse_conv_bias");                 ///< Conv or ConvTranspose, Add of one number for each channel -> one
SERIN_PASS(FuseConvBatchNorm, "fuse_conv_batchnorm");       ///< Conv or ConvTranspose, BatchNormalization -> one
SERIN_PASS(FuseAttention, "fuse_attention");                ///< q k', scale, mask, softmax, v -> Attention
SERIN_PASS(FuseGelu, "fuse_gelu");                          ///< x * 0.5 * (1 + erf(x / sqrt 2)) -> Gelu
SERIN_PASS(FuseGate, "fuse_gate");                          ///< x * sigmoid(x) -> Swish; x * hardsigmoid(x) -> HardSwish
SERIN_PASS(FuseLayerNorm, "fuse_layer_norm");               ///< mean, variance, scale, shift -> LayerNormalization
SERIN_PASS(FuseRmsNorm, "fuse_rms_norm");                   ///< mean of squares, root, scale -> RMSNormalization
SERIN_PASS(LowerGemm, "lower_gemm");                        ///< Gemm -> FusedMatMul
SERIN_PASS(LowerConvTranspose, "lower_conv_transpose");     ///< ConvTranspose -> Conv: stride 1, adjacent or overlapping windows
SERIN_PASS(FuseMatMulAdd, "fuse_matmul_add");               ///< MatMul, Add of a bias -> FusedMatMul
SERIN_PASS(CommuteTransposes, "commute_transposes");        ///< rows that are transposed for a product and back
SERIN_PASS(FuseResidualAdd, "fuse_residual_add");           ///< Conv or MatMul, Add of a tensor -> with residual
SERIN_PASS(FuseActivation, "fuse_activation");              ///< Conv or MatMul, activation -> FusedConv, FusedMatMul
SERIN_PASS(FuseProjections, "fuse_projections");            ///< x Wq, x Wk, x Wv of one Attention -> one product, Split
SERIN_PASS(QuantiseProducts, "quantise_products");          ///< DequantizeLinear, Conv or MatMul, QuantizeLinear -> on bytes
SERIN_PASS(QuantiseUnits, "quantise_units");                ///< the same for movements, pools and sums
SERIN_PASS(QuantiseChains, "quantise_chains");              ///< QLinearConv, Add, Relu -> QLinearConv
SERIN_PASS(QuantiseLayout, "quantise_layout");              ///< quantised images with their channels last
SERIN_PASS(QuantiseDynamic, "quantise_dynamic");            ///< DynamicQuantizeLinear, MatMulInteger, scales -> DynamicQuantizeMatMul

#undef SERIN_PASS

/// DequantizeLinear, a function of single elements, QuantizeLinear -> a table of 256 bytes, computed by `evaluate`.
class QuantiseFunctions final : public Pass {
 public:
  explicit QuantiseFunctions(Evaluate evaluate) : evaluate_(std::move(evaluate)) {}
  std::string_view name() const override { return "quantise_functions"; }
  Result<bool> run(Graph& graph) const override;

 private:
  Evaluate evaluate_;
};

/// Nodes whose operands are all constants, computed by `evaluate`. Folding may grow the model by 4 MiB in total, because an Expand of a
/// constant is cheaper to run than to keep.
class ConstantFolding final : public Pass {
 public:
  explicit ConstantFolding(Evaluate evaluate) : evaluate_(std::move(evaluate)) {}
  std::string_view name() const override { return "constant_folding"; }
  Result<bool> run(Graph& graph) const override;

 private:
  Evaluate evaluate_;
};

}  // namespace serin::graph
