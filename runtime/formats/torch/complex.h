// complex.h: complex numbers. A graph has none: a value that stands for some has one more axis at its end, of real and imaginary part.
//
// Functions that compute take the parts, which are values of their own, and join the parts of the result. Where the
// next function takes parts again, no node reads the joined value, and it is removed as dead code.
#pragma once

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {

Parts parts_of(NodeImport& node, graph::ValueId both);
/// kNone as one of the parts stands for zeros.
graph::ValueId as_complex(NodeImport& node, Parts parts);
/// The parts of a tensor or number in the type of the result; kNone where they are zero.
Parts complex_operand(NodeImport& node, std::string_view name);
graph::ValueId zeros_like(NodeImport& node, graph::ValueId x);
graph::ValueId multiplied(NodeImport& node, graph::ValueId x, double factor);  ///< x itself for a factor of 1

}  // namespace serin::formats::torch
