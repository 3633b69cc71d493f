// resolver.h: names into addresses, without stopping an io thread. For the .cc files of net, and for who watches a name (router/proxy).
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/net/io/socket.h"

namespace serin::net {

struct Resolved {
  std::vector<Address> addresses;  ///< with the port that was asked for; empty: see error
  std::string error;
};

/// Asks the system (hosts file, DNS) on a thread of its own, then calls back on the io thread that asked.
void resolve(const std::string& host, uint16_t port, std::function<void(Resolved)> callback);

}  // namespace serin::net
