// ovms_api.h: what OpenVINO Model Server answers beside the APIs that it shares with others, where the server is called so:
//
//   GET  /v1/config           every model with the states of its versions
//   POST /v1/config/reload    reads the configuration file again and looks at the models: 201 where anything has changed, 200 where nothing has, with the same body
#pragma once

#include "runtime/net/server.h"
#include "runtime/serving/apis/frontend.h"

namespace serin::serving {

class OvmsApi {
 public:
  explicit OvmsApi(Frontend& frontend) : frontend_(frontend) {}

  /// Whether the path is one of this door's.
  bool serves(std::string_view path) const;
  /// Called on io threads.
  void handle(const net::Request& request, net::Responder responder);

 private:
  Frontend& frontend_;
};

}  // namespace serin::serving
