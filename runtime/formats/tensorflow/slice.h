// slice.h: slices, as NumPy has them.
#pragma once

#include "runtime/formats/tensorflow/node_import.h"
#include "runtime/graph/op.h"

namespace serin::formats::tf {

void import_slice(NodeImport& n, graph::Op op);
void import_strided_slice(NodeImport& n, graph::Op op);

}  // namespace serin::formats::tf
