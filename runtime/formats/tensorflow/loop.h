// loop.h: While of control flow v2.
#pragma once

#include "runtime/formats/tensorflow/node_import.h"
#include "runtime/graph/op.h"

namespace serin::formats::tf {

void import_while(NodeImport& n, graph::Op op);

}  // namespace serin::formats::tf
