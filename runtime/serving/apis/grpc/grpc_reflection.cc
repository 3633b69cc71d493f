// grpc_reflection.cc: what grpcurl and other generic clients ask: services, and the files that describe them, in protobuf's own terms.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "health.pb.h"
#include "inference.pb.h"
#include "reflection.pb.h"
#include "runtime/serving/apis/grpc/grpc_api.h"
#include "tensorflow_serving.pb.h"

namespace serin::serving {
namespace {

namespace reflection = grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

constexpr const char* kServices[] = {"inference.GRPCInferenceService", "tensorflow.serving.PredictionService",
                                     "tensorflow.serving.ModelService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"};

/// The file and those that it imports, each once.
void add_files(const FileDescriptor& file, std::set<std::string>& seen, reflection::FileDescriptorResponse& answer) {
  if (!seen.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  answer.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) add_files(*file.dependency(i), seen, answer);
}

void answer_file(const FileDescriptor* file, const std::string& name, reflection::ServerReflectionResponse& answer) {
  if (!file) {
    answer.mutable_error_response()->set_error_code(static_cast<int>(net::GrpcStatus::kNotFound));
    answer.mutable_error_response()->set_error_message("there is no '" + name + "' here");
    return;
  }
  std::set<std::string> seen;
  add_files(*file, seen, *answer.mutable_file_descriptor_response());
}

class ReflectionMethod final : public net::GrpcMethod {
 public:
  bool many_messages() const override { return true; }

  void on_message(const std::shared_ptr<net::GrpcCall>& call, std::string_view message) override {
    reflection::ServerReflectionRequest request;
    if (!parse(request, message)) return finish_with(*call, {Code::kInvalidArgument, "the message is no ServerReflectionRequest"});
    reflection::ServerReflectionResponse answer;
    answer.set_valid_host(request.host());
    *answer.mutable_original_request() = request;
    const DescriptorPool& pool = *DescriptorPool::generated_pool();
    using Asked = reflection::ServerReflectionRequest;
    switch (request.message_request_case()) {
      case Asked::kListServices:
        for (const char* service : kServices) answer.mutable_list_services_response()->add_service()->set_name(service);
        break;
      case Asked::kFileByFilename: answer_file(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(), answer); break;
      case Asked::kFileContainingSymbol:
        answer_file(pool.FindFileContainingSymbol(request.file_containing_symbol()), request.file_containing_symbol(), answer);
        break;
      default:  // proto3 has no extensions
        answer.mutable_error_response()->set_error_code(static_cast<int>(net::GrpcStatus::kNotFound));
        answer.mutable_error_response()->set_error_message("nothing here has extensions");
    }
    call->send(net::grpc_framed(answer.SerializeAsString()));
  }

  void on_half_close(const std::shared_ptr<net::GrpcCall>& call) override { call->finish(net::GrpcStatus::kOk); }
};

}  // namespace

void add_reflection_methods(GrpcMethodMap& methods) {
  // What is not referred to is left out by the linker, and its description with it.
  google::protobuf::LinkMessageReflection<inference::ServerLiveRequest>();
  google::protobuf::LinkMessageReflection<tensorflow::serving::PredictRequest>();
  google::protobuf::LinkMessageReflection<grpc::health::v1::HealthCheckRequest>();
  for (const char* version : {"v1", "v1alpha"})
    methods.emplace(std::string("/grpc.reflection.") + version + ".ServerReflection/ServerReflectionInfo",
                    std::make_unique<ReflectionMethod>());
}

}  // namespace serin::serving
