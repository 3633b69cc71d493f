// grpc_models.cc: what clients ask about the server and its models.

#include "runtime/base/number.h"
#include "runtime/base/version.h"
#include "runtime/serving/apis/grpc/unary_method.h"
#include "runtime/serving/repository/model_queries.h"

namespace serin::serving {
namespace {

namespace pb = inference;

}  // namespace

void add_model_methods(Frontend& frontend, GrpcMethodMap& methods) {
  const std::string service = "/inference.GRPCInferenceService/";
  add_unary<pb::ServerLiveRequest, pb::ServerLiveResponse>(methods, service + "ServerLive", [&frontend](const auto&) {
    pb::ServerLiveResponse answer;
    answer.set_live(frontend.live().has_value());
    return answer;
  });
  add_unary<pb::ServerReadyRequest, pb::ServerReadyResponse>(methods, service + "ServerReady", [&frontend](const auto&) {
    pb::ServerReadyResponse answer;
    answer.set_ready(frontend.ready().has_value());
    return answer;
  });
  add_unary<pb::ServerMetadataRequest, pb::ServerMetadataResponse>(methods, service + "ServerMetadata", [&frontend](const auto&) {
    pb::ServerMetadataResponse answer;
    answer.set_name(frontend.name);
    answer.set_version(std::string(kVersion));
    for (const std::string_view extension : kExtensions) answer.add_extensions(std::string(extension));
    return answer;
  });
  const auto bound = [&frontend](auto function) {
    return [&frontend, function](const auto& request) { return function(frontend.catalogue(), request); };
  };
  add_unary<pb::ModelReadyRequest, pb::ModelReadyResponse>(methods, service + "ModelReady", [&frontend](const auto& request) {
    auto answer = model_ready(frontend.catalogue(), request);
    const bool asks_until_yes = frontend.dialect == Dialect::kTriton || frontend.dialect == Dialect::kSerin;
    if (answer || answer.error().code != Code::kNotFound || !asks_until_yes) return answer;
    // To Triton's clients that is a no like any other, and no error: they ask it of what is not there yet. But for a version that cannot be. OpenVINO's and KServe's
    // servers have an error here, and so have those that stand in for them.
    const bool version = request.version().empty() || parse_number<uint64_t>(request.version());
    return version ? Result<pb::ModelReadyResponse>(pb::ModelReadyResponse()) : Error{Code::kInvalidArgument, answer.error().message};
  });
  add_unary<pb::ModelMetadataRequest, pb::ModelMetadataResponse>(methods, service + "ModelMetadata", bound(model_metadata));
  add_unary<pb::ModelConfigRequest, pb::ModelConfigResponse>(methods, service + "ModelConfig", bound(model_config));
  add_unary<pb::ModelStatisticsRequest, pb::ModelStatisticsResponse>(methods, service + "ModelStatistics", bound(model_statistics));
  add_unary<pb::RepositoryIndexRequest, pb::RepositoryIndexResponse>(methods, service + "RepositoryIndex", bound(repository_index));
}

}  // namespace serin::serving
