// intake.h: reads a socket that is watched edge-triggered: until a read says that nothing more is there, there may be more, and no event will
// tell. For the .cc files of net only.
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

  /// What epoll has told.
  void ready(uint32_t events);
  Step read(Socket& socket, std::span<char> room, size_t& bytes);
  bool readable() const { return readable_; }
  int error() const { return error_; }

 private:
  int error_ = 0;
  bool readable_ = true;      // there may be bytes
  bool ending_ = false;       // epoll has told of the end: there is something to be read until it shows
  bool awaits_room_ = false;  // TLS must say something before it hears more
};

}  // namespace serin::net
