// math_families.h: the shape rules of the math family, by the file that has them; math_rules.cc says which operator follows which.
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
