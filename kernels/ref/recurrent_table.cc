// recurrent_table.cc: lists the operators of this family that have a reference kernel: RNN, GRU, LSTM, attention and the operators that
// transformers add.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

Prepared attention(const GenericDesc& desc, std::string& why);         // attention.cc
Prepared causal_conv(const GenericDesc& desc, std::string& why);       // causal_conv.cc
Prepared linear_attention(const GenericDesc& desc, std::string& why);  // linear_attention.cc
Prepared gru(const GenericDesc& desc, std::string& why);               // recurrent.cc
Prepared lstm(const GenericDesc& desc, std::string& why);              //
Prepared rnn(const GenericDesc& desc, std::string& why);               //
Prepared rotary_embedding(const GenericDesc& desc, std::string& why);  // rotary_embedding.cc

namespace {

constexpr GenericRow kRecurrentKernels[] = {
    {"Attention", attention},
    {"CausalConvWithState", causal_conv},
    {"GRU", gru},
    {"LSTM", lstm},
    {"LinearAttention", linear_attention},
    {"RNN", rnn},
    {"RotaryEmbedding", rotary_embedding},
};

}  // namespace

std::span<const GenericRow> recurrent_kernels() { return kRecurrentKernels; }

}  // namespace serin::kernels::ref
