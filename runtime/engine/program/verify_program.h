// verify_program.h: checks the invariants of a Program after a stage has rewritten it.
#pragma once

#include "runtime/base/result.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Every operand is an input, a constant, or computed by an earlier step. Views lie inside their base. Operands of element-wise steps
/// broadcast to the result. Otherwise kInternal, naming the step.
Status verify(const Program& program);

}  // namespace serin::engine
