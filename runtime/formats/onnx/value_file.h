// value_file.h: reads a file of test data (input_0.pb): a TensorProto, SequenceProto or OptionalProto.
//
// The file itself does not say which of the three it is.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::formats {

struct FileValue {
  graph::ValueKind kind = graph::ValueKind::kTensor;
  graph::ConstantPtr tensor;        ///< kTensor
  std::vector<FileValue> elements;  ///< kSequence: its elements. kOptional: none, or the contained value
};

/// The error names the file. kUnsupported: maps and sparse tensors; kTooLarge: more than kMaxValueNesting values within values.
Result<FileValue> read_value_file(const std::string& path, graph::ValueKind kind);
inline constexpr int kMaxValueNesting = 16;

}  // namespace serin::formats
