// selection_table.cc: lists the operators of this family that have a reference kernel: gathering, scattering, sorting, boxes.

#include "kernels/ref/selection.h"

namespace serin::kernels::ref {

std::span<const GenericRow> selection_kernels() {
  static constexpr GenericRow kRows[] = {
      {"CombinedNonMaxSuppression", combined_non_max_suppression},
      {"Compress", compress},
      {"FillEmptyRows", fill_empty_rows},
      {"GatherElements", gather_elements},
      {"GatherND", gather_nd},
      {"NonMaxSuppression", non_max_suppression},
      {"OneHot", one_hot},
      {"ReverseSequence", reverse_sequence},
      {"ScatterElements", scatter_elements},
      {"ScatterND", scatter_nd},
      {"SegmentReduce", segment_reduce},
      {"SparseReshape", sparse_reshape},
      {"TensorScatter", tensor_scatter},
      {"TopK", top_k},
      {"Trilu", trilu},
      {"Unique", unique},
  };
  return kRows;
}

}  // namespace serin::kernels::ref
