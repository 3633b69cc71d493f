// tensor_reshape.h: config.pbtxt's `reshape`: clients have a tensor in one shape, the model has it in another, with the same elements in the same order.
//
//   input { name: "x" dims: [ 1 ] reshape { shape: [ ] } }      clients send [n,1], the model takes [n]
//
// And its `output`: clients have those that it lists, in its order, whatever else the model makes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/scheduling/scheduler.h"

namespace serin::serving {

/// Dims behind the batch; -1: any size, and the i-th of those outside is the i-th of those inside.
struct TensorReshape {
  std::vector<int64_t> outside, inside;

  /// kInvalidArgument where they have not the same elements whatever the open sizes are.
  static Result<TensorReshape> of(const std::string& name, std::vector<int64_t> outside, std::vector<int64_t> inside);
  /// `batched`: axis 0 stays as it is. A shape that is no such is left alone.
  Shape inward(const Shape& shape, bool batched) const;
  Shape outward(const Shape& shape, bool batched) const;
};

/// Of a model's inputs and outputs, in their order.
struct TensorReshapes {
  std::vector<std::optional<TensorReshape>> inputs, outputs;
  std::vector<size_t> chosen;  ///< of the outputs; empty: all, as the model has them
  bool batched = false;
  bool counts_rows = false;  ///< clients' shapes have no rows, those of the model do: counted once they are the model's
  bool any() const;
};

/// Takes requests as clients have them, and gives answers so.
std::shared_ptr<Scheduler> reshaping_over(std::shared_ptr<Scheduler> below, TensorReshapes reshapes);

}  // namespace serin::serving
