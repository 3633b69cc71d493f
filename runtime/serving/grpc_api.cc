#include "runtime/serving/grpc_api.h"

#include "runtime/serving/http_answers.h"

namespace serin::serving {

GrpcApi::GrpcApi(Frontend& frontend) {
  add_inference_methods(frontend, methods_);
  add_model_methods(frontend, methods_);
  add_tfserving_methods(frontend, methods_);
  add_control_methods(frontend, methods_);
  add_health_methods(frontend, methods_);
  add_reflection_methods(methods_);
}

net::GrpcMethod* GrpcApi::method(std::string_view path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : found->second.get();
}

void finish_with(net::GrpcCall& call, const Error& error) {
  call.set_header("x-serin-code", code_name(error.code));
  call.finish(net::grpc_status_of(http_status(error.code)), error.message);
}

}  // namespace serin::serving
