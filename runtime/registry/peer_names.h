// peer_names.h: where the servers are that share files of a registry, and which of them are refused.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/result.h"
#include "runtime/net/loop.h"

namespace serin::registry {

/// Thread-safe.
class PeerNames {
 public:
  /// `names`: "HOST:PORT[,HOST:PORT]", all of one port. A name stands for all of its addresses. Errors: kInvalidArgument.
  static Result<std::unique_ptr<PeerNames>> parse(std::string_view names);

  uint16_t port() const { return port_; }
  const std::string& server() const { return server_; }  ///< as peers know this server; another name after each start
  struct Peer {
    std::string address;
    std::string name;  ///< the HOST of the list that has this address; of several the first
  };
  /// All peers, which may include this server, as found last; by address.
  std::vector<Peer> peers() const;
  /// Looks the names up anew, on a thread of its own, and returns at once. The result comes by way of `loop`.
  void look_up(net::Loop& loop);
  /// Whether each name has been looked up at least once.
  bool looked_up() const;
  /// The peer at that address has sent wrong bytes: this process takes nothing from it any more. False: it was refused already.
  bool refuse(const std::string& address);
  bool refused(const std::string& address) const;

 private:
  struct Name {
    std::string host;
    std::vector<std::string> addresses;
    std::string problem;  // as last said
    bool asked = false, answered = false;
  };
  /// Outlives a lookup that ends late.
  struct Names {
    Mutex mutex;
    std::vector<Name> list SERIN_GUARDED_BY(mutex);
  };
  PeerNames(uint16_t port, std::vector<Name> list);

  const uint16_t port_;
  const std::string server_;
  const std::shared_ptr<Names> names_ = std::make_shared<Names>();
  mutable Mutex mutex_;
  std::set<std::string> refused_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::registry
