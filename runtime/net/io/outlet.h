// outlet.h: the sending half of a connection (the other is inlet.h): what was said and the socket has not taken yet. The same for server and client.
//
// What is small is copied behind the head and goes out with it; of what is large only as much is taken as the socket takes, so that whoever makes
// it waits. For the .cc files of net only.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/net/io/socket.h"

namespace serin::net {

class Outlet {
 public:
  explicit Outlet(bool writable) : writable_(writable) {}

  /// A message begins; what is left of the one before is forgotten.
  void clear() {
    text_.clear();
    sent_ = 0;
    waited_for_ = false;
  }
  void set_chunked(bool chunked) { chunked_ = chunked; }
  /// For heads, and small bodies with them: sent by the next write() or flush().
  std::string& text() { return text_; }

  struct Taken {
    size_t bytes = 0;
    bool all = false;  ///< otherwise handler_waited() will say so, once there is room
  };
  /// Of a body; `last`: its end. A socket that fails takes everything from then on: see broken().
  Taken write(Socket& socket, std::string_view bytes, bool last);
  /// What the socket had no room for. False: it failed.
  bool flush(Socket& socket);

  /// epoll told that the socket has room.
  void ready() { writable_ = true; }
  /// The socket took all it was given.
  bool writable() const { return writable_; }
  bool empty() const { return sent_ == text_.size() && !held_; }
  bool broken() const { return broken_; }
  bool handler_waited() { return std::exchange(waited_for_, false); }

 private:
  bool send(Socket& socket, std::string_view bytes, size_t& taken);

  std::string text_;
  size_t sent_ = 0;  // of text_
  bool writable_;
  bool chunked_ = false, broken_ = false;
  bool held_ = false;        // the socket has taken more than it has sent
  bool waited_for_ = false;  // write() took less than it was given
};

}  // namespace serin::net
