// rows.h: Every kernel family of the device, in the form that table.cc requests.
//
// Each function returns a kernel, or null with the reason in `why`. Shapes are fixed and no operand is a string: table.cc ensures that.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/products.h"

namespace serin::kernels::cuda {

using Prepared = std::unique_ptr<Kernel>;

// pointwise.cu
Prepared prepare_unary(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_binary(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_select(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_prelu(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_cast(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_strided_copy(const OpDesc&, PrepareContext&, std::string& why);
// chain_interpreted.cu
Prepared prepare_chain(const OpDesc&, PrepareContext&, std::string& why);
// norm.cu
Prepared prepare_softmax(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_layer_norm(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_rms_norm(const OpDesc&, PrepareContext&, std::string& why);
// reduce.cu
Prepared prepare_reduce(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_arg_max(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_reduce_log_sum_exp(const OpDesc&, PrepareContext&, std::string& why);
// cum_sum.cu
Prepared prepare_cum_sum(const OpDesc&, PrepareContext&, std::string& why);
// movement.cu
Prepared prepare_concat(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_pad(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_one_hot(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_reverse_sequence(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_trilu(const OpDesc&, PrepareContext&, std::string& why);
// gather.cu
Prepared prepare_gather(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_gather_elements(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_gather_nd(const OpDesc&, PrepareContext&, std::string& why);
// scatter.cu
Prepared prepare_scatter_elements(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_scatter_nd(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_tensor_scatter(const OpDesc&, PrepareContext&, std::string& why);
// top_k.cu
Prepared prepare_top_k(const OpDesc&, PrepareContext&, std::string& why);
// transpose.cu
Prepared prepare_transpose(const OpDesc&, PrepareContext&, std::string& why);
// conv_finish.cu: no row of its own. Takes a Conv's inputs and, in place of its result, the sums of its products
Prepared prepare_conv_finish(const OpDesc&, PrepareContext&, std::string& why);
// matmul.cu, conv_depthwise.cu, conv.cu
Prepared prepare_matmul(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_conv_depthwise(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_conv(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_batch_norm(const OpDesc&, PrepareContext&, std::string& why);
// group_norm.cu
Prepared prepare_group_norm(const OpDesc&, PrepareContext&, std::string& why);
// lines.cu
Prepared prepare_lp_norm(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_hardmax(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_lrn(const OpDesc&, PrepareContext&, std::string& why);
// attention_present.cu, attention_tiles.cu, attention.cu
Prepared prepare_attention_present(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_attention_tiles(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_attention(const OpDesc&, PrepareContext&, std::string& why);
// transfer.cc
Prepared prepare_transfer(const OpDesc&, PrepareContext&, std::string& why);
// pool.cu
Prepared prepare_pool(const OpDesc&, PrepareContext&, std::string& why);
// conv_patches.cu, conv_transpose.cu, nbits.cu
Prepared prepare_conv_patches(const Products&, const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_conv_transpose(const Products&, const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_matmul_nbits(const Products&, const OpDesc&, PrepareContext&, std::string& why);
// rotary_embedding.cu
Prepared prepare_rotary_embedding(const OpDesc&, PrepareContext&, std::string& why);
// recurrent.cu
Prepared prepare_recurrent(const Products&, const OpDesc&, PrepareContext&, std::string& why);
// quant_rows.cu
Prepared prepare_quantise_linear(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_dequantise_linear(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_dynamic_quantise_linear(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_quantised_binary(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_quantised_lookup(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_quantised_global_average_pool(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_quantised_max_pool(const OpDesc&, PrepareContext&, std::string& why);
// quant_matmul.cu, quant_conv.cu
Prepared prepare_matmul_integer(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_quantised_matmul(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_dynamic_quantise_matmul(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_conv_integer(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_qlinear_conv(const OpDesc&, PrepareContext&, std::string& why);
// resize.cu, sampling.cu
Prepared prepare_resize(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_grid_sample(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_roi_align(const OpDesc&, PrepareContext&, std::string& why);

}  // namespace serin::kernels::cuda
