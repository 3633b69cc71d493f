// model_config_tensors.cc: what a configuration says of a model's tensors, beside what the model says.
//
// With max_batch_size above 0 Triton's dims leave out the axis of the batch, which clients do send; with 0 they are all there is.

#include "runtime/serving/repository/model_config_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <type_traits>

#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/tensor_names.h"
#include "runtime/serving/settings/model_folder.h"
#include "runtime/serving/settings/tensor_reshape.h"

namespace serin::serving {
namespace {

namespace pb = inference;
using protocol::TensorSpec;

std::string_view datatype_of(pb::DataType type) {
  const std::string& name = pb::DataType_Name(type);
  const std::string_view word = std::string_view(name).substr(name.find('_') + 1);
  return word == "STRING" ? "BYTES" : word;
}

pb::DataType type_of(DType dtype) {
  const std::string_view word = protocol::oip_datatype(dtype);
  pb::DataType type = pb::TYPE_INVALID;
  (void)pb::DataType_Parse("TYPE_" + std::string(word == "BYTES" ? "STRING" : word), &type);
  return type;
}

Error not_there(const std::string& name, std::string_view kind, const std::vector<TensorSpec>& specs) {
  return invalid(fmt::format("config: {} '{}' is not in the model{}", kind, name, protocol::names_instead_of(name, specs)));
}

template <class Declared>
Status apply_one(const Declared& declared, std::string_view kind, bool batched, TensorSpec& spec, std::optional<TensorReshape>& reshape) {
  const std::string_view datatype = protocol::oip_datatype(spec.dtype);
  if (declared.data_type() != pb::TYPE_INVALID && datatype_of(declared.data_type()) != datatype)
    return invalid(fmt::format("config: {} '{}' is {}, in the model it is {}", kind, declared.name(),
                               pb::DataType_Name(declared.data_type()), pb::DataType_Name(type_of(spec.dtype))));
  if (declared.has_reshape()) {
    if (declared.dims().empty())
      return invalid(fmt::format("config: {} '{}' has a reshape, but no dims that clients see", kind, declared.name()));
    const auto& inside = declared.reshape().shape();
    SERIN_TRY(reshape,
              TensorReshape::of(declared.name(), {declared.dims().begin(), declared.dims().end()}, {inside.begin(), inside.end()}));
  }
  if (declared.dims().empty() || (!spec.ranked && !reshape)) return {};
  const auto& declared_dims = reshape ? declared.reshape().shape() : declared.dims();
  std::vector<int64_t> dims(declared_dims.begin(), declared_dims.end());
  if (batched) dims.insert(dims.begin(), -1);
  const auto contradiction = [&] {
    return invalid(fmt::format("config: {} '{}' has {} [{}]{}, in the model it is {}", kind, declared.name(),
                               reshape ? "a reshape to" : "dims", fmt::join(declared_dims, ","),
                               batched ? " behind the batch (max_batch_size is above 0)" : "", spec.shape.str()));
  };
  if (spec.ranked && dims.size() != spec.shape.rank()) return contradiction();
  // Of outputs shapes are inferred here that no file says, and no other engine would: a size that is open for clients is no contradiction.
  constexpr bool kMayOpen = std::is_same_v<Declared, pb::ModelOutput>;
  Shape narrowed;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t own = spec.ranked ? spec.shape[axis] : -1;
    const bool batch_axis = batched && axis == 0;  // a model exported with a batch of 1 is served as that
    const bool opened = kMayOpen && !batch_axis && dims[axis] == -1;
    if (dims[axis] < -1 || dims[axis] == 0 || (own >= 0 && !batch_axis && !opened && dims[axis] != own)) return contradiction();
    narrowed.push_back(own >= 0 && !opened ? own : dims[axis]);
  }
  spec.shape = reshape ? reshape->outward(narrowed, batched) : narrowed;
  spec.ranked = true;
  return {};
}

/// Inputs or outputs. `reshapes`: of those that clients have in another shape.
template <class Declared>
Status apply_all(const google::protobuf::RepeatedPtrField<Declared>& declared, std::string_view kind, bool batched,
                 std::vector<TensorSpec>& specs, std::vector<std::optional<TensorReshape>>& reshapes) {
  reshapes.resize(specs.size());
  for (const Declared& each : declared) {
    const auto spec = std::ranges::find(specs, each.name(), &TensorSpec::name);
    if (spec == specs.end()) return not_there(each.name(), kind, specs);
    SERIN_CHECK(apply_one(each, kind, batched, *spec, reshapes[static_cast<size_t>(spec - specs.begin())]));
  }
  return {};
}

/// Those that the configuration lists, and those that a state is kept from.
void choose_outputs(const pb::ModelConfig& config, const SequenceSettings* sequences, Served& served) {
  std::vector<TensorSpec>& outputs = served.signature.outputs;
  std::vector<size_t> chosen;
  const auto choose = [&](const std::string& name) {
    const auto at = static_cast<size_t>(std::ranges::find(outputs, name, &TensorSpec::name) - outputs.begin());
    if (at < outputs.size() && std::ranges::find(chosen, at) == chosen.end()) chosen.push_back(at);
  };
  for (const auto& output : config.output()) choose(output.name());
  if (chosen.empty()) return;
  if (sequences)
    for (const auto& state : sequences->states) choose(state.output);
  std::vector<TensorSpec> specs;
  specs.reserve(chosen.size());
  for (const size_t output : chosen) specs.push_back(outputs[output]);
  if (chosen.size() == outputs.size() && std::ranges::is_sorted(chosen)) return;
  outputs = std::move(specs);
  served.reshapes.chosen = std::move(chosen);
}

void fill_tensors(const ServedModel& model, bool batched, pb::ModelConfig& config) {
  const auto fill = [&](const TensorSpec& spec, auto& tensor) {
    tensor.set_data_type(type_of(spec.dtype));
    if (!tensor.dims().empty()) return;
    if (!spec.ranked) tensor.add_dims(-1);
    for (size_t axis = batched ? 1 : 0; axis < spec.shape.rank(); ++axis) tensor.add_dims(spec.shape[axis]);
  };
  const auto named = [](auto& tensors, const std::string& name) {
    const auto found = std::ranges::find_if(tensors, [&](const auto& tensor) { return tensor.name() == name; });
    if (found != tensors.end()) return &*found;
    auto* added = tensors.Add();
    added->set_name(name);
    return added;
  };
  for (const TensorSpec& spec : model.signature().inputs) {
    pb::ModelInput& input = *named(*config.mutable_input(), spec.name);
    fill(spec, input);
    if (spec.standard) input.set_optional(true);
  }
  for (const TensorSpec& spec : model.signature().outputs) fill(spec, *named(*config.mutable_output(), spec.name));
}

void fill_platform(const ServedModel& model, pb::ModelConfig& config) {
  if (config.platform().empty()) config.set_platform(std::string(model.platform()));
  if (config.backend().empty() && model.platform() != kEnsemblePlatform)
    config.set_backend(model.platform() == kTritonPlatform ? std::string(kTritonBackend) : std::string("serin"));
}

void fill_instances(const ServedModel& model, int cores, const ModelSettings& settings, pb::ModelConfig& config) {
  const auto device = std::ranges::find(model.parameters(), "device", &std::pair<std::string, std::string>::first);
  const bool cuda = device != model.parameters().end() && device->second == "cuda";
  if (config.instance_group().empty()) config.add_instance_group();
  for (int i = 0; i < config.instance_group_size(); ++i) {
    pb::ModelInstanceGroup& group = *config.mutable_instance_group(i);
    if (group.name().empty()) group.set_name(config.instance_group_size() == 1 ? config.name() : fmt::format("{}_{}", config.name(), i));
    if (group.kind() == pb::ModelInstanceGroup::KIND_AUTO)
      group.set_kind(cuda ? pb::ModelInstanceGroup::KIND_GPU : pb::ModelInstanceGroup::KIND_CPU);
    if (group.count() < 1) group.set_count(settings.instances.value_or(cuda ? 2 : std::max(1, cores / settings.threads)));
  }
}

void fill_steps(const EnsembleSettings& ensemble, pb::ModelEnsembling& steps) {
  steps.clear_step();
  for (const EnsembleStep& own : ensemble.steps) {
    pb::ModelEnsembling::Step& step = *steps.add_step();
    step.set_model_name(own.model);
    step.set_model_version(own.version.empty() ? -1 : static_cast<int64_t>(parse_version(own.version).value_or(0)));
    step.mutable_input_map()->insert(own.inputs.begin(), own.inputs.end());
    step.mutable_output_map()->insert(own.outputs.begin(), own.outputs.end());
  }
}

}  // namespace

Status apply_declared_tensors(const ModelSettings& settings, Served& served) {
  protocol::Signature& signature = served.signature;
  if (settings.config) {
    TensorReshapes& reshapes = served.reshapes;
    reshapes.batched = settings.config->max_batch_size() > 0;
    SERIN_CHECK(apply_all(settings.config->input(), "input", reshapes.batched, signature.inputs, reshapes.inputs));
    SERIN_CHECK(apply_all(settings.config->output(), "output", reshapes.batched, signature.outputs, reshapes.outputs));
    reshapes.counts_rows = reshapes.any() && served.batchable && !reshapes.batched;
    choose_outputs(*settings.config, settings.sequences ? &*settings.sequences : nullptr, served);
  }
  for (const auto& [name, labels] : settings.class_labels) {
    const auto output = std::ranges::find(signature.outputs, name, &TensorSpec::name);
    if (output == signature.outputs.end())
      return invalid(fmt::format("labels: the model has no output '{}'{}", name, protocol::names_instead_of(name, signature.outputs)));
    output->labels = labels;
  }
  return {};
}

inference::ModelConfig full_model_config(const ServedModel& model, int cores, const ModelSettings& settings) {
  pb::ModelConfig config = settings.config ? *settings.config : pb::ModelConfig();
  config.set_name(model.model());
  fill_platform(model, config);
  if (!settings.config) config.set_max_batch_size(model.batchable() ? static_cast<int32_t>(model.max_batch()) : 0);
  if (!settings.versions.specific.empty()) {
    config.mutable_version_policy()->mutable_specific()->clear_versions();
    for (const uint64_t number : settings.versions.specific)
      config.mutable_version_policy()->mutable_specific()->add_versions(static_cast<int64_t>(number));
  } else if (settings.versions.latest > 0) {
    config.mutable_version_policy()->mutable_latest()->set_num_versions(static_cast<uint32_t>(settings.versions.latest));
  } else {
    config.mutable_version_policy()->mutable_all();
  }
  fill_tensors(model, config.max_batch_size() > 0, config);
  if (settings.ensemble) {
    fill_steps(*settings.ensemble, *config.mutable_ensemble_scheduling());
    return config;
  }
  fill_instances(model, cores, settings, config);
  config.set_default_model_filename(settings.file);
  pb::ModelOptimizationPolicy& optimization = *config.mutable_optimization();
  if (!optimization.has_input_pinned_memory()) optimization.mutable_input_pinned_memory()->set_enable(true);
  if (!optimization.has_output_pinned_memory()) optimization.mutable_output_pinned_memory()->set_enable(true);
  if (config.scheduling_choice_case() == pb::ModelConfig::SCHEDULING_CHOICE_NOT_SET && config.max_batch_size() > 1)
    config.mutable_dynamic_batching()->set_max_queue_delay_microseconds(
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(settings.max_queue_delay).count()));
  if (config.has_dynamic_batching() && config.dynamic_batching().preferred_batch_size().empty() && config.max_batch_size() > 0)
    config.mutable_dynamic_batching()->add_preferred_batch_size(config.max_batch_size());
  return config;
}

}  // namespace serin::serving
