// verify_program.h: what every Program must be, checked after a stage has rewritten it.
#pragma once

#include "runtime/base/result.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Every operand is an input, a constant, or computed by an earlier step; views lie inside what they show; element-wise steps have operands that broadcast
/// to their result. kInternal, naming the step, where that is not so.
Status verify(const Program& program);

}  // namespace serin::engine
