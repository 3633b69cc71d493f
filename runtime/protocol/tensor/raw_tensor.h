// raw_tensor.h: a tensor as bytes that travel: little-endian as in memory, BYTES as a length of four bytes before each element. Triton's REST
// extension and gRPC have the same form.
#pragma once

#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::protocol {

size_t raw_bytes(const TensorView& tensor);
void append_raw(std::string& out, const TensorView& tensor);

/// Whether the bytes are what the tensor's shape takes; `name` is for the message. Its data is not looked at.
Status check_raw(std::string_view bytes, const TensorView& tensor, std::string_view name);
/// Into the tensor's memory. Requires check_raw().
void read_raw(std::string_view bytes, const TensorView& tensor);

}  // namespace serin::protocol
