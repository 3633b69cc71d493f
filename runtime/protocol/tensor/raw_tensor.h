// raw_tensor.h: converts tensors to and from the binary form of messages, which Triton's REST extension and gRPC share.
//
// Elements are little-endian as in memory; each BYTES element follows a length of four bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::protocol {

/// Takes an element of BYTES off the front: its length and so many bytes. Nothing where they are not all there.
std::optional<std::string_view> take_text(std::string_view& bytes);

size_t raw_bytes(const TensorView& tensor);
void append_raw(std::string& out, const TensorView& tensor);

/// Checks that the bytes match the tensor's shape; `name` is for the message. It does not access the tensor's data.
Status check_raw(std::string_view bytes, const TensorView& tensor, std::string_view name);
/// Reads into the tensor's memory. Requires check_raw().
void read_raw(std::string_view bytes, const TensorView& tensor);

}  // namespace serin::protocol
