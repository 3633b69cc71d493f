// narrow_floats.h: the stage that makes weights and activations 16 bits wide, for a device with precision fp16 or bf16.
#pragma once

#include <functional>

#include "kernels/backend.h"
#include "runtime/engine/layout/constant_forms.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Rewrites `program` so that f32 values pass between steps as `to` where possible; returns whether anything changed. Inputs and outputs of
/// the program keep their types. `takes` returns whether the device has a kernel; it is called for operators that are lowered by name.
bool narrow_floats(Program& program, DType to, ConstantForms& forms, const std::function<bool(const kernels::OpDesc&)>& takes);

}  // namespace serin::engine
