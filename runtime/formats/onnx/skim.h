// skim.h: reads a model file without its large weights.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/formats/input_file.h"

namespace serin::formats::onnx {

struct Hole {
  size_t begin, end;
};

/// Reads `file` to `image`, which has the same size, except the raw_data of large initializers. Returns the skipped ranges, in rising
/// order. A file that is not an ONNX model is read completely; the caller reports what is wrong with it.
Result<std::vector<Hole>> skim(const InputFile& file, std::span<std::byte> image);

}  // namespace serin::formats::onnx
