// handover.h: how a router process takes over from the one before it without a connection being lost.
//
//   successor                                   the one that runs, at <store>.handover
//   connects                      ------------>
//                                 <------------ the two listening sockets (SCM_RIGHTS)
//   reads its configuration       ------------> "store": its admin API ends, all is saved, the lock is free
//                                 <------------ "store"
//   opens the store, listens      ------------> "ready": stops accepting, answers what is under way, ends
//
// Nobody else holds the sockets, so whoever waits to be accepted is accepted by one of the two. A successor that ends before it is ready hangs up, and
// the old one goes on.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/result.h"

namespace serin::cli {

/// A file descriptor that is ours.
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

/// Port 0 is any port.
bool is_bound_to(const Descriptor& socket, const std::string& address, uint16_t port);
/// What systemd passes (sd_listen_fds): the first socket is for data, the second one for the admin API.
ListeningSockets sockets_of_systemd();

/// One end of a conversation between two routers. Messages are words.
class HandoverPeer {
 public:
  explicit HandoverPeer(Descriptor socket) : socket_(std::move(socket)) {}
  /// Nothing where nobody is there.
  static std::unique_ptr<HandoverPeer> connect(const std::string& path);

  bool send(std::string_view word);
  bool send_sockets(const ListeningSockets& sockets);
  /// Whether that word comes in time.
  bool await(std::string_view word, std::chrono::seconds time);
  Result<ListeningSockets> await_sockets(std::chrono::seconds time);

 private:
  Descriptor socket_;
};

/// Where a successor may ask; a file that only its owner may open.
class HandoverPoint {
 public:
  static Result<HandoverPoint> open(const std::string& path);
  int descriptor() const { return socket_.get(); }
  std::unique_ptr<HandoverPeer> accept();

 private:
  Descriptor socket_;
};

}  // namespace serin::cli
