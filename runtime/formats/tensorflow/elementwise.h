// elementwise.h: operands in one order of axes.
#pragma once

#include <vector>

#include "runtime/formats/tensorflow/node_import.h"

namespace serin::formats::tf {

struct Operands {
  std::vector<ValueId> ids;
  bool first = false;  ///< with channels first
};

/// The operands `begin` to `end` of an operator that broadcasts, in the order of axes that needs fewer conversions.
Operands broadcast_operands(NodeImport& n, size_t begin, size_t end);

}  // namespace serin::formats::tf
