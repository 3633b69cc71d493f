// grpc_models.cc: what clients ask about the server and its models.

#include "inference.pb.h"
#include "runtime/base/version.h"
#include "runtime/protocol/datatype.h"
#include "runtime/serving/unary_method.h"

namespace serin::serving {
namespace {

namespace pb = inference;

void add_tensors(const std::vector<protocol::TensorSpec>& specs,
                 google::protobuf::RepeatedPtrField<pb::ModelMetadataResponse::TensorMetadata>& tensors) {
  for (const protocol::TensorSpec& spec : specs) {
    auto& tensor = *tensors.Add();
    tensor.set_name(spec.name);
    tensor.set_datatype(std::string(protocol::oip_datatype(spec.dtype)));
    if (!spec.ranked) tensor.add_shape(-1);
    for (const int64_t dim : spec.shape) tensor.add_shape(dim);
  }
}

Result<pb::ModelMetadataResponse> metadata(Frontend& frontend, const pb::ModelMetadataRequest& request) {
  const Catalogue& now = frontend.catalogue();
  SERIN_TRY(const std::shared_ptr<Version> version, now.find(request.name(), request.version()));
  pb::ModelMetadataResponse answer;
  answer.set_name(request.name());
  for (const auto& [number, entry] : now.models.find(request.name())->second.versions)
    if (entry.version) answer.add_versions(std::to_string(number));
  answer.set_platform(std::string(kPlatform));
  add_tensors(version->signature().inputs, *answer.mutable_inputs());
  add_tensors(version->signature().outputs, *answer.mutable_outputs());
  for (const auto& [name, value] : version->parameters()) (*answer.mutable_properties())[name] = value;
  return answer;
}

Result<pb::ModelReadyResponse> ready(Frontend& frontend, const pb::ModelReadyRequest& request) {
  const auto version = frontend.catalogue().find(request.name(), request.version());
  if (!version && version.error().code == Code::kNotFound) return version.error();
  pb::ModelReadyResponse answer;
  answer.set_ready(version && (*version)->usable());
  return answer;
}

std::string_view state_name(VersionState state) {
  switch (state) {
    case VersionState::kLoading: return "LOADING";
    case VersionState::kReady: return "READY";
    case VersionState::kFailed: return "UNAVAILABLE";
  }
  return "UNKNOWN";
}

Result<pb::RepositoryIndexResponse> index(Frontend& frontend, const pb::RepositoryIndexRequest& request) {
  if (!request.repository_name().empty())
    return Error{Code::kUnsupported, "there is one repository, which has no name: leave 'repository_name' empty"};
  pb::RepositoryIndexResponse answer;
  for (const auto& [name, model] : frontend.catalogue().models) {
    for (const auto& [number, held] : model.versions) {
      if (request.ready() && held.state != VersionState::kReady) continue;
      auto& entry = *answer.add_models();
      entry.set_name(name);
      entry.set_version(std::to_string(number));
      entry.set_state(std::string(state_name(held.state)));
      entry.set_reason(held.reason);
    }
  }
  return answer;
}

void set_duration(pb::StatisticDuration& duration, uint64_t count, uint64_t microseconds) {
  duration.set_count(count);
  duration.set_ns(microseconds * 1000);
}

void add_statistics(const Version& version, pb::ModelStatisticsResponse& answer) {
  const ModelMetrics& metrics = version.metrics();
  pb::ModelStatistics& model = *answer.add_model_stats();
  model.set_name(version.model());
  model.set_version(version.version());
  model.set_last_inference(static_cast<uint64_t>(metrics.last_inference_ms()));
  model.set_inference_count(metrics.inferences->value());
  model.set_execution_count(metrics.executions->value());
  pb::InferStatistics& infer = *model.mutable_inference_stats();
  const uint64_t count = metrics.success->value();
  set_duration(*infer.mutable_success(), count, metrics.request_us->value());
  set_duration(*infer.mutable_fail(), metrics.failures(), 0);
  set_duration(*infer.mutable_queue(), count, metrics.queue_us->value());
  set_duration(*infer.mutable_compute_input(), count, metrics.input_us->value());
  set_duration(*infer.mutable_compute_infer(), count, metrics.infer_us->value());
}

Result<pb::ModelStatisticsResponse> statistics(Frontend& frontend, const pb::ModelStatisticsRequest& request) {
  const Catalogue& now = frontend.catalogue();
  pb::ModelStatisticsResponse answer;
  if (!request.version().empty()) {
    SERIN_TRY(const std::shared_ptr<Version> version, now.find(request.name(), request.version()));
    add_statistics(*version, answer);
    return answer;
  }
  for (const auto& [name, model] : now.models) {
    if (!request.name().empty() && request.name() != name) continue;
    for (const auto& [number, held] : model.versions)
      if (held.version) add_statistics(*held.version, answer);
  }
  if (!request.name().empty() && !now.models.contains(request.name()))
    return Error{Code::kNotFound, "Request for unknown model: '" + request.name() + "' is not found"};
  return answer;
}

}  // namespace

void add_model_methods(Frontend& frontend, GrpcMethodMap& methods) {
  const std::string service = "/inference.GRPCInferenceService/";
  add_unary<pb::ServerLiveRequest, pb::ServerLiveResponse>(methods, service + "ServerLive", [&frontend](const auto&) {
    pb::ServerLiveResponse answer;
    answer.set_live(frontend.catalogue().usable().has_value());
    return answer;
  });
  add_unary<pb::ServerReadyRequest, pb::ServerReadyResponse>(methods, service + "ServerReady", [&frontend](const auto&) {
    pb::ServerReadyResponse answer;
    answer.set_ready(frontend.ready());
    return answer;
  });
  add_unary<pb::ServerMetadataRequest, pb::ServerMetadataResponse>(methods, service + "ServerMetadata", [](const auto&) {
    pb::ServerMetadataResponse answer;
    answer.set_name(std::string(kName));
    answer.set_version(std::string(kVersion));
    for (const std::string_view extension : kExtensions) answer.add_extensions(std::string(extension));
    return answer;
  });
  const auto bound = [&frontend](auto function) {
    return [&frontend, function](const auto& request) { return function(frontend, request); };
  };
  add_unary<pb::ModelReadyRequest, pb::ModelReadyResponse>(methods, service + "ModelReady", bound(ready));
  add_unary<pb::ModelMetadataRequest, pb::ModelMetadataResponse>(methods, service + "ModelMetadata", bound(metadata));
  add_unary<pb::ModelStatisticsRequest, pb::ModelStatisticsResponse>(methods, service + "ModelStatistics", bound(statistics));
  add_unary<pb::RepositoryIndexRequest, pb::RepositoryIndexResponse>(methods, service + "RepositoryIndex", bound(index));
}

}  // namespace serin::serving
