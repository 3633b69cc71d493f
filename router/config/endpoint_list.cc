// endpoint_list.cc: reads one URL from each line. One invalid line invalidates the whole list, because half a list would move all traffic
// to that half.

#include "router/config/endpoint_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/base/file.h"
#include "runtime/net/message/message_writer.h"

namespace serin::router {
namespace {

constexpr size_t kLargestFile = size_t{1} << 20;

std::string_view trim(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t first = line.find_first_not_of(kSpace);
  return first == std::string_view::npos ? std::string_view() : line.substr(first, line.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string url, uint16_t grpc_port) {
  constexpr std::string_view kGrpc = "grpc";  // of "grpc://" and "grpcs://"
  const bool http = !url.starts_with(kGrpc);
  const auto parts = net::parse_url(http ? url : "http" + url.substr(kGrpc.size()));
  if (!parts || parts->path.find('?') != std::string::npos)
    return Error{Code::kInvalidArgument,
                 fmt::format("must be http://HOST:PORT[/PATH] or grpc://HOST:PORT[/PATH] (https:// and grpcs:// with TLS), not '{}'",
                             url.substr(0, 200))};
  Endpoint endpoint{.url = std::move(url), .origin = parts->origin, .http = http, .path = parts->path};
  if (!http) endpoint.grpc = endpoint.origin;
  if (http && grpc_port != 0) endpoint.grpc = {parts->origin.host, grpc_port, parts->origin.secure};
  while (endpoint.path.ends_with('/')) endpoint.path.pop_back();
  return endpoint;
}

std::string print_endpoint(const Endpoint& endpoint) {
  return fmt::format("{}{}://{}{}", endpoint.http ? "http" : "grpc", endpoint.origin.secure ? "s" : "", net::authority(endpoint.origin),
                     endpoint.path);
}

Result<std::vector<Endpoint>> parse_endpoint_list(std::string_view text, const std::string& path, uint16_t grpc_port) {
  std::vector<Endpoint> endpoints;
  std::set<std::string, std::less<>> seen;
  for (size_t number = 1, end = 0; !text.empty(); ++number, text.remove_prefix(std::min(text.size(), end + 1))) {
    end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    if (line.empty() || line.starts_with('#')) continue;
    const auto refuse = [&](std::string_view why) { return Error{Code::kInvalidArgument, fmt::format("{}:{}: {}", path, number, why)}; };
    auto endpoint = parse_endpoint(std::string(line), grpc_port);
    if (!endpoint) return refuse(endpoint.error().message);
    if (!seen.emplace(line).second) return refuse(fmt::format("endpoint {} given twice", line));
    if (endpoints.size() == kMostEndpoints) return refuse(fmt::format("more than {} endpoints", kMostEndpoints));
    endpoints.push_back(std::move(*endpoint));
  }
  return endpoints;
}

Result<std::string> read_endpoint_file(const std::string& path) { return read_file(path, kLargestFile); }

}  // namespace serin::router
