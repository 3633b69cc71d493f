// intake.h: reads a socket that epoll watches edge-triggered. For the .cc files of net only.
//
// Until a read reports that no more bytes are there, there may be more, and no event reports them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/net/io/socket.h"

namespace serin::net {

class Intake {
 public:
  enum class Step : uint8_t {
    kSome,
    kNothing,  ///< wait for the next event
    kEnd,      ///< the other side has ended its direction
    kFailed    ///< the connection is broken: see error()
  };

  /// Records the events that epoll reported.
  void ready(uint32_t events);
  Step read(Socket& socket, std::span<char> room, size_t& bytes);
  bool readable() const { return readable_; }
  int error() const { return error_; }

 private:
  int error_ = 0;
  bool readable_ = true;      // there may be bytes
  bool ending_ = false;       // epoll has reported the end: reads continue until it appears
  bool awaits_room_ = false;  // TLS must send something before it can receive more
};

}  // namespace serin::net
