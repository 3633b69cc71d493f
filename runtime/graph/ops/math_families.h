// math_families.h: lists the shape rules of the math family by file. math_rules.cc maps operators to rules.
#pragma once

#include "runtime/graph/ops/families.h"

namespace serin::graph {

// math_signal.cc
Status infer_window(Context& c);
Status infer_mel_weight_matrix(Context& c);
Status infer_dft(Context& c);
Status infer_stft(Context& c);
// math_einsum.cc
Status infer_einsum(Context& c);

}  // namespace serin::graph
