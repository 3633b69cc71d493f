// paddle_api.h: Paddle Serving over HTTP.
//
//   POST /GeneralModelService/inference, /debug      JSON, or application/proto: the model that the server has, where it has one
//   POST /M/prediction                               the pipeline's form: model M
//
// Errors have err_no and err_msg in their body, which is where Paddle's clients look; their status says what went wrong as everywhere, but where the server speaks
// as Paddle's: then it is 200.
#pragma once

#include "runtime/net/server.h"
#include "runtime/serving/apis/frontend.h"

namespace serin::serving {

class PaddleApi {
 public:
  explicit PaddleApi(Frontend& frontend) : frontend_(frontend) {}

  /// Whether the path is one of this door's.
  static bool serves(std::string_view path);
  /// Called on io threads.
  void handle(net::Request request, net::Responder responder);

 private:
  Frontend& frontend_;
};

}  // namespace serin::serving
