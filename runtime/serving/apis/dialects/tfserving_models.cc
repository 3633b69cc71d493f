#include "runtime/serving/apis/dialects/tfserving_models.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <ranges>

#include "runtime/base/number.h"
#include "runtime/protocol/tensorflow/tensor_proto.h"
#include "runtime/protocol/tensorflow/tfserving_examples.h"

namespace serin::serving {
namespace {

namespace pb = tensorflow::serving;

/// With the number in place of the label.
Result<Servable> resolve(const Catalogue& now, Servable servable) {
  if (servable.label.empty()) return servable;
  SERIN_TRY(servable.version, now.version_of(servable.model, servable.label));
  return servable;
}

tensorflow::TensorInfo tensor_info(const protocol::TensorSpec& spec) {
  tensorflow::TensorInfo info;
  info.set_name(spec.name + ":0");  // the tensor in the graph, behind the name of the signature
  info.set_dtype(static_cast<tensorflow::DataType>(protocol::tf_dtype(spec.dtype)));
  auto& shape = *info.mutable_tensor_shape();
  shape.set_unknown_rank(!spec.ranked);
  for (const int64_t dim : spec.shape) shape.add_dim()->set_size(dim);
  return info;
}

void add_status(uint64_t number, const VersionEntry& entry, pb::GetModelStatusResponse& answer) {
  auto& status = *answer.add_model_version_status();
  status.set_version(static_cast<int64_t>(number));
  auto& health = *status.mutable_status();
  health.set_error_code(tensorflow::error::OK);
  switch (entry.state) {
    case VersionState::kLoading: return status.set_state(pb::ModelVersionStatus::LOADING);
    case VersionState::kReady: return status.set_state(pb::ModelVersionStatus::AVAILABLE);
    case VersionState::kUnloaded:
      return status.set_state(entry.leaving.expired() ? pb::ModelVersionStatus::END : pb::ModelVersionStatus::UNLOADING);
    case VersionState::kFailed:
      status.set_state(pb::ModelVersionStatus::END);
      health.set_error_code(tensorflow::error::FAILED_PRECONDITION);
      health.set_error_message(entry.reason);
  }
}

}  // namespace

Servable servable_of(const pb::ModelSpec& spec) {
  return {spec.name(), spec.has_version() ? std::to_string(spec.version().value()) : "", spec.version_label()};
}

Result<std::shared_ptr<Version>> find_servable(const Catalogue& now, const Servable& servable) {
  SERIN_TRY(const Servable meant, resolve(now, servable));
  auto version = now.find(meant.model, meant.version);
  if (version || version.error().code == Code::kUnavailable) return version;
  const std::string name =
      meant.version.empty() ? fmt::format("Latest({})", meant.model) : fmt::format("Specific({}, {})", meant.model, meant.version);
  return Error{Code::kNotFound, "Servable not found for request: " + name};
}

Result<std::shared_ptr<Version>> find_signature(const std::shared_ptr<Version>& version, std::string_view name, protocol::TfMethod method) {
  std::shared_ptr<Version> found = name.empty() ? version : version->with_signature(name);
  if (!found && protocol::is_standard_tf_name(name, method)) found = version;
  if (!found) {
    const std::string names = version->list_signatures();
    return protocol::no_tf_signature(name, names.empty() ? protocol::kTfSignature : std::string_view(names));
  }
  SERIN_CHECK(protocol::check_tf_method(found->signature(), method));
  return found;
}

Result<pb::GetModelStatusResponse> servable_status(const Catalogue& now, const Servable& servable) {
  SERIN_TRY(const Servable meant, resolve(now, servable));
  const auto model = now.models.find(meant.model);
  pb::GetModelStatusResponse answer;
  if (meant.version.empty()) {
    if (model == now.models.end()) return Error{Code::kNotFound, "Could not find any versions of model " + meant.model};
    for (const auto& [number, entry] : model->second.versions | std::views::reverse) add_status(number, entry, answer);
    return answer;
  }
  const auto number = parse_number<uint64_t>(meant.version);
  const auto* versions = model == now.models.end() ? nullptr : &model->second.versions;
  if (!versions || !number || !versions->contains(*number) || std::to_string(*number) != meant.version)  // "01" is no version
    return Error{Code::kNotFound, fmt::format("Could not find version {} of model {}", meant.version, meant.model)};
  add_status(*number, versions->at(*number), answer);
  return answer;
}

Result<pb::GetModelMetadataResponse> servable_metadata(const Catalogue& now, const Servable& servable) {
  SERIN_TRY(const std::shared_ptr<Version> version, find_servable(now, servable));
  pb::SignatureDefMap signatures;
  for (const auto& [name, each] : version->signatures()) {
    const protocol::Signature& own = each->signature();
    auto& signature = (*signatures.mutable_signature_def())[name.empty() ? std::string(protocol::kTfSignature) : name];
    signature.set_method_name(own.method.empty() ? "tensorflow/serving/predict" : own.method);
    for (const auto& spec : own.inputs) (*signature.mutable_inputs())[spec.name] = tensor_info(spec);
    for (const auto& spec : own.outputs) (*signature.mutable_outputs())[spec.name] = tensor_info(spec);
  }
  pb::GetModelMetadataResponse answer;
  answer.mutable_model_spec()->set_name(version->model());
  answer.mutable_model_spec()->mutable_version()->set_value(parse_number<int64_t>(version->version()).value_or(0));
  (*answer.mutable_metadata())["signature_def"].PackFrom(signatures);
  return answer;
}

std::string print_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) return "{}";
  return text;
}

}  // namespace serin::serving
