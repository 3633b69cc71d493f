// tensor_parts.h: tensors taken apart and put together along an axis, as loops and sequences do between the steps of a model. Any dtype,
// strings too.
#pragma once

#include <span>

#include "runtime/base/result.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// [begin, begin + count) along `axis`; requires that it is inside. Shares the tensor's memory where the part is one piece of it.
graph::ConstantPtr part(const graph::ConstantPtr& tensor, size_t axis, int64_t begin, int64_t count);
/// The slice at `index`, without the axis.
graph::ConstantPtr slice(const graph::ConstantPtr& tensor, size_t axis, int64_t index);
/// The same elements with another shape of as many.
graph::ConstantPtr reshaped(const graph::ConstantPtr& tensor, const Shape& shape);

/// One after the other along `axis`, which counts from the end where negative. kInvalidArgument where they do not fit together, kTooLarge.
Result<graph::ConstantPtr> concatenated(std::span<const graph::ConstantPtr> parts, int64_t axis, size_t max_bytes);
/// The same along a new axis.
Result<graph::ConstantPtr> stacked(std::span<const graph::ConstantPtr> parts, int64_t axis, size_t max_bytes);

size_t bytes_of(const Value& value);  ///< of all tensors in it

}  // namespace serin::engine
