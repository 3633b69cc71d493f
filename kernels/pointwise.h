// pointwise.h: what all kernels of kernels::Pointwise check before they believe a description.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace serin::kernels {

/// What each value is computed as, inputs first, then the results of the steps: f32 (16-bit floats, too), or bool for conditions. Nothing, with the reason
/// in `why`, where a step reads what is not there yet or of another type, an input does not broadcast to y, or the last result is no float.
std::optional<std::vector<DType>> pointwise_types(const OpDesc& desc, std::string& why);

/// How many operands a step reads.
size_t operand_count(const Pointwise::Step& step);

}  // namespace serin::kernels
