// npz_archive.h: finds the arrays of NumPy's .npz archive. Internal to runtime/datasets and to those that write results.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/datasets/stored_file.h"

namespace serin::datasets {

/// An array of the archive: its elements are `shape.elements()` of `dtype`, from `offset` of `file` on.
struct NpzArray {
  std::string name;  ///< without ".npy"
  DType dtype = DType::kUndefined;
  Shape shape;
  uint64_t offset = 0;
  std::shared_ptr<const StoredFile> file;  ///< the archive, or a member that was decompressed

  uint64_t bytes() const { return static_cast<uint64_t>(shape.elements()) * dtype_size(dtype); }
};

/// Archives of any size (zip64). Members of numpy.savez_compressed are decompressed into files without a name. kUnsupported: a member is
/// compressed in another way, or of a type that is no number. kCorrupt: it contradicts itself. kIo: no room to decompress.
Result<std::vector<NpzArray>> find_npz_arrays(const std::shared_ptr<const StoredFile>& file);

}  // namespace serin::datasets
