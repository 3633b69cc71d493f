// microsoft_operators.cc: lists the operators of this family that are read: com.microsoft's, which quantisers and optimisers write.

#include "runtime/formats/onnx/microsoft.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

constexpr std::string_view kRotary = "interleaved num_heads rotary_embedding_dim";

constexpr OperatorRow kMicrosoftOperators[] = {
    // Transformers: microsoft_{transformer,fused,attention,group_query}.cc
    {"Attention", 1, 2, 7, 2, import_microsoft_attention},
    {"BiasAdd", 1, 3, 3, 1, import_bias_add, Op::kAdd},
    {"BiasDropout", 1, 2, 5, 2, import_bias_dropout, Op::kAdd},
    {"BiasGelu", 1, 2, 2, 1, import_bias_gelu, Op::kGelu},
    {"BiasSoftmax", 1, 2, 2, 1, import_bias_softmax, Op::kSoftmax},
    {"BiasSplitGelu", 1, 2, 2, 1, import_bias_split_gelu, Op::kMul},
    {"EmbedLayerNormalization", 1, 1, 9, 3, import_embed_layer_norm, Op::kLayerNormalization},
    {"FastGelu", 1, 1, 2, 1, import_fast_gelu, Op::kGelu},
    {"FusedConv", 1, 2, 4, 1, import_fused_conv, Op::kConv},
    {"FusedGemm", 1, 2, 3, 1, import_fused_gemm, Op::kGemm},
    {"FusedMatMul", 1, 2, 2, 1, import_fused_matmul, Op::kFusedMatMul},
    {"Gelu", 1, 1, 1, 1, import_bias_gelu, Op::kGelu},
    {"GroupNorm", 1, 3, 3, 1, import_group_norm_nhwc, Op::kGroupNormalization},
    {"GroupQueryAttention", 1, 7, 16, 4, import_group_query_attention},
    {"MultiHeadAttention", 1, 1, 10, 4, import_multi_head_attention},
    {"QAttention", 1, 5, 9, 2, import_quantised_attention},
    {"QEmbedLayerNormalization", 1, 8, 18, 2, import_quantised_embed_layer_norm, Op::kLayerNormalization},
    {"QuickGelu", 1, 1, 1, 1, import_quick_gelu, Op::kSwish},
    {"RotaryEmbedding", 1, 4, 4, 1, import_microsoft_rotary_embedding, Op::kRotaryEmbedding},
    {"SimplifiedLayerNormalization", 1, 2, 2, 2, import_simplified_layer_norm, Op::kRMSNormalization},
    {"SkipLayerNormalization", 1, 3, 5, 4, import_skip_layer_norm, Op::kLayerNormalization},
    {"SkipSimplifiedLayerNormalization", 1, 3, 4, 4, import_skip_rms_norm, Op::kRMSNormalization},
    {"Tokenizer", 1, 1, 1, 1, import_plain, Op::kTokenizer, "mark mincharnum pad_value separators tokenexp"},
    {"TransposeMatMul", 1, 2, 2, 1, import_fused_matmul, Op::kFusedMatMul},
    {"Trilu", 1, 1, 2, 1, import_plain, Op::kTrilu, "upper"},
    {"Unique", 1, 1, 1, 3, import_microsoft_unique, Op::kUnique},
};

}  // namespace

OperatorFamily microsoft_operators() { return {"com.microsoft", kMicrosoftOperators}; }

}  // namespace serin::formats::onnx
