// handover.h: hands the listening sockets and the store from one router process to the next, without losing a connection.
//
//   successor                                   running router, at <store>.handover
//   connects                      ------------>
//                                 <------------ the two listening sockets (SCM_RIGHTS)
//   reads its configuration       ------------> "store": its admin API ends, all is saved, the lock is free
//                                 <------------ "store"
//   opens the store, listens      ------------> "ready": stops accepting, answers requests in progress, ends
//
// Only these two processes hold the sockets, so one of the two accepts every waiting connection. If a successor ends before it is ready,
// its connection closes and the old router continues.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/result.h"

namespace serin::router {

/// A file descriptor that this object owns.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  static Descriptor duplicate(int descriptor);
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

struct ListeningSockets {
  Descriptor data, admin;
};

/// Port 0 matches any port.
bool is_bound_to(const Descriptor& socket, const std::string& address, uint16_t port);
/// A socket that listens there. Fails with what the system says, for instance because another process has the port.
Result<Descriptor> listen_at(const std::string& address, uint16_t port);
/// Returns the sockets that systemd passes (sd_listen_fds): the first for data, the second for the admin API.
ListeningSockets sockets_of_systemd();

/// One end of the conversation between two routers. Messages are words.
class HandoverPeer {
 public:
  explicit HandoverPeer(Descriptor socket) : socket_(std::move(socket)) {}
  /// Returns null if no router listens there.
  static std::unique_ptr<HandoverPeer> connect(const std::string& path);

  bool send(std::string_view word);
  bool send_sockets(const ListeningSockets& sockets);
  /// Returns whether that word comes in time.
  bool await(std::string_view word, std::chrono::seconds time);
  Result<ListeningSockets> await_sockets(std::chrono::seconds time);

 private:
  Descriptor socket_;
};

/// The socket at which a successor connects; only the owner of the file may open it.
class HandoverPoint {
 public:
  static Result<HandoverPoint> open(const std::string& path);
  int descriptor() const { return socket_.get(); }
  std::unique_ptr<HandoverPeer> accept();

 private:
  Descriptor socket_;
};

}  // namespace serin::router
