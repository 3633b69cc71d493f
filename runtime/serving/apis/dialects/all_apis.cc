#include "runtime/serving/apis/dialects/all_apis.h"

#include "runtime/serving/apis/control_api.h"
#include "runtime/serving/apis/dialects/ovms_api.h"
#include "runtime/serving/apis/dialects/paddle_api.h"
#include "runtime/serving/apis/dialects/tfserving_api.h"
#include "runtime/serving/apis/dialects/tfserving_grpc.h"
#include "runtime/serving/apis/rest/rest_api.h"

namespace serin::serving {

PathApis all_http_apis(Frontend& frontend) {
  PathApis apis;
  apis.push_back(std::make_unique<PaddleApi>(frontend));
  apis.push_back(std::make_unique<TfServingApi>(frontend));
  apis.push_back(std::make_unique<OvmsApi>(frontend));
  apis.push_back(std::make_unique<ControlApi>(frontend));
  apis.push_back(std::make_unique<RestApi>(frontend));
  return apis;
}

GrpcMethodMap all_grpc_methods(Frontend& frontend) {
  GrpcMethodMap methods;
  add_grpc_methods(frontend, methods);
  add_tfserving_methods(frontend, methods);
  return methods;
}

}  // namespace serin::serving
