#include "runtime/serving/repository/model_queries.h"

#include "runtime/protocol/tensor/datatype.h"
#include "runtime/serving/repository/model_config_tensors.h"

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

std::string_view state_name(const VersionEntry& entry) {
  switch (entry.state) {
    case VersionState::kLoading: return "LOADING";
    case VersionState::kReady: return "READY";
    case VersionState::kFailed: return "UNAVAILABLE";
    case VersionState::kUnloaded: return entry.leaving.expired() ? "UNAVAILABLE" : "UNLOADING";
  }
  return "UNKNOWN";
}

void set_duration(pb::StatisticDuration& duration, uint64_t count, std::chrono::nanoseconds time) {
  duration.set_count(count);
  duration.set_ns(static_cast<uint64_t>(time.count()));
}

std::chrono::nanoseconds total(const metrics::Counter& time) { return std::chrono::nanoseconds(time.value()); }

void add_batches(const ModelMetrics& metrics, pb::ModelStatistics& model) {
  for (const auto& [rows, held] : metrics.batches_by_rows()) {
    pb::InferBatchStatistics& batch = *model.add_batch_stats();
    batch.set_batch_size(static_cast<uint64_t>(rows));
    set_duration(*batch.mutable_compute_input(), held.count, held.input);
    set_duration(*batch.mutable_compute_infer(), held.count, held.infer);
    set_duration(*batch.mutable_compute_output(), held.count, held.output);
  }
}

/// Of the host; which of its devices holds how much, a model does not tell apart.
void add_memory(const Version& version, pb::ModelStatistics& model) {
  const ModelMetrics& metrics = version.metrics();
  const double bytes = metrics.weight_bytes->value() + metrics.arena_bytes->value() * static_cast<double>(version.instances());
  if (bytes <= 0 || metrics.device_bytes->value() > 0) return;
  pb::MemoryUsage& memory = *model.add_memory_usage();
  memory.set_type("CPU");
  memory.set_byte_size(static_cast<uint64_t>(bytes));
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
  set_duration(*infer.mutable_success(), count, total(*metrics.request_time));
  set_duration(*infer.mutable_fail(), metrics.failures(), total(metrics.failed_time));
  set_duration(*infer.mutable_queue(), count, total(*metrics.queue_time));
  const uint64_t computed = metrics.infer_histogram_us->snapshot().count;  // the others were known
  set_duration(*infer.mutable_compute_input(), computed, total(*metrics.input_time));
  set_duration(*infer.mutable_compute_infer(), computed, total(*metrics.infer_time));
  set_duration(*infer.mutable_compute_output(), computed, total(*metrics.output_time));
  for (auto* none : {infer.mutable_cache_hit(), infer.mutable_cache_miss()}) set_duration(*none, 0, {});
  add_batches(metrics, model);
  add_memory(version, model);
  if (!metrics.cache_hits) return;
  set_duration(*infer.mutable_cache_hit(), metrics.cache_hits->value(), total(*metrics.cache_hit_time));
  set_duration(*infer.mutable_cache_miss(), metrics.cache_misses->value(), total(*metrics.cache_miss_time));
}

}  // namespace

Result<inference::ModelMetadataResponse> model_metadata(const Catalogue& now, const inference::ModelMetadataRequest& request) {
  SERIN_TRY(const std::shared_ptr<Version> version, now.find(request.name(), request.version()));
  inference::ModelMetadataResponse answer;
  answer.set_name(request.name());
  for (std::string& ready : now.models.find(request.name())->second.ready_versions()) answer.add_versions(std::move(ready));
  answer.set_platform(std::string(version->platform()));
  add_tensors(version->signature().inputs, *answer.mutable_inputs());
  add_tensors(version->signature().outputs, *answer.mutable_outputs());
  for (const auto& [name, value] : version->parameters()) (*answer.mutable_properties())[name] = value;
  return answer;
}

Result<inference::ModelReadyResponse> model_ready(const Catalogue& now, const inference::ModelReadyRequest& request) {
  const Status ready = now.ready(request.name(), request.version());
  if (!ready && ready.error().code != Code::kUnavailable) return ready.error();
  inference::ModelReadyResponse answer;
  answer.set_ready(ready.has_value());
  return answer;
}

Result<inference::ModelConfigResponse> model_config(const Catalogue& now, const inference::ModelConfigRequest& request) {
  SERIN_TRY(const std::shared_ptr<Version> version, now.find(request.name(), request.version()));
  const VersionEntry& entry = now.models.find(request.name())->second.versions.at(*parse_version(version->version()));
  inference::ModelConfigResponse answer;
  *answer.mutable_config() = full_model_config(*version, version->host().pool.cores(), *entry.settings);
  return answer;
}

Result<inference::RepositoryIndexResponse> repository_index(const Catalogue& now, const inference::RepositoryIndexRequest& request) {
  inference::RepositoryIndexResponse answer;
  bool known = request.repository_name().empty();
  for (const auto& [name, model] : now.models) {
    if (!request.repository_name().empty() && request.repository_name() != model.repository) continue;
    known = true;
    if (model.versions.empty() && !request.ready()) answer.add_models()->set_name(name);
    for (const auto& [number, held] : model.versions) {
      if (request.ready() && held.state != VersionState::kReady) continue;
      auto& entry = *answer.add_models();
      entry.set_name(name);
      entry.set_version(std::to_string(number));
      entry.set_state(std::string(state_name(held)));
      entry.set_reason(held.reason);
    }
  }
  if (!known)
    return Error{Code::kNotFound, "no model lies in a repository that is named '" + request.repository_name().substr(0, 256) + "'"};
  return answer;
}

Result<inference::ModelStatisticsResponse> model_statistics(const Catalogue& now, const inference::ModelStatisticsRequest& request) {
  inference::ModelStatisticsResponse answer;
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

}  // namespace serin::serving
