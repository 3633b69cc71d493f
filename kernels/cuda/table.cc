// table.cc: chooses the kernel that runs an operator on a device. For each kind the rows are tried from left to right. There is no
// reference row: an operator that all rows refuse runs on the CPU, and the engine copies there and back
// (runtime/engine/layout/placement.h). `serin inspect --explain` prints which rows refused and why.

#include "kernels/cuda/table.h"

#include <algorithm>

#include "kernels/cuda/rows.h"
#include "kernels/cuda/sized_rows.h"

namespace serin::kernels::cuda {

KernelTable make_table(std::vector<KernelRow> products) {
  products.push_back(row("matmul_tiles_cuda", prepare_matmul));
  const auto with_products = [all = std::make_shared<const Products>(products)](auto prepare) {
    return [all, prepare](const OpDesc& desc, PrepareContext& context, std::string& why) { return prepare(*all, desc, context, why); };
  };
  KernelTable table;
  const auto set = [&table](std::string_view kind, std::vector<KernelRow> rows) {
    table[static_cast<size_t>(std::ranges::find(kOpNames, kind) - kOpNames.begin())] = std::move(rows);
  };
  set("Unary", {row_of_remade("unary_cuda", prepare_unary)});
  set("Binary", {row_of_remade("binary_cuda", prepare_binary)});
  set("Pointwise", {row("chain_cuda", prepare_chain)});
  set("Select", {row_of_remade("select_cuda", prepare_select)});
  set("Cast", {row_of_remade("cast_cuda", prepare_cast)});
  set("StridedCopy", {row("transpose_cuda", prepare_transpose), row_of_remade("strided_copy_cuda", prepare_strided_copy)});
  set("Softmax", {row("softmax_cuda", prepare_softmax)});
  set("LayerNorm", {row("layer_norm_cuda", prepare_layer_norm)});
  set("Reduce", {row("reduce_cuda", prepare_reduce)});
  set("ArgMax", {row("arg_max_cuda", prepare_arg_max)});
  set("NonZero", {row_of_views("non_zero_cuda", prepare_non_zero)});
  set("CumSum", {row("cum_sum_cuda", prepare_cum_sum)});
  set("Concat", {row_of_remade("concat_cuda", prepare_concat)});
  set("Pad", {row("pad_cuda", prepare_pad)});
  set("Gather", {row_of_remade("gather_cuda", prepare_gather)});
  set("Pool", {row("pool_cuda", prepare_pool)});
  set("MatMul", std::move(products));
  set("Conv", {row("conv_depthwise_cuda", prepare_conv_depthwise), row("conv_patches_cuda", with_products(prepare_conv_patches)),
               row("conv_direct_cuda", prepare_conv)});
  set("BatchNorm", {row("batch_norm_cuda", prepare_batch_norm)});
  set("Transfer", {row_of_views("transfer_cuda", prepare_transfer)});
  set("Generic", {
                     named("Attention", row("attention_tiles_cuda", prepare_attention_tiles)),
                     named("Attention", row("attention_cuda", prepare_attention)),
                     named("Attention", row("attention_present_cuda", prepare_attention_present)),
                     named("Compress", row_of_views("compress_cuda", prepare_compress)),
                     named("ConvInteger", row("conv_integer_cuda", prepare_conv_integer)),
                     named("ConvTranspose", row("conv_transpose_cuda", with_products(prepare_conv_transpose))),
                     named("DequantizeLinear", row("dequantise_cuda", prepare_dequantise_linear)),
                     named("DynamicQuantizeLinear", row("dynamic_quantise_cuda", prepare_dynamic_quantise_linear)),
                     named("DynamicQuantizeMatMul", row("dynamic_quantise_matmul_cuda", prepare_dynamic_quantise_matmul)),
                     named("GRU", row("gru_cuda", with_products(prepare_recurrent))),
                     named("GatherElements", row("gather_elements_cuda", prepare_gather_elements)),
                     named("GatherND", row_of_remade("gather_nd_cuda", prepare_gather_nd)),
                     named("GridSample", row("grid_sample_cuda", prepare_grid_sample)),
                     named("GroupNormalization", row("group_norm_cuda", prepare_group_norm)),
                     named("Hardmax", row("hardmax_cuda", prepare_hardmax)),
                     named("InstanceNormalization", row("instance_norm_cuda", prepare_group_norm)),
                     named("LRN", row("lrn_cuda", prepare_lrn)),
                     named("LSTM", row("lstm_cuda", with_products(prepare_recurrent))),
                     named("LpNormalization", row("lp_norm_cuda", prepare_lp_norm)),
                     named("MatMulInteger", row("matmul_integer_cuda", prepare_matmul_integer)),
                     named("MatMulNBits", row("matmul_nbits_cuda", with_products(prepare_matmul_nbits))),
                     named("NonMaxSuppression", row_of_views("suppression_cuda", prepare_non_max_suppression)),
                     named("OneHot", row("one_hot_cuda", prepare_one_hot)),
                     named("PRelu", row("prelu_cuda", prepare_prelu)),
                     named("QLinearConv", row("qlinear_conv_cuda", prepare_qlinear_conv)),
                     named("QLinearMatMul", row("qlinear_matmul_cuda", prepare_quantised_matmul)),
                     named("QuantizeLinear", row("quantise_cuda", prepare_quantise_linear)),
                     named("QuantizedBinary", row("quantised_binary_cuda", prepare_quantised_binary)),
                     named("QuantizedGlobalAveragePool", row("quantised_average_cuda", prepare_quantised_global_average_pool)),
                     named("QuantizedLookup", row("quantised_lookup_cuda", prepare_quantised_lookup)),
                     named("QuantizedMatMul", row("quantised_matmul_cuda", prepare_quantised_matmul)),
                     named("QuantizedMaxPool", row("quantised_max_pool_cuda", prepare_quantised_max_pool)),
                     named("RMSNormalization", row("rms_norm_cuda", prepare_rms_norm)),
                     named("RNN", row("rnn_cuda", with_products(prepare_recurrent))),
                     named("ReduceLogSumExp", row("log_sum_exp_cuda", prepare_reduce_log_sum_exp)),
                     named("Resize", row("resize_cuda", prepare_resize)),
                     named("ReverseSequence", row("reverse_sequence_cuda", prepare_reverse_sequence)),
                     named("RoiAlign", row("roi_align_cuda", prepare_roi_align)),
                     named("RotaryEmbedding", row("rotary_embedding_cuda", prepare_rotary_embedding)),
                     named("ScatterElements", row("scatter_elements_cuda", prepare_scatter_elements)),
                     named("ScatterND", row("scatter_nd_cuda", prepare_scatter_nd)),
                     named("TensorScatter", row("tensor_scatter_cuda", prepare_tensor_scatter)),
                     named("TopK", row("top_k_cuda", prepare_top_k)),
                     named("Trilu", row("trilu_cuda", prepare_trilu)),
                 });
  return table;
}

}  // namespace serin::kernels::cuda
