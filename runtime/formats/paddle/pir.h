// pir.h: reads a program of Paddle 3 (PIR, a JSON document).
#pragma once

#include <string_view>

#include "runtime/base/result.h"
#include "runtime/formats/paddle/program.h"

namespace serin::formats::paddle {

/// kCorrupt if the text is no JSON or no PIR; kUnsupported for another version of it.
Result<Program> read_pir(std::string_view text, size_t most_operations);

}  // namespace serin::formats::paddle
