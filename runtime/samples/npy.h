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

}  // namespace serin::samples
