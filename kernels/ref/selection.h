// selection.h: The reference kernels of the selection family: gathering, scattering, sorting, boxes.
//
// One file for each group; selection_table.cc names them.
#pragma once

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

// selection_gather.cc
Prepared gather_elements(const GenericDesc& desc, std::string& why);
Prepared gather_nd(const GenericDesc& desc, std::string& why);
// selection_scatter.cc
Prepared scatter_elements(const GenericDesc& desc, std::string& why);
Prepared scatter_nd(const GenericDesc& desc, std::string& why);
Prepared tensor_scatter(const GenericDesc& desc, std::string& why);
// selection_sort.cc
Prepared top_k(const GenericDesc& desc, std::string& why);
// selection_unique.cc
Prepared unique(const GenericDesc& desc, std::string& why);
// selection_boxes.cc
Prepared combined_non_max_suppression(const GenericDesc& desc, std::string& why);
Prepared non_max_suppression(const GenericDesc& desc, std::string& why);
// selection_sparse.cc
Prepared fill_empty_rows(const GenericDesc& desc, std::string& why);
Prepared segment_reduce(const GenericDesc& desc, std::string& why);
Prepared sparse_reshape(const GenericDesc& desc, std::string& why);
// selection_rows.cc
Prepared compress(const GenericDesc& desc, std::string& why);
Prepared one_hot(const GenericDesc& desc, std::string& why);
Prepared reverse_sequence(const GenericDesc& desc, std::string& why);
Prepared trilu(const GenericDesc& desc, std::string& why);

}  // namespace serin::kernels::ref
