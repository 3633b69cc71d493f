// rewrite.cc: hop-by-hop headers end here (RFC 9110, 7.6.1). The parser has dropped those that it knows and those that Connection lists; what
// is left to do are credentials for a proxy, and headers that come from this router or from nobody.

#include "router/proxy/rewrite.h"

#include <algorithm>
#include <array>

#include "runtime/net/target.h"

namespace serin::router {
namespace {

constexpr std::array<std::string_view, 2> kForProxies = {"proxy-authenticate", "proxy-authorization"};
constexpr std::array<std::string_view, 5> kOwn = {"x-serin-shadow", "x-serin-force-version", "x-serin-timeout-ms", "x-serin-service",
                                                  kGrpcTimeout};
constexpr std::string_view kForwardedFor = "X-Forwarded-For", kVersionHeader = "x-serin-version";

// The path was decoded once; written out again it must mean the same, so that nobody behind us decodes it a second time.
constexpr std::string_view kKeptInPaths = "!$&'()*+,;=:@/";

template <class Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::ranges::any_of(names, [name](std::string_view known) { return net::equal_ignoring_case(name, known); });
}

/// Whatever the case of a protocol's words: TensorFlow Serving takes any.
bool skip(std::string_view& path, std::string_view prefix) {
  if (!net::equal_ignoring_case(path.substr(0, prefix.size()), prefix)) return false;
  path.remove_prefix(prefix.size());
  return true;
}

std::string_view take_until(std::string_view& path, std::string_view ends) {
  const std::string_view taken = path.substr(0, path.find_first_of(ends));
  path.remove_prefix(taken.size());
  return taken;
}

}  // namespace

std::optional<Target> parse_target(const net::Head& request) {
  std::string_view path = request.path;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const bool post = request.method == "POST";
  if (skip(path, "/v2/models/")) {
    Target target{.service = take_until(path, "/")};
    if (skip(path, "/versions/")) take_until(path, "/");  // which version answers is the router's to decide
    target.rest = path;
    target.infer = post && (path == "/infer" || path == "/generate");
    return target;
  }
  if (skip(path, "/v1/models/")) {
    Target target{.service = take_until(path, "/:")};
    if (skip(path, "/versions/") || skip(path, "/labels/")) take_until(path, "/:");
    target.rest = path;
    const auto is = [path](std::string_view verb) { return net::equal_ignoring_case(path, verb); };
    target.infer = post && (is(":predict") || is(":classify") || is(":regress"));
    return target;
  }
  skip(path, "/");
  const std::string_view first = take_until(path, "/");
  if (first.empty() || first == "v1" || first == "v2") return std::nullopt;
  return Target{.service = first, .rest = path, .infer = post, .model = false};
}

void rewrite_request(net::Head& request, std::string_view peer, bool judged, std::string& scratch) {
  // All that is there already, for a client may split the list over several lines, and then the peer.
  scratch.clear();
  request.headers.remove_if([&scratch, judged](const net::Header& header) {
    const bool forwarded = net::equal_ignoring_case(header.name, kForwardedFor);
    if (forwarded) scratch.append(header.value).append(", ");
    const bool packs = judged && net::equal_ignoring_case(header.name, "accept-encoding");
    return forwarded || packs || is_one_of(header.name, kForProxies) || is_one_of(header.name, kOwn);
  });
  scratch.append(peer.substr(0, peer.rfind(':')));
  request.headers.add(kForwardedFor, scratch);
}

void write_target(const net::Head& request, const Target& target, const Endpoint& endpoint, std::string& out) {
  if (endpoint.path.empty() || target.grpc) {
    out = request.target;
    return;
  }
  out = endpoint.path;
  net::append_escaped(target.rest, kKeptInPaths, out);
  if (!request.query.empty()) out.append("?").append(request.query);
}

void rewrite_answer(net::Head& answer, std::string_view version) {
  answer.headers.remove_if([](const net::Header& header) {
    return is_one_of(header.name, kForProxies) || net::equal_ignoring_case(header.name, kVersionHeader);
  });
  answer.headers.add(kVersionHeader, version);
}

}  // namespace serin::router
