// families.h: lists the shape rules by file. table.cc maps operators to rules.
#pragma once

#include <span>

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

// elementwise.cc
Status infer_unary(Context& c);
Status infer_not(Context& c);
Status infer_predicate(Context& c);
Status infer_cast(Context& c);
Status infer_clip(Context& c);
Status infer_arithmetic(Context& c);
Status infer_pow(Context& c);
Status infer_comparison(Context& c);
Status infer_logic(Context& c);
Status infer_where(Context& c);
Status infer_cumsum(Context& c);
// conv_pool.cc
Status infer_conv(Context& c);
Status infer_pool(Context& c);
Status infer_global_pool(Context& c);
// matmul.cc
Status infer_matmul(Context& c);
Status infer_gemm(Context& c);
Status infer_fused_matmul(Context& c);
// reduce.cc
Status infer_reduce(Context& c);
Status infer_arg(Context& c);
// reshape.cc
Status infer_reshape(Context& c);
Status infer_flatten(Context& c);
Status infer_squeeze(Context& c);
Status infer_unsqueeze(Context& c);
Status infer_transpose(Context& c);
// select.cc
Status infer_gather(Context& c);
Status infer_slice(Context& c);
// join.cc
Status infer_concat(Context& c);
Status infer_split(Context& c);
Status infer_pad(Context& c);
Status infer_tile(Context& c);
Status infer_expand(Context& c);
// normalise.cc
Status infer_softmax(Context& c);
Status infer_batch_normalization(Context& c);
Status infer_layer_normalization(Context& c);
// generate.cc
Status infer_shape(Context& c);
Status infer_size(Context& c);
Status infer_constant_of_shape(Context& c);
Status infer_range(Context& c);
Status infer_nonzero(Context& c);
// control.cc
Status infer_identity(Context& c);
Status infer_if(Context& c);
Status infer_loop(Context& c);
Status infer_scan(Context& c);
Status infer_sequence_map(Context& c);

// values.cc: small integers
void values_copy(Context& c);  ///< Identity, Cast, Reshape, Squeeze, Unsqueeze, Flatten: the same elements
void values_arithmetic(Context& c);
void values_neg(Context& c);
void values_where(Context& c);
void values_shape(Context& c);
void values_size(Context& c);
void values_gather(Context& c);
void values_slice(Context& c);
void values_transpose(Context& c);
void values_concat(Context& c);
void values_constant_of_shape(Context& c);
void values_range(Context& c);
void values_expand(Context& c);
void values_reduce_prod(Context& c);

// Families with separate tables, in <family>_rules.cc.
std::span<const OpRules> math_rules();        // functions of single elements, bits, windows, transforms, random numbers
std::span<const OpRules> norm_rules();        // normalisations, losses, training steps
std::span<const OpRules> selection_rules();   // gathering, scattering, sorting, boxes
std::span<const OpRules> image_rules();       // resizing, sampling, regions, convolutions other than Conv
std::span<const OpRules> quant_rules();       // quantisation and narrow types
std::span<const OpRules> recurrent_rules();   // RNN, GRU, LSTM, attention and operators of transformers
std::span<const OpRules> text_rules();        // strings
std::span<const OpRules> classifier_rules();  // ai.onnx.ml
std::span<const OpRules> dynamic_rules();     // sequences, optionals, Scan

}  // namespace serin::graph
