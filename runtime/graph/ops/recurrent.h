// recurrent.h: lists the shape rules of the recurrent family by file. recurrent_rules.cc maps operators to rules.
#pragma once

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

// recurrent.cc
Status infer_recurrent(Context& c);
// attention.cc
Status infer_attention(Context& c);
Status infer_rotary_embedding(Context& c);
Status infer_linear_attention(Context& c);
Status infer_causal_conv(Context& c);

}  // namespace serin::graph
