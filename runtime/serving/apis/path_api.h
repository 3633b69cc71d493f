// path_api.h: the interface of one API over HTTP. HttpApi (http_api.h) asks a list of them in order.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/net/server.h"

namespace serin::serving {

class PathApi {
 public:
  virtual ~PathApi() = default;

  /// Whether this API serves the path.
  virtual bool serves(std::string_view path) const = 0;
  /// Whether it answers paths with an empty segment, too; other APIs never see such a path.
  virtual bool takes_empty_segments() const { return false; }
  /// Answers a request for a path that it serves, without a trailing slash. Called on io threads.
  virtual void handle(net::Request&& request, net::Responder responder) = 0;
};

/// The first API that serves a path handles its requests. The last API serves every path.
using PathApis = std::vector<std::unique_ptr<PathApi>>;

}  // namespace serin::serving
