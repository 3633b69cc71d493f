// attention_views.h: operands of attention that are read where they were made.
#pragma once

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Attention reads q, k and v through the transposes, slices and splits before it, which then need not be copied. Steps that nobody reads any more go.
void view_attention_operands(Program& program);

}  // namespace serin::engine
