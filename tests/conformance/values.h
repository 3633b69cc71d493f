// values.h: what the suite's files hold, as the engine takes it, and how far what comes out is from what should.
#pragma once

#include <string>

#include "runtime/cli/tools/compare.h"
#include "runtime/engine/value.h"
#include "runtime/formats/onnx/value_file.h"

namespace serin::conformance {

/// `dtype` is that of the tensors in it, as the graph declares it: an empty sequence does not say.
engine::Value to_value(const formats::FileValue& value, DType dtype);

/// Empty where they match: tensors by `tolerance`, strings exactly, sequences element by element.
std::string difference(const engine::Value& actual, const engine::Value& expected, const cli::Tolerance& tolerance);

}  // namespace serin::conformance
