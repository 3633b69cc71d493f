#include "runtime/registry/peer_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/net/http.h"
#include "runtime/net/io/resolver.h"

namespace serin::registry {
namespace {

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// "HOST:PORT"; an IPv6 address in brackets.
std::optional<net::Origin> origin_of(std::string_view text) {
  const auto url = net::parse_url(fmt::format("http://{}", text));
  const bool has_port = text.find(':') != std::string_view::npos && !text.ends_with(']');
  if (!url || !has_port || text.find('/') != std::string_view::npos || url->origin.port == 0) return std::nullopt;
  return url->origin;
}

}  // namespace

PeerNames::PeerNames(uint16_t port, std::vector<Name> list) : port_(port), server_(random_name()) { names_->list = std::move(list); }

Result<std::unique_ptr<PeerNames>> PeerNames::parse(std::string_view names) {
  std::vector<Name> list;
  std::optional<uint16_t> port;
  while (true) {
    const size_t comma = names.find(',');
    const std::string_view each = names.substr(0, comma);
    const auto origin = origin_of(each);
    if (!origin) return invalid(fmt::format("registry peers: '{}' is not HOST:PORT", each));
    if (port.value_or(origin->port) != origin->port)
      return invalid(fmt::format("registry peers: '{}' has another port than {}; every server listens at the same one", each, *port));
    port = origin->port;
    list.push_back({.host = origin->host, .addresses = {}, .problem = {}});
    if (comma == std::string_view::npos) break;
    names.remove_prefix(comma + 1);
  }
  return std::unique_ptr<PeerNames>(new PeerNames(*port, std::move(list)));
}

void PeerNames::look_up(net::Loop& loop) {
  const MutexLock lock(names_->mutex);
  for (size_t i = 0; i < names_->list.size(); ++i) {
    Name& name = names_->list[i];
    if (std::exchange(name.asked, true)) continue;
    net::resolve(loop, name.host, port_, [names = names_, i](const net::Resolved& found) {
      const MutexLock locked(names->mutex);
      Name& it = names->list[i];
      it.asked = false;
      it.answered = true;
      if (found.error != std::exchange(it.problem, found.error) && !found.error.empty())
        log::warning("registry peers: '{}' has no address: {}", it.host, found.error);
      if (!found.error.empty()) return;  // those known before are as good as any
      it.addresses.clear();
      for (const net::Address& address : found.addresses) it.addresses.push_back(address.host());
    });
  }
}

std::vector<PeerNames::Peer> PeerNames::peers() const {
  std::vector<Peer> all;
  const MutexLock lock(names_->mutex);
  for (const Name& name : names_->list)
    for (const std::string& address : name.addresses) all.push_back({address, name.host});
  std::ranges::stable_sort(all, {}, &Peer::address);
  const auto doubled = std::ranges::unique(all, {}, &Peer::address);
  all.erase(doubled.begin(), doubled.end());
  return all;
}

bool PeerNames::looked_up() const {
  const MutexLock lock(names_->mutex);
  return std::ranges::all_of(names_->list, &Name::answered);
}

bool PeerNames::refuse(const std::string& address) {
  const MutexLock lock(mutex_);
  return refused_.insert(address).second;
}

bool PeerNames::refused(const std::string& address) const {
  const MutexLock lock(mutex_);
  return refused_.contains(address);
}

}  // namespace serin::registry
