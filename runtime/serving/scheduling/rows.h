// rows.h: some rows of a tensor, along axis 0. A request may be cut into parts, and several requests may be one batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/tensor.h"

namespace serin::serving {

/// Bytes of a row in memory; of texts those of the objects. The tensor has at least one row.
inline size_t row_bytes_of(const TensorView& view) {
  if (view.dtype != DType::kString) return view.bytes() / static_cast<size_t>(view.shape[0]);
  return static_cast<size_t>(view.elements() / view.shape[0]) * sizeof(std::string);
}

/// Rows [first, first + rows) in the same memory. The tensor has at least one row.
inline TensorView rows_of(TensorView view, int64_t first, int64_t rows) {
  view.data = view.as<std::byte>() + static_cast<size_t>(first) * row_bytes_of(view);
  view.shape[0] = rows;
  return view;
}

}  // namespace serin::serving
