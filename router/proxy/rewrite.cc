// rewrite.cc: hop-by-hop headers end here (RFC 9110, 7.6.1). The parser has dropped those that it knows and those that Connection lists; what
// is left to do are credentials for a proxy, and headers that come from this router or from nobody.

#include "router/proxy/rewrite.h"

#include <algorithm>
#include <array>

#include "runtime/net/target.h"

namespace serin::router {
namespace {

constexpr std::array<std::string_view, 2> kForProxies = {"proxy-authenticate", "proxy-authorization"};
constexpr std::array<std::string_view, 3> kOwn = {"x-serin-shadow", "x-serin-force-version", "x-serin-timeout-ms"};
constexpr std::string_view kForwardedFor = "X-Forwarded-For";

// The path was decoded once; written out again it must mean the same, so that nobody behind us decodes it a second time.
constexpr std::string_view kKeptInPaths = "!$&'()*+,;=:@/";

template <class Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::ranges::any_of(names, [name](std::string_view known) { return net::equal_ignoring_case(name, known); });
}

}  // namespace

std::optional<Target> parse_target(const net::Head& request) {
  constexpr std::string_view kPrefix = "/v2/models/", kVersions = "/versions/";
  std::string_view path = request.path;
  if (!path.starts_with(kPrefix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  if (path.ends_with('/')) path.remove_suffix(1);
  Target target;
  target.service = path.substr(0, path.find('/'));
  path.remove_prefix(target.service.size());
  if (path.starts_with(kVersions)) {  // which version answers is the router's to decide
    path.remove_prefix(kVersions.size());
    path.remove_prefix(std::min(path.find('/'), path.size()));
  }
  target.rest = path;
  target.infer = request.method == "POST" && target.rest == "/infer";
  return target;
}

void rewrite_request(net::Head& request, std::string_view peer, std::string& scratch) {
  // All that is there already, for a client may split the list over several lines, and then the peer.
  scratch.clear();
  request.headers.remove_if([&scratch](const net::Header& header) {
    const bool forwarded = net::equal_ignoring_case(header.name, kForwardedFor);
    if (forwarded) scratch.append(header.value).append(", ");
    return forwarded || is_one_of(header.name, kForProxies) || is_one_of(header.name, kOwn);
  });
  scratch.append(peer.substr(0, peer.rfind(':')));
  request.headers.add(kForwardedFor, scratch);
}

void write_target(const net::Head& request, const Target& target, const Endpoint& endpoint, std::string& out) {
  if (endpoint.path.empty()) {
    out = request.target;
    return;
  }
  out = endpoint.path;
  net::append_escaped(target.rest, kKeptInPaths, out);
  if (!request.query.empty()) out.append("?").append(request.query);
}

void rewrite_answer(net::Head& answer, std::string_view version) {
  constexpr std::string_view kVersion = "x-serin-version";
  answer.headers.remove_if(
      [](const net::Header& header) { return is_one_of(header.name, kForProxies) || net::equal_ignoring_case(header.name, kVersion); });
  answer.headers.add(kVersion, version);
}

}  // namespace serin::router
