// paddle_api.h: Paddle Serving's API over HTTP.
//
//   POST /GeneralModelService/inference, /debug      JSON, or application/proto: the model of the server, if it has only one
//   POST /M/prediction                               the pipeline's form: model M
//
// Errors have err_no and err_msg in their body, which Paddle's clients read. Their status describes the error as in other APIs; in Paddle's
// dialect it is 200.
#pragma once

#include "runtime/serving/apis/frontend.h"
#include "runtime/serving/apis/path_api.h"

namespace serin::serving {

class PaddleApi final : public PathApi {
 public:
  explicit PaddleApi(Frontend& frontend) : frontend_(frontend) {}

  bool serves(std::string_view path) const override;
  void handle(net::Request&& request, net::Responder responder) override;

 private:
  Frontend& frontend_;
};

}  // namespace serin::serving
