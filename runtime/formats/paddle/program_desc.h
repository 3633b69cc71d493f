// program_desc.h: reads a ProgramDesc, the protobuf message in a .pdmodel or __model__ file.
#pragma once

#include "runtime/base/result.h"
#include "runtime/base/wire.h"
#include "runtime/formats/paddle/program.h"

namespace serin::formats::paddle {

struct TensorDesc {
  int64_t type = 5;  ///< number of a dtype
  std::vector<int64_t> dims;
};
TensorDesc read_tensor_desc(wire::Message in);

/// kCorrupt, with the byte, if the message is damaged; kUnsupported for programs of Paddle 1 and for values that are no tensors. `most_parts`
/// bounds the number of messages in the message.
Result<Program> read_program_desc(wire::Bytes bytes, size_t most_parts);

}  // namespace serin::formats::paddle
