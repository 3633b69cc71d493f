// einsum.h: sums of products that are products of matrices.
#pragma once

#include <string_view>

#include "runtime/formats/tensorflow/node_import.h"
#include "runtime/graph/op.h"

namespace serin::formats::tf {

/// Emits the result of the node with MatMul, if the equation is a product of matrices; false, and nothing, otherwise.
bool einsum_as_product(NodeImport& n, ValueId a, ValueId b, std::string_view equation);

}  // namespace serin::formats::tf
