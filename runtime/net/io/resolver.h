// resolver.h: resolves names to addresses without blocking an io thread. For the .cc files of net, and for router/proxy, which watches
// names.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/net/io/socket.h"
#include "runtime/net/loop.h"

namespace serin::net {

struct Resolved {
  std::vector<Address> addresses;  ///< with the requested port; empty: see error
  std::string error;
};

/// Queries the system (hosts file, DNS) on a separate thread, then calls back on the io thread of `loop`.
void resolve(Loop& loop, const std::string& host, uint16_t port, std::function<void(Resolved)> callback);

}  // namespace serin::net
