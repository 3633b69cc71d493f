// families.h: declares the shape and value rules that the rows of all.def name. Each is defined in the file of its family.
#pragma once

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

#define SERIN_OP(name, least, most, results, infer, values, ...) \
  Status infer(Context& c);                                      \
  void values(Context& c);
#include "runtime/graph/ops/all.def"

}  // namespace serin::graph
