// http_api.h: routes each request of the HTTP ports to the API that owns its path, if the caller may make it.
#pragma once

#include "runtime/serving/apis/access.h"
#include "runtime/serving/apis/frontend.h"
#include "runtime/serving/apis/path_api.h"

namespace serin::serving {

class HttpApi {
 public:
  /// `apis`: as all_http_apis() makes them.
  HttpApi(Frontend& frontend, Access& access, PathApis apis) : frontend_(frontend), access_(access), apis_(std::move(apis)) {}

  /// Returns the handler for net::Server, which calls it on io threads.
  net::Handler at(Access::Port port);

 private:
  void handle(net::Request&& request, net::Responder responder, Access::Port port);
  PathApi& api_of(std::string_view path) const;

  Frontend& frontend_;
  Access& access_;
  const PathApis apis_;
};

}  // namespace serin::serving
