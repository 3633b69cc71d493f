// selection_rules.cc: shape rules of one family: gathering, scattering, sorting, boxes.

#include "runtime/graph/ops/families.h"
#include "runtime/graph/ops/selection.h"

namespace serin::graph {

std::span<const OpRules> selection_rules() {
  static constexpr OpRules kRules[] = {
      {Op::kCompress, infer_compress, nullptr},
      {Op::kGatherElements, infer_gather_elements, nullptr},
      {Op::kGatherND, infer_gather_nd, nullptr},
      {Op::kNonMaxSuppression, infer_non_max_suppression, nullptr},
      {Op::kOneHot, infer_one_hot, nullptr},
      {Op::kReverseSequence, infer_reverse_sequence, nullptr},
      {Op::kScatterElements, infer_scatter_elements, nullptr},
      {Op::kScatterND, infer_scatter_nd, nullptr},
      {Op::kTensorScatter, infer_tensor_scatter, nullptr},
      {Op::kTopK, infer_top_k, nullptr},
      {Op::kTrilu, infer_trilu, nullptr},
      {Op::kUnique, infer_unique, nullptr},
  };
  return kRules;
}

}  // namespace serin::graph
