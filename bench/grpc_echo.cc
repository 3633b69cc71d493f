// grpc_echo.cc: grpc++'s own callback server, the fastest that it has, as a peer: takes a ModelInferRequest and answers with its first tensor under another
// name, as an identity model does. No model, no queue, no batch.
//
//   grpc_echo PORT

#include <grpcpp/grpcpp.h>

#include <csignal>
#include <cstdio>

#include "inference.grpc.pb.h"  // generated into the build folder

namespace {

class Echo final : public inference::GRPCInferenceService::CallbackService {
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override {
    response->set_model_name(request->model_name());
    response->set_model_version("1");
    auto* output = response->add_outputs();
    output->set_name("OUTPUT0");
    output->set_datatype(request->inputs(0).datatype());
    *output->mutable_shape() = request->inputs(0).shape();
    response->add_raw_output_contents(request->raw_input_contents(0));
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  Echo echo;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + arguments[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&echo);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  server->Wait();
}
