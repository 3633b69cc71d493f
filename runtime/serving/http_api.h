// http_api.h: everything that the HTTP port answers: hands each request to the door whose path it is.
//
//   /v2...      the Open Inference Protocol (rest_api.h)
#pragma once

#include "runtime/serving/rest_api.h"

namespace serin::serving {

class HttpApi {
 public:
  explicit HttpApi(Frontend& frontend) : open_inference_(frontend) {}

  /// Give this to net::Server. Called on io threads.
  void handle(net::Request request, net::Responder responder);

 private:
  RestApi open_inference_;
};

}  // namespace serin::serving
