// selection.h: shape rules for gathering, scattering, sorting and boxes. selection_rules.cc maps operators to rules.
#pragma once

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

// selection_gather.cc
Status infer_gather_elements(Context& c);
Status infer_gather_nd(Context& c);
Status infer_scatter_elements(Context& c);
Status infer_scatter_nd(Context& c);
Status infer_tensor_scatter(Context& c);
// selection_sort.cc
Status infer_top_k(Context& c);
Status infer_unique(Context& c);
Status infer_compress(Context& c);
Status infer_one_hot(Context& c);
Status infer_non_max_suppression(Context& c);
Status infer_reverse_sequence(Context& c);
Status infer_trilu(Context& c);

}  // namespace serin::graph
