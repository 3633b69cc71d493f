// formats_anything.h: what a fuzzer asks of the readers of Paddle's, TensorFlow's, PyTorch's and tree models.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// A letter for the format (formats_anything.cc), then the model's files, with a line "===" between them. They are read, and what is read is
/// optimised, planned and run as load_anything does.
void formats_anything(std::string_view input);

}  // namespace serin::fuzz
