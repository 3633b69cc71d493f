// typed_list.h: converts a tensor's elements to and from one repeated field of protobuf, such as TensorFlow's float_val or Paddle's
// float_data.
//
// INT8, INT16 and similar types use wider fields, as varints. Internal to runtime/protocol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"
#include "runtime/base/wire.h"

namespace serin::protocol {

struct TypedList {
  uint32_t field = 0;
  std::string_view name;
  uint64_t lists = 0;  ///< bit i: field i is such a list, of this type or another
};

/// Returns the number of elements received; those beyond the tensor's size are only counted. kInvalidArgument: a value outside the type's
/// range, or a list of another type; `input` is for the message.
Result<int64_t> read_typed_list(wire::Decoding& decoding, wire::Bytes message, const TypedList& list, const TensorView& tensor,
                                std::string_view input);

/// Number of bytes that append_typed_list() appends.
size_t typed_list_bytes(uint32_t field, const TensorView& tensor);
void append_typed_list(std::string& out, uint32_t field, const TensorView& tensor);

size_t varint_bytes(uint64_t value);

}  // namespace serin::protocol
