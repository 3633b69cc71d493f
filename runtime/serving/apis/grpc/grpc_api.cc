#include "runtime/serving/apis/grpc/grpc_api.h"

#include <google/protobuf/stubs/logging.h>

#include <climits>

#include "runtime/base/log.h"
#include "runtime/serving/apis/http_answers.h"

namespace serin::serving {
namespace {

/// libprotobuf complains to stderr of messages that are none: any client could write there.
void log_complaint(google::protobuf::LogLevel, const char*, int, const std::string& complaint) { log::debug("protobuf: {}", complaint); }

}  // namespace

GrpcApi::GrpcApi(GrpcMethodMap methods) : methods_(std::move(methods)) { google::protobuf::SetLogHandler(log_complaint); }

void add_grpc_methods(Frontend& frontend, GrpcMethodMap& methods) {
  add_inference_methods(frontend, methods);
  add_model_methods(frontend, methods);
  add_control_methods(frontend, methods);
  add_health_methods(frontend, methods);
  add_reflection_methods(methods);
}

net::GrpcMethod* GrpcApi::method(std::string_view path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : found->second.get();
}

bool parse(google::protobuf::MessageLite& message, std::string_view bytes) {
  return bytes.size() <= INT_MAX && message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void finish_with(net::GrpcCall& call, const Error& error) {
  call.set_header("x-serin-code", code_name(error.code));
  // HTTP has no word for it but a conflict, which clients try again.
  const bool as_it_is = error.code == Code::kFailedPrecondition;
  call.finish(as_it_is ? net::GrpcStatus::kFailedPrecondition : net::grpc_status_of(http_status(error.code)), error.message);
}

void finish_order_with(net::GrpcCall& call, const Error& error) {
  if (error.code != Code::kUnsupported && error.code != Code::kAlreadyExists) return finish_with(call, error);
  call.set_header("x-serin-code", code_name(error.code));
  call.finish(error.code == Code::kUnsupported ? net::GrpcStatus::kUnimplemented : net::GrpcStatus::kAlreadyExists, error.message);
}

}  // namespace serin::serving
