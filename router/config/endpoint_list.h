// endpoint_list.h: endpoints as people write them: a url, or a file with one on each line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"

namespace serin::router {

inline constexpr size_t kMostEndpoints = 256;  // of one version

/// `grpc_port`: of the same host, where an http url answers gRPC as well; 0: it does not.
Result<Endpoint> parse_endpoint(std::string url, uint16_t grpc_port = 0);
/// The other way.
std::string print_endpoint(const Endpoint& endpoint);

/// Empty lines and those that begin with '#' say nothing. All or none: an error names `path` and the line.
Result<std::vector<Endpoint>> parse_endpoint_list(std::string_view text, const std::string& path, uint16_t grpc_port = 0);
Result<std::string> read_endpoint_file(const std::string& path);

}  // namespace serin::router
