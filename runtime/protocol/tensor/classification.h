// classification.h: the highest scores of a tensor as texts, for clients that want names instead of numbers (Triton's extension "classification").
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/tensor.h"

namespace serin::protocol {

/// What stands in an answer in place of a tensor of scores.
struct Classes {
  std::vector<std::string> texts;  ///< "value:index", or "value:index:label" where there is one; the highest first, of equals the first
  Shape shape;                     ///< of BYTES: [rows, k], or [k] where the tensor is not batched
};

/// The k highest of each row, or all of them where a row has fewer. `batched`: axis 0 counts rows, whose other axes are one list. Any type of
/// numbers; NaN comes last.
Classes classify(const TensorView& scores, bool batched, int64_t k, std::span<const std::string> labels);

}  // namespace serin::protocol
