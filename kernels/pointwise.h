// pointwise.h: The checks that all kernels of kernels::Pointwise make before they trust a description.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace serin::kernels {

/// The type of each value, inputs first, then the results of the steps: f32 (16-bit floats, too), or bool for conditions. Nothing, with the
/// reason in `why`, if a step reads an unavailable value or the wrong type. The same if an input does not broadcast to y, or the last
/// result is not a float.
std::optional<std::vector<DType>> pointwise_types(const OpDesc& desc, std::string& why);

/// The number of operands that a step reads.
size_t operand_count(const Pointwise::Step& step);

}  // namespace serin::kernels
