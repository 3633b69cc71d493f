// http_api.h: routes each request of the HTTP ports to the API that owns its path, if the caller may make it.
//
//   /GeneralModelService/..., /M/prediction    Paddle Serving (paddle_api.h)
//   /v1/models...                              TensorFlow Serving's API, KServe's V1 protocol (tfserving_api.h)
//   /v1/config...                              OpenVINO Model Server's own API (ovms_api.h)
//   /v2/repository..., /v2/logging ...         Triton's extensions for admin requests (control_api.h)
//   /v2...                                     the Open Inference Protocol (rest_api.h)
#pragma once

#include "runtime/serving/apis/access.h"
#include "runtime/serving/apis/control_api.h"
#include "runtime/serving/apis/dialects/ovms_api.h"
#include "runtime/serving/apis/dialects/paddle_api.h"
#include "runtime/serving/apis/dialects/tfserving_api.h"
#include "runtime/serving/apis/rest/rest_api.h"

namespace serin::serving {

class HttpApi {
 public:
  HttpApi(Frontend& frontend, Access& access)
      : frontend_(frontend),
        access_(access),
        open_inference_(frontend),
        control_(frontend),
        tf_serving_(frontend),
        ovms_(frontend),
        paddle_(frontend) {}

  /// Returns the handler for net::Server, which calls it on io threads.
  net::Handler at(Access::Port port);

 private:
  void handle(net::Request&& request, net::Responder responder, Access::Port port);

  Frontend& frontend_;
  Access& access_;
  RestApi open_inference_;
  ControlApi control_;
  TfServingApi tf_serving_;
  OvmsApi ovms_;
  PaddleApi paddle_;
};

}  // namespace serin::serving
