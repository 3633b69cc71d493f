// ovms_api.h: the API that only OpenVINO Model Server has, in its dialect.
//
//   GET  /v1/config           every model with the states of its versions
//   POST /v1/config/reload    reads the configuration file again and checks the models: 201 if anything has changed, else 200, same body
#pragma once

#include "runtime/serving/apis/frontend.h"
#include "runtime/serving/apis/path_api.h"

namespace serin::serving {

class OvmsApi final : public PathApi {
 public:
  explicit OvmsApi(Frontend& frontend) : frontend_(frontend) {}

  bool serves(std::string_view path) const override;
  void handle(net::Request&& request, net::Responder responder) override;

 private:
  Frontend& frontend_;
};

}  // namespace serin::serving
