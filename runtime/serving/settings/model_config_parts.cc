// model_config_parts.cc: what config.pbtxt says of warm-up requests, sequences, ensembles and the response cache, in the words of settings_parts.h.

#include "runtime/serving/settings/model_config_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/protocol/tensor/datatype.h"
#include "runtime/serving/settings/tensor_reshape.h"

namespace serin::serving {
namespace {

namespace pb = inference;

DType dtype_of(pb::DataType type) {
  const std::string& name = pb::DataType_Name(type);
  const std::string word = name.substr(name.find('_') + 1);
  return protocol::parse_oip_datatype(word == "STRING" ? "BYTES" : word).value_or(DType::kUndefined);
}

Result<Filling> file_in(const std::string& folder, std::string_view subfolder, const std::string& name) {
  SERIN_TRY(std::string path, file_of_model(folder, subfolder, name));
  return Filling{Filling::Kind::kFile, std::move(path)};
}

/// The model's, of those that clients have.
Result<std::vector<int64_t>> dims_inside(const pb::ModelConfig& config, const std::string& name, const std::vector<int64_t>& dims) {
  const auto declared = std::ranges::find(config.input(), name, &pb::ModelInput::name);
  if (declared == config.input().end() || !declared->has_reshape() || !Shape::fits(dims.size())) return dims;
  const auto &outside = declared->dims(), &inside = declared->reshape().shape();
  SERIN_TRY(const TensorReshape reshape, TensorReshape::of(name, {outside.begin(), outside.end()}, {inside.begin(), inside.end()}));
  const Shape shape = reshape.inward(Shape(dims), /*batched=*/false);
  return std::vector<int64_t>(shape.begin(), shape.end());
}

Result<WarmupRequest> warmup_of(const pb::ModelWarmup& warmup, const pb::ModelConfig& config, const std::string& folder) {
  if (warmup.batch_size() > kMostBatch || warmup.count() > 10'000)
    return invalid(fmt::format("model_warmup '{}': batch_size is at most {}, count 10000", warmup.name(), kMostBatch));
  WarmupRequest request{.name = warmup.name()};
  request.batch_size = std::max(1U, warmup.batch_size());
  request.count = static_cast<int>(std::max(1U, warmup.count()));
  for (const auto& [name, input] : warmup.inputs()) {
    WarmupInput& own = request.inputs[name];
    own.dtype = dtype_of(input.data_type());
    SERIN_TRY(own.dims, dims_inside(config, name, {input.dims().begin(), input.dims().end()}));
    if (input.random_data()) own.data.kind = Filling::Kind::kRandom;
    if (input.has_input_data_file()) {
      SERIN_TRY(own.data, file_in(folder, "warmup", input.input_data_file()));
    }
  }
  return request;
}

SequenceControl control_of(const std::string& input, const pb::ModelSequenceBatching::Control& control) {
  using Kind = SequenceControl::Kind;
  constexpr Kind kKinds[] = {Kind::kStart, Kind::kReady, Kind::kEnd, Kind::kId};
  SequenceControl own{.input = input, .kind = kKinds[std::clamp<int>(control.kind(), 0, 3)]};
  const auto take = [&](const auto& values, DType dtype) {
    if (values.size() != 2) return;
    own.values = {static_cast<double>(values[0]), static_cast<double>(values[1])};
    own.dtype = dtype;
  };
  take(control.int32_false_true(), DType::kInt32);
  take(control.fp32_false_true(), DType::kFloat32);
  take(control.bool_false_true(), DType::kBool);
  if (own.kind == Kind::kId) own.dtype = dtype_of(control.data_type());
  return own;
}

Result<SequenceState> state_of(const pb::ModelSequenceBatching::State& state, const std::string& folder) {
  SequenceState own{.input = state.input_name(), .output = state.output_name(), .dims = {state.dims().begin(), state.dims().end()}};
  if (state.initial_state_size() > 1) return invalid(fmt::format("sequence_batching.state '{}': one initial_state", own.input));
  if (state.initial_state_size() == 1 && state.initial_state(0).has_data_file()) {
    SERIN_TRY(own.initial, file_in(folder, "initial_state", state.initial_state(0).data_file()));
  }
  return own;
}

Result<SequenceSettings> sequences_of(const pb::ModelSequenceBatching& batching, const std::string& folder) {
  constexpr uint64_t kLongestIdleUs = 86'400'000'000;
  SequenceSettings own;
  if (batching.has_oldest()) own.max_candidates = std::max(1, batching.oldest().max_candidate_sequences());
  if (batching.max_sequence_idle_microseconds() > kLongestIdleUs)
    return invalid("sequence_batching.max_sequence_idle_microseconds: at most a day");
  if (batching.max_sequence_idle_microseconds() > 0) own.idle = std::chrono::microseconds(batching.max_sequence_idle_microseconds());
  for (const auto& input : batching.control_input())
    for (const auto& control : input.control()) own.controls.push_back(control_of(input.name(), control));
  for (const auto& state : batching.state()) {
    SERIN_TRY(SequenceState each, state_of(state, folder));
    own.states.push_back(std::move(each));
  }
  return own;
}

/// `batched`: dims leave out the axis of the batch.
template <class Declared>
Result<protocol::TensorSpec> tensor_of(const Declared& declared, bool batched) {
  protocol::TensorSpec spec{.name = declared.name(), .dtype = dtype_of(declared.data_type()), .ranked = !declared.dims().empty()};
  if (declared.has_reshape())
    return Error{Code::kUnsupported, fmt::format("'{}': reshape belongs to the models of the steps", declared.name())};
  if (declared.dims_size() >= static_cast<int>(Shape::kMaxRank))
    return invalid(fmt::format("'{}' has {} dims; at most {}", declared.name(), declared.dims_size(), Shape::kMaxRank - 1));
  if (batched && spec.ranked) spec.shape.push_back(-1);
  for (const int64_t dim : declared.dims()) {
    if (dim < -1 || dim == 0) return invalid(fmt::format("'{}': {} is no size; dims are above 0, or -1 for any", declared.name(), dim));
    spec.shape.push_back(dim);
  }
  return spec;
}

Result<EnsembleStep> step_of(const pb::ModelEnsembling::Step& step) {
  if (step.model_name().empty()) return invalid("ensemble_scheduling: a step without a model_name");
  if (step.model_version() < -1)
    return invalid(fmt::format("ensemble_scheduling: step '{}': model_version is {}; it is -1 for the latest, or a version",
                               step.model_name(), step.model_version()));
  return EnsembleStep{.model = step.model_name(),
                      .version = step.model_version() > 0 ? std::to_string(step.model_version()) : "",
                      .inputs = {step.input_map().begin(), step.input_map().end()},
                      .outputs = {step.output_map().begin(), step.output_map().end()}};
}

Result<EnsembleSettings> ensemble_of(const pb::ModelConfig& config, const ModelSettings& settings) {
  const bool batched = config.max_batch_size() > 0;
  EnsembleSettings own;
  for (const auto& step : config.ensemble_scheduling().step()) {
    SERIN_TRY(EnsembleStep each, step_of(step));
    own.steps.push_back(std::move(each));
  }
  if (own.steps.empty()) return invalid("ensemble_scheduling: there is no step");
  for (const auto& input : config.input()) {
    SERIN_TRY(protocol::TensorSpec each, tensor_of(input, batched));
    own.inputs.push_back(std::move(each));
  }
  for (const auto& output : config.output()) {
    SERIN_TRY(protocol::TensorSpec each, tensor_of(output, batched));
    if (const auto labels = settings.class_labels.find(each.name); labels != settings.class_labels.end()) each.labels = labels->second;
    own.outputs.push_back(std::move(each));
  }
  return own;
}

}  // namespace

Status apply_model_config_parts(const inference::ModelConfig& config, const std::string& folder, ModelSettings& settings) {
  for (const pb::ModelWarmup& warmup : config.model_warmup()) {
    SERIN_TRY(WarmupRequest request, warmup_of(warmup, config, folder));
    settings.warmup_requests.push_back(std::move(request));
  }
  if (config.response_cache().enable()) settings.response_cache = true;
  if (config.has_sequence_batching()) {
    SERIN_TRY(settings.sequences, sequences_of(config.sequence_batching(), folder));
  }
  if (config.has_ensemble_scheduling() || config.platform() == kEnsemblePlatform) {
    SERIN_TRY(settings.ensemble, ensemble_of(config, settings));
  }
  return {};
}

}  // namespace serin::serving
