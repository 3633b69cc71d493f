// skim.h: a model file without its weights.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/formats/onnx/file_image.h"

namespace serin::formats::onnx {

struct Hole {
  size_t begin, end;
};

/// Reads `file` to `image`, which is as large, but for the raw_data of its large initializers. Returns what was left out, in rising order.
/// What is no ONNX model is read whole: saying what is wrong with it is for others.
Result<std::vector<Hole>> skim(const InputFile& file, std::span<std::byte> image);

}  // namespace serin::formats::onnx
