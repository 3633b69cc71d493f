// tensor_parts.h: splits and joins tensors along an axis, as loops and sequences require. Any dtype, including strings.
#pragma once

#include <span>

#include "runtime/base/result.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// Returns [begin, begin + count) along `axis`, which must be inside the tensor. It shares the tensor's memory if the part is contiguous.
graph::ConstantPtr part(const graph::ConstantPtr& tensor, size_t axis, int64_t begin, int64_t count);
/// Returns the slice at `index`, without the axis.
graph::ConstantPtr slice(const graph::ConstantPtr& tensor, size_t axis, int64_t index);
/// Returns the same elements with another shape of as many elements.
graph::ConstantPtr reshaped(const graph::ConstantPtr& tensor, const Shape& shape);

/// Joins the parts along `axis`; a negative axis counts from the end. kInvalidArgument if they do not fit together, kTooLarge.
Result<graph::ConstantPtr> concatenated(std::span<const graph::ConstantPtr> parts, int64_t axis, size_t max_bytes);
/// Joins the parts along a new axis.
Result<graph::ConstantPtr> stacked(std::span<const graph::ConstantPtr> parts, int64_t axis, size_t max_bytes);

size_t bytes_of(const Value& value);  ///< of all tensors in it

}  // namespace serin::engine
