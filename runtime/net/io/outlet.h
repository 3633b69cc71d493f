// outlet.h: the sending half of a connection: bytes that the socket has not taken yet, for server and client (see inlet.h).
//
// Small data is copied after the head and sent with it. Of large data, the outlet takes only as much as the socket takes, so that the
// producer waits. For the .cc files of net only.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/net/io/socket.h"

namespace serin::net {

class Outlet {
 public:
  explicit Outlet(bool writable) : writable_(writable) {}

  /// Starts a message; drops the rest of the previous one.
  void clear() {
    text_.clear();
    sent_ = 0;
    waited_for_ = false;
  }
  void set_chunked(bool chunked) { chunked_ = chunked; }
  /// For heads, and small bodies with them; the next write() or flush() sends it.
  std::string& text() { return text_; }

  struct Taken {
    size_t bytes = 0;
    bool all = false;  ///< otherwise handler_waited() returns true once there is room
  };
  /// Writes a part of a body; `last`: its end. After the socket fails, everything is accepted: see broken().
  Taken write(Socket& socket, std::string_view bytes, bool last);
  /// Sends the bytes that the socket had no room for. False: it failed.
  bool flush(Socket& socket);

  /// epoll reported that the socket has room.
  void ready() { writable_ = true; }
  /// The socket took everything so far.
  bool writable() const { return writable_; }
  bool empty() const { return sent_ == text_.size() && !held_; }
  bool broken() const { return broken_; }
  bool handler_waited() { return std::exchange(waited_for_, false); }

 private:
  bool send(Socket& socket, std::string_view bytes, size_t& taken);

  std::string text_;
  size_t sent_ = 0;  // bytes sent of text_
  bool writable_;
  bool chunked_ = false, broken_ = false;
  bool held_ = false;        // the socket has taken more than it has sent
  bool waited_for_ = false;  // write() took less than it was given
};

}  // namespace serin::net
