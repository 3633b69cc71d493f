// classification.h: returns the highest scores of a tensor as texts (Triton's extension "classification").
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/tensor.h"

namespace serin::protocol {

/// Replaces a tensor of scores in an answer.
struct Classes {
  /// "value:index", or "value:index:label" if there is a label; the highest first, among equals the lowest index
  std::vector<std::string> texts;
  Shape shape;  ///< shape of the BYTES tensor: [rows, k], or [k] if the tensor is not batched
};

/// Returns the k highest scores of each row, or all if a row has fewer. `batched`: axis 0 counts rows, whose other axes are one list.
/// Accepts any type of numbers; NaN comes last.
Classes classify(const TensorView& scores, bool batched, int64_t k, std::span<const std::string> labels);

}  // namespace serin::protocol
