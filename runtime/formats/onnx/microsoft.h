// microsoft.h: importers of com.microsoft's operators for transformers, listed by file.
//
// Each importer writes its operator as canonical operators. The quantised operators are in microsoft_quant.cc.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/formats/onnx/node_import.h"

namespace serin::formats::onnx {

// microsoft_transformer.cc
void import_bias_gelu(NodeImport& node, graph::Op op);
void import_fast_gelu(NodeImport& node, graph::Op op);
void import_quick_gelu(NodeImport& node, graph::Op op);
void import_bias_split_gelu(NodeImport& node, graph::Op op);
void import_bias_add(NodeImport& node, graph::Op op);
void import_bias_dropout(NodeImport& node, graph::Op op);
void import_bias_softmax(NodeImport& node, graph::Op op);
void import_skip_layer_norm(NodeImport& node, graph::Op op);
void import_skip_rms_norm(NodeImport& node, graph::Op op);
void import_simplified_layer_norm(NodeImport& node, graph::Op op);  ///< also in the default domain, as ONNX Runtime writes it
void import_embed_layer_norm(NodeImport& node, graph::Op op);
void import_quantised_embed_layer_norm(NodeImport& node, graph::Op op);
void import_group_norm_nhwc(NodeImport& node, graph::Op op);
void import_microsoft_unique(NodeImport& node, graph::Op op);
// microsoft_fused.cc
void import_fused_matmul(NodeImport& node, graph::Op op);
void import_fused_gemm(NodeImport& node, graph::Op op);
void import_fused_conv(NodeImport& node, graph::Op op);
// microsoft_attention.cc
void import_microsoft_attention(NodeImport& node, graph::Op op);
void import_quantised_attention(NodeImport& node, graph::Op op);
void import_multi_head_attention(NodeImport& node, graph::Op op);
void import_microsoft_rotary_embedding(NodeImport& node, graph::Op op);
// microsoft_group_query.cc
void import_group_query_attention(NodeImport& node, graph::Op op);

// ---- shared steps (microsoft_steps.cc) ----

using Integers = std::vector<int64_t>;

/// Makes an operand of integers.
graph::ValueId integers_step(NodeImport& node, std::string_view name, const Integers& values);
/// Makes one i64 without axes.
graph::ValueId index_step(NodeImport& node, std::string_view name, int64_t value);
/// A number of the type of `like`, which may be known at inference only.
graph::ValueId number_like(NodeImport& node, std::string_view name, double value, graph::ValueId like);
/// Splits into equal parts, or parts of the given sizes, along an axis.
std::vector<graph::ValueId> split_step(NodeImport& node, std::string_view name, graph::ValueId x, int64_t axis, size_t parts,
                                       const Integers& sizes = {});
graph::ValueId reshape_step(NodeImport& node, std::string_view name, graph::ValueId x, const Integers& target);
/// Dimension `axis` of x, as a vector with one element.
graph::ValueId dim_step(NodeImport& node, std::string_view name, graph::ValueId x, int64_t axis);
/// Defines output i of the file's node as this value.
void define_output(NodeImport& node, size_t i, graph::ValueId value);
/// a + b, or the operand that is present.
graph::ValueId add_step(NodeImport& node, std::string_view name, graph::ValueId a, graph::ValueId b);

}  // namespace serin::formats::onnx
