// recurrent_rules.cc: shape rules of one family: RNN, GRU, LSTM, attention and what transformers add.

#include "runtime/graph/ops/families.h"
#include "runtime/graph/ops/recurrent.h"

namespace serin::graph {
namespace {

constexpr OpRules kRecurrentRules[] = {
    {Op::kAttention, infer_attention, nullptr},
    {Op::kCausalConvWithState, infer_causal_conv, nullptr},
    {Op::kGRU, infer_recurrent, nullptr},
    {Op::kLSTM, infer_recurrent, nullptr},
    {Op::kLinearAttention, infer_linear_attention, nullptr},
    {Op::kRNN, infer_recurrent, nullptr},
    {Op::kRotaryEmbedding, infer_rotary_embedding, nullptr},
};

}  // namespace

std::span<const OpRules> recurrent_rules() { return kRecurrentRules; }

}  // namespace serin::graph
