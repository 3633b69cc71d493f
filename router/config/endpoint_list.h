// endpoint_list.h: Parses endpoints as users write them: a URL, or a file with one URL on each line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"

namespace serin::router {

inline constexpr size_t kMostEndpoints = 256;  // of one version

/// `grpc_port`: the gRPC port of the same host, if an http URL also answers gRPC; 0: none.
Result<Endpoint> parse_endpoint(std::string url, uint16_t grpc_port = 0);
/// The inverse.
std::string print_endpoint(const Endpoint& endpoint);

/// Skips empty lines and lines that begin with '#'. All or nothing: an error names `path` and the line.
Result<std::vector<Endpoint>> parse_endpoint_list(std::string_view text, const std::string& path, uint16_t grpc_port = 0);
Result<std::string> read_endpoint_file(const std::string& path);

}  // namespace serin::router
