// endpoint_watch.cc: a file that cannot be read, a name that cannot be resolved and an API server that does not answer change nothing: what is
// known is better than nothing.
//
// A changed file is believed once it was read twice the same: whoever writes it in place would otherwise be seen with half a list.
// getaddrinfo() tells no TTL, so a name is asked for at an interval.

#include "router/proxy/endpoint_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "router/config/endpoint_list.h"
#include "runtime/base/log.h"
#include "runtime/net/io/resolver.h"

namespace serin::router {
namespace {

/// Sorted and each once: a name server turns its answers round, and a name may be answered from IPv4 and hosts file alike.
Result<std::vector<Endpoint>> endpoints_of(const net::Resolved& resolved, const Endpoint& name) {
  if (resolved.addresses.empty())
    return Error{Code::kUnavailable, fmt::format("cannot resolve '{}': {}", name.origin.host, resolved.error)};
  std::set<std::string> hosts;
  for (const net::Address& address : resolved.addresses) hosts.insert(address.host());
  if (hosts.size() > kMostEndpoints)
    return Error{Code::kTooLarge, fmt::format("'{}' has {} addresses, more than {}", name.origin.host, hosts.size(), kMostEndpoints)};
  std::vector<Endpoint> endpoints;
  for (const std::string& host : hosts) {
    Endpoint endpoint = name;
    endpoint.origin.host = host;
    if (endpoint.grpc) endpoint.grpc->host = host;
    endpoint.server_name = name.origin.host;
    endpoint.url = print_endpoint(endpoint);
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

}  // namespace

EndpointWatch::EndpointWatch(net::Loop& loop, std::string service, Endpoints& endpoints, std::function<void(bool)> asked,
                             kubernetes::SliceWatch* slices)
    : loop_(loop), service_(std::move(service)), endpoints_(endpoints), asked_(std::move(asked)) {
  if (endpoints_.config().source.slices)
    follow(*slices);
  else
    ask();
}

void EndpointWatch::ask() { endpoints_.config().source.name ? ask_name() : ask_file(); }

void EndpointWatch::ask_file() {
  // Aside: the file may lie on a disk that is far away, and this thread has clients.
  loop_.run_aside([this, alive = std::weak_ptr(alive_), path = endpoints_.config().source.file] {
    return [this, alive, text = read_endpoint_file(path)] {
      if (!alive.expired()) learn_file(text);
    };
  });
}

void EndpointWatch::learn_file(const Result<std::string>& text) {
  const EndpointSource& source = endpoints_.config().source;
  if (!text) return learn(text.error());
  if (*text == std::exchange(seen_, *text)) return learn(parse_endpoint_list(*text, source.file, source.grpc_port));
  timer_ = loop_.after(endpoints_.config().source.interval, [this] { ask(); });
}

void EndpointWatch::ask_name() {
  const Endpoint& name = *endpoints_.config().source.name;
  net::resolve(loop_, name.origin.host, name.origin.port, [this, alive = std::weak_ptr(alive_), &name](const net::Resolved& resolved) {
    if (!alive.expired()) learn(endpoints_of(resolved, name));
  });
}

void EndpointWatch::follow(kubernetes::SliceWatch& slices) {
  const SliceSource& source = *endpoints_.config().source.slices;
  pattern_ = source.pattern;
  if (pattern_.secure()) pattern_.server_name = slices.server_name(source.selection);
  slices.follow(source.selection, [this, alive = std::weak_ptr(alive_), &loop = loop_](const Result<kubernetes::SliceAddresses>& found) {
    loop.post([this, alive, found] {
      if (!alive.expired()) learn_slices(found);
    });
  });
}

/// A failure was logged for all versions at once, where it happened.
void EndpointWatch::learn_slices(const Result<kubernetes::SliceAddresses>& found) {
  if (!found) return asked_(false);
  if (!found->remark.empty() && found->remark != trouble_)
    log::warning("service '{}' version '{}': {}", service_, endpoints_.version(), found->remark);
  trouble_ = found->remark;
  std::vector<Endpoint> endpoints;
  for (const kubernetes::SliceAddress& address : found->addresses) {
    Endpoint endpoint = pattern_;
    endpoint.origin.host = address.host;
    endpoint.origin.port = address.port;
    const uint16_t grpc_port = endpoint.http ? address.grpc_port : address.port;
    if (grpc_port != 0) endpoint.grpc = {address.host, grpc_port, endpoint.secure()};
    endpoint.url = print_endpoint(endpoint);
    endpoints.push_back(std::move(endpoint));
  }
  asked_(replace(endpoints));
}

void EndpointWatch::learn(Result<std::vector<Endpoint>> found) {
  std::string trouble = found ? "" : found.error().message;
  if (!found && trouble != trouble_)
    log::warning("service '{}' version '{}': its {} endpoints stay as they are: {}", service_, endpoints_.version(),
                 endpoints_.list()->size(), trouble);
  trouble_ = std::move(trouble);
  const bool replaced = found && replace(*found);
  timer_ = loop_.after(endpoints_.config().source.interval, [this] { ask(); });
  asked_(replaced);
}

bool EndpointWatch::replace(const std::vector<Endpoint>& found) {
  const auto url = [](const auto& state) -> const std::string& { return state->config.url; };
  if (std::ranges::equal(*endpoints_.list(), found, {}, url, &Endpoint::url)) return false;
  endpoints_.replace(found);
  log::info("service '{}' version '{}': now has {} endpoints", service_, endpoints_.version(), found.size());
  return true;
}

}  // namespace serin::router
