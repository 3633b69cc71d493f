// tensor_reshape.h: the `reshape` of config.pbtxt: clients use another shape of a tensor than the model, with the same elements in the same
// order.
//
//   input { name: "x" dims: [ 1 ] reshape { shape: [ ] } }      clients send [n,1], the model takes [n]
//
// It also applies the `output` of config.pbtxt: clients see the listed outputs, in that order, whatever else the model computes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::serving {

/// Dimensions after the batch; -1: any size. The i-th open dimension outside is the i-th one inside.
struct TensorReshape {
  std::vector<int64_t> outside, inside;

  /// kInvalidArgument unless both have the same number of elements for all open sizes.
  static Result<TensorReshape> of(const std::string& name, std::vector<int64_t> outside, std::vector<int64_t> inside);
  /// `batched`: axis 0 stays unchanged. Other shapes stay unchanged.
  Shape inward(const Shape& shape, bool batched) const;
  Shape outward(const Shape& shape, bool batched) const;
};

/// For a model's inputs and outputs, in their order.
struct TensorReshapes {
  std::vector<std::optional<TensorReshape>> inputs, outputs;
  std::vector<size_t> chosen;  ///< indices of outputs; empty: all, in the model's order
  bool batched = false;
  bool counts_rows = false;  ///< clients' shapes have no rows, but the model's have: rows are counted after the conversion
  bool any() const;
};

}  // namespace serin::serving
