// rewrite.cc: hop-by-hop headers end here (RFC 9110, 7.6.1), those that Connection lists included: a client must not be able to have
// Connection: x-serin-shadow strip or smuggle anything between us and a runtime.

#include "router/proxy/rewrite.h"

#include <algorithm>
#include <array>
#include <vector>

namespace serin::router {
namespace {

constexpr std::array<std::string_view, 9> kHopByHop = {
    "connection", "keep-alive",        "proxy-connection", "proxy-authenticate", "proxy-authorization", "te",
    "trailer",    "transfer-encoding", "upgrade"};
// Ours: they come from this router or from nobody. Host and Content-Length are written by the client.
constexpr std::array<std::string_view, 5> kOwn = {"x-serin-shadow", "x-serin-force-version", "x-serin-timeout-ms", "host",
                                                  "content-length"};

bool is_one_of(std::string_view name, auto& names) {
  return std::ranges::any_of(names, [&](std::string_view other) { return net::equal_ignoring_case(name, other); });
}

std::vector<std::string> listed_in_connection(const net::Headers& headers) {
  std::vector<std::string> names;
  for (const net::Header& header : headers.all()) {
    if (!net::equal_ignoring_case(header.name, "connection")) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      std::string_view name = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
      while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
      if (!name.empty()) names.emplace_back(name);
    }
  }
  return names;
}

// The path was decoded once; written out again it must mean the same, so that nobody behind us decodes it a second time.
std::string escape_path(std::string_view path) {
  constexpr std::string_view kPlain = "-._~!$&'()*+,;=:@/", kHex = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (alphanumeric || kPlain.find(c) != std::string_view::npos)
      escaped += c;
    else
      (escaped += '%').append({kHex[byte >> 4], kHex[byte & 15]});
  }
  return escaped;
}

// All that is there already, for a client may split the list over several lines, and then the peer.
std::string forwarded_for(const net::Request& request) {
  std::string list;
  for (const net::Header& header : request.headers.all())
    if (net::equal_ignoring_case(header.name, "x-forwarded-for")) list += header.value + ", ";
  return list + request.peer.substr(0, request.peer.rfind(':'));
}

net::Headers end_to_end(const net::Headers& headers, auto& without) {
  const auto listed = listed_in_connection(headers);
  net::Headers kept;
  for (const net::Header& header : headers.all())
    if (!is_one_of(header.name, kHopByHop) && !is_one_of(header.name, without) && !is_one_of(header.name, listed))
      kept.add(header.name, header.value);
  return kept;
}

}  // namespace

std::optional<Target> parse_target(const net::Request& request) {
  constexpr std::string_view kPrefix = "/v2/models/";
  std::string_view path = request.path;
  if (!path.starts_with(kPrefix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  if (path.ends_with('/')) path.remove_suffix(1);
  const size_t end = std::min(path.find('/'), path.size());
  Target target;
  target.service = path.substr(0, end);
  path.remove_prefix(end);
  if (path.starts_with("/versions/")) {  // which version answers is the router's to decide
    path.remove_prefix(std::string_view("/versions/").size());
    path.remove_prefix(std::min(path.find('/'), path.size()));
  }
  target.rest = path;
  target.infer = request.method == "POST" && target.rest == "/infer";
  return target;
}

net::Outgoing make_outgoing(const net::Request& request, const Target& target, const Endpoint& endpoint) {
  net::Outgoing outgoing;
  outgoing.method = request.method;
  outgoing.target = endpoint.path.empty() ? request.target
                                          : endpoint.path + escape_path(target.rest) + (request.query.empty() ? "" : "?" + request.query);
  outgoing.headers = end_to_end(request.headers, kOwn);
  outgoing.headers.set("X-Forwarded-For", forwarded_for(request));
  return outgoing;
}

net::Response make_answer(net::Response upstream, std::string_view version) {
  constexpr std::array<std::string_view, 1> kRewritten = {"content-length"};
  net::Response answer;
  answer.status = upstream.status;
  answer.headers = end_to_end(upstream.headers, kRewritten);
  answer.headers.set("x-serin-version", version);
  answer.body = std::move(upstream.body);
  return answer;
}

}  // namespace serin::router
