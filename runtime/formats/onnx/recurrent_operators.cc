// recurrent_operators.cc: lists the operators of this family that are read: RNN, GRU, LSTM, attention and the operators that transformers
// add.

#include "runtime/formats/onnx/microsoft.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

constexpr OperatorRow kRecurrentOperators[] = {
    {"Attention", 23, 3, 7, 4, import_plain, Op::kAttention,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
    {"CausalConvWithState", 27, 2, 4, 2, import_plain, Op::kCausalConvWithState, "activation"},
    {"GRU", 7, 3, 6, 2, import_plain, Op::kGRU,
     "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset"},
    {"LSTM", 7, 3, 8, 3, import_plain, Op::kLSTM,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout"},
    {"LinearAttention", 27, 3, 6, 2, import_plain, Op::kLinearAttention, "chunk_size kv_num_heads q_num_heads scale update_rule"},
    {"RNN", 7, 3, 6, 2, import_plain, Op::kRNN, "activation_alpha activation_beta activations clip direction hidden_size layout"},
    {"RotaryEmbedding", 23, 3, 4, 1, import_plain, Op::kRotaryEmbedding, "interleaved num_heads rotary_embedding_dim"},
    {"SimplifiedLayerNormalization", 7, 2, 2, 2, import_simplified_layer_norm, Op::kRMSNormalization},  // ONNX Runtime's, in no standard
};

}  // namespace

OperatorFamily recurrent_operators() { return {"", kRecurrentOperators}; }

}  // namespace serin::formats::onnx
