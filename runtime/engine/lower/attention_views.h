// attention_views.h: lets attention read its operands where they were computed, without copies.
#pragma once

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Attention then reads q, k and v through the transposes, slices and splits before it. Steps whose results are no longer read are removed.
void view_attention_operands(Program& program);

}  // namespace serin::engine
