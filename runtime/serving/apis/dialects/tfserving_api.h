// tfserving_api.h: TensorFlow Serving's REST API, and KServe's V1 protocol, which has the same paths.
//
//   POST /v1/models/M[/versions/V|/labels/L]:predict|:classify|:regress
//   GET  /v1/models/M[/versions/V|/labels/L][/metadata]
//
// Fixed words in any case. Anything else below /v1/models is 400, as there. Where the server speaks as KServe's, GET / says that it is alive, GET /v1/models lists
// names, GET /v1/models/M is the model's readiness, and what is predicted is "predictions" whatever way it was asked. Bodies are runtime/protocol's.
#pragma once

#include "runtime/net/server.h"
#include "runtime/serving/apis/frontend.h"

namespace serin::serving {

class TfServingApi {
 public:
  explicit TfServingApi(Frontend& frontend) : frontend_(frontend) {}

  /// Whether the path is one of this door's.
  bool serves(std::string_view path) const;
  /// Called on io threads.
  void handle(net::Request request, net::Responder responder);

 private:
  struct Route;
  net::Response answer(const net::Request& request);
  net::Response kserve_readiness(const Route& route);

  Frontend& frontend_;
};

}  // namespace serin::serving
