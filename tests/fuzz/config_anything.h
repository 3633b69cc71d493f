// config_anything.h: what a fuzzer asks of the files in which we, Triton and TensorFlow Serving keep what is said of models.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// The first byte chooses who reads the rest: s a serin.yaml, p a config.pbtxt, j the same as JSON, t TensorFlow Serving's list of models.
void config_anything(std::string_view input);

}  // namespace serin::fuzz
