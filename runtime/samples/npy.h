// npy.h: reads NumPy's .npy files, as far as tensors need them.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::samples {

/// Accepts format versions 1 to 3, little-endian numbers and bool, C order. Otherwise kCorrupt or kUnsupported, naming what the file has.
Result<graph::ConstantPtr> read_npy(std::string_view bytes);
Result<graph::ConstantPtr> read_npy_file(const std::string& path);

/// The part of such a file before its elements.
struct NpyHeader {
  DType dtype = DType::kUndefined;
  Shape shape;
  size_t bytes = 0;  ///< of the header: the elements follow
};
/// `bytes`: the beginning of a file, with kMostNpyHeader bytes unless the file is shorter.
Result<NpyHeader> read_npy_header(std::string_view bytes);
inline constexpr size_t kMostNpyHeader = 4096;

}  // namespace serin::samples
