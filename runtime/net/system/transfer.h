// transfer.h: reads from and writes to a descriptor without TLS. Interrupted calls are repeated. For the .cc files of net only.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace serin::net {

/// Result of one read or write: bytes, or the error EAGAIN, ECONNRESET ... A read of 0 bytes without an error is the end of the stream.
struct Transfer {
  size_t bytes = 0;
  int error = 0;
  bool drained = false;  ///< for a read: no more bytes are there until the next event
  bool held = false;     ///< with TLS: some taken bytes are not sent yet; write again, possibly nothing, once there is room
};

Transfer receive_from(int descriptor, std::span<char> room);
Transfer send_to(int descriptor, std::string_view bytes);
/// Writes both in one system call.
Transfer send_to(int descriptor, std::string_view first, std::string_view second);

}  // namespace serin::net
