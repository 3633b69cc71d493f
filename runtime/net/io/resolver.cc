// resolver.cc: getaddrinfo() blocks, so every question has a thread. Questions are rare: connections are kept, and numeric addresses need none.

#include "runtime/net/io/resolver.h"

#include <netdb.h>

#include <cstring>
#include <memory>

namespace serin::net {
namespace {

Resolved ask(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  Resolved resolved;
  if (const int failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); failure != 0) {
    resolved.error = ::gai_strerror(failure);
    return resolved;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    Address address;
    if (each->ai_addrlen > sizeof address.storage) continue;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    address.set_port(port);
    resolved.addresses.push_back(address);
  }
  if (resolved.addresses.empty()) resolved.error = "no address";
  return resolved;
}

}  // namespace

void resolve(Loop& loop, const std::string& host, uint16_t port, std::function<void(Resolved)> callback) {
  loop.run_aside([host, port, callback = std::move(callback)] { return [callback, resolved = ask(host, port)] { callback(resolved); }; });
}

}  // namespace serin::net
