// npz_archive.h: finds the arrays of NumPy's .npz archive, and writes one. Internal to runtime/datasets and to those that write results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/datasets/stored_file.h"

namespace serin::datasets {

/// An array in the archive: its elements are `shape.elements()` of `dtype` from `offset` on.
struct NpzArray {
  std::string name;  ///< without ".npy"
  DType dtype = DType::kUndefined;
  Shape shape;
  uint64_t offset = 0;
};

/// Archives of any size (zip64). kUnsupported: a member is compressed, or of a type that is no number. kCorrupt: it contradicts itself.
Result<std::vector<NpzArray>> find_npz_arrays(const StoredFile& file);

}  // namespace serin::datasets
