// narrow_floats.h: the stage that makes weights and activations 16 bits wide, for a device that was asked for fp16 or bf16.
#pragma once

#include <functional>

#include "kernels/backend.h"
#include "runtime/engine/layout/constant_forms.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Rewrites `program` so that f32 passes between steps as `to` where they can; answers whether anything changed. Inputs and outputs of the program keep
/// their types. `takes`: whether there is a kernel on the device; it is asked for what goes by name.
bool narrow_floats(Program& program, DType to, ConstantForms& forms, const std::function<bool(const kernels::OpDesc&)>& takes);

}  // namespace serin::engine
