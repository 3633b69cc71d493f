#include "runtime/serving/scheduling/sequence_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "runtime/protocol/tensor/tensor_names.h"
#include "runtime/serving/scheduling/warmup.h"

namespace serin::serving {
namespace {

constexpr int64_t kMostStateBytes = 256 << 20;  // of one sequence: made while models are loaded, before anybody asks for it

constexpr DType kControlTypes[] = {DType::kBool, DType::kInt32, DType::kFloat32};
constexpr DType kIdTypes[] = {DType::kUInt64, DType::kInt64, DType::kUInt32, DType::kInt32, DType::kString};

std::optional<size_t> find(const std::vector<protocol::TensorSpec>& specs, const std::string& name) {
  const auto found = std::ranges::find(specs, name, &protocol::TensorSpec::name);
  if (found == specs.end()) return std::nullopt;
  return static_cast<size_t>(found - specs.begin());
}

/// The largest number that an id of that type can be; 0 for a text.
uint64_t largest_id(DType dtype) {
  switch (dtype) {
    case DType::kInt32: return std::numeric_limits<int32_t>::max();
    case DType::kUInt32: return std::numeric_limits<uint32_t>::max();
    case DType::kInt64: return std::numeric_limits<int64_t>::max();
    default: return std::numeric_limits<uint64_t>::max();
  }
}

void write_flag(const TensorView& tensor, double value) {
  if (tensor.dtype == DType::kFloat32)
    *tensor.as<float>() = static_cast<float>(value);
  else if (tensor.dtype == DType::kInt32)
    *tensor.as<int32_t>() = static_cast<int32_t>(value);
  else
    *tensor.as<bool>() = value != 0;
}

/// What is added to a request: an element for each control, and the id as text.
struct Added {
  AlignedBuffer memory;
  std::string id;
  std::shared_ptr<const void> states, before;  // what the request held without it
};

}  // namespace

Result<size_t> SequenceTensors::claim_input(const std::string& name, const protocol::Signature& whole, Source source) {
  const auto at = find(whole.inputs, name);
  if (!at)
    return Error{Code::kInvalidArgument,
                 fmt::format("sequences: the model has no input '{}'{}", name, protocol::names_instead_of(name, whole.inputs))};
  if (sources_[*at].kind != Source::Kind::kClient)
    return Error{Code::kInvalidArgument, fmt::format("sequences: input '{}' is named twice", name)};
  sources_[*at] = source;
  return *at;
}

Status SequenceTensors::add_control(const SequenceControl& control, const protocol::Signature& whole, bool batchable) {
  SERIN_TRY(const size_t at, claim_input(control.input, whole, {Source::Kind::kControl, controls_.size()}));
  const protocol::TensorSpec& spec = whole.inputs[at];
  const bool is_id = control.kind == SequenceControl::Kind::kId;
  const std::span<const DType> allowed = is_id ? std::span<const DType>(kIdTypes) : kControlTypes;
  if (std::ranges::find(allowed, spec.dtype) == allowed.end() || (control.dtype != DType::kUndefined && control.dtype != spec.dtype))
    return Error{
        Code::kInvalidArgument,
        fmt::format("sequences: control '{}' is {} in the model, which {} cannot be", spec.name, protocol::oip_datatype(spec.dtype),
                    control.dtype == DType::kUndefined ? (is_id ? "an id" : "a flag") : protocol::oip_datatype(control.dtype))};
  TensorView tensor{spec.dtype, spec.shape, nullptr};
  for (size_t axis = 0; axis < tensor.shape.rank(); ++axis)
    if (tensor.shape[axis] < 0) tensor.shape[axis] = 1;
  if (!spec.ranked) tensor.shape = batchable ? Shape{1, 1} : Shape{1};
  if (tensor.elements() != 1)
    return Error{Code::kInvalidArgument,
                 fmt::format("sequences: control '{}' is {} in the model, more than one element", spec.name, spec.shape.str())};
  controls_.push_back({control.kind, tensor, control.values});
  return {};
}

Status SequenceTensors::add_state(const SequenceState& state, const protocol::Signature& whole, bool batchable,
                                  std::vector<const Filling*>& fillings) {
  SERIN_TRY(const size_t at, claim_input(state.input, whole, {Source::Kind::kState, initial_.views.size()}));
  const auto output = find(whole.outputs, state.output);
  if (!output)
    return Error{Code::kInvalidArgument, fmt::format("sequences: the model has no output '{}'{}", state.output,
                                                     protocol::names_instead_of(state.output, whole.outputs))};
  const protocol::TensorSpec &in = whole.inputs[at], &out = whole.outputs[*output];
  if (in.dtype != out.dtype || in.dtype == DType::kString)
    return Error{Code::kInvalidArgument, fmt::format("sequences: state '{}' is {} and '{}' {}: both must be numbers of one type", in.name,
                                                     protocol::oip_datatype(in.dtype), out.name, protocol::oip_datatype(out.dtype))};
  TensorView tensor{in.dtype, in.shape, nullptr};
  if (!Shape::fits(state.dims.size() + 1))
    return Error{Code::kInvalidArgument,
                 fmt::format("sequences: state '{}' has {} dims; at most {}", in.name, state.dims.size(), Shape::kMaxRank - 1)};
  if (!state.dims.empty()) {
    tensor.shape = Shape(with_rows(state.dims, in, batchable, 1));
  } else if (batchable) {
    tensor.shape[0] = 1;
  }
  const bool fits =
      !in.ranked || (tensor.shape.rank() == in.shape.rank() &&
                     std::ranges::equal(tensor.shape, in.shape, [](int64_t own, int64_t wanted) { return wanted < 0 || own == wanted; }));
  if (!fits || std::ranges::any_of(tensor.shape, [](int64_t dim) { return dim < 0; }))
    return Error{
        Code::kInvalidArgument,
        fmt::format("sequences: state '{}' is {} in the model: 'dims' must give the sizes of the first one", in.name, in.shape.str())};
  const auto elements = tensor.shape.checked_elements();
  const auto most = (kMostStateBytes - static_cast<int64_t>(state_bytes_)) / static_cast<int64_t>(dtype_size(in.dtype));
  if (!elements || *elements > most)
    return Error{Code::kInvalidArgument, fmt::format("sequences: state '{}' is {} of {}: the states of a sequence have at most {} MiB",
                                                     in.name, tensor.shape.str(), protocol::oip_datatype(in.dtype), kMostStateBytes >> 20)};
  state_bytes_ += tensor.bytes();
  initial_.views.push_back(tensor);
  fillings.push_back(&state.initial);
  state_outputs_.push_back(*output);
  return {};
}

Result<SequenceTensors> SequenceTensors::make(const SequenceSettings& settings, const protocol::Signature& whole, bool batchable) {
  SequenceTensors made;
  made.sources_.assign(whole.inputs.size(), {Source::Kind::kClient, 0});
  std::vector<const Filling*> fillings;
  for (const SequenceControl& control : settings.controls) SERIN_CHECK(made.add_control(control, whole, batchable));
  for (const SequenceState& state : settings.states) SERIN_CHECK(made.add_state(state, whole, batchable, fillings));

  size_t bytes = 0;
  for (const TensorView& view : made.initial_.views) bytes += AlignedBuffer::rounded_up(view.bytes());
  const auto memory = std::make_shared<AlignedBuffer>(bytes);
  size_t offset = 0;
  for (size_t i = 0; i < fillings.size(); ++i) {
    TensorView& view = made.initial_.views[i];
    view.data = memory->data() + offset;
    offset += AlignedBuffer::rounded_up(view.bytes());
    SERIN_CHECK(fill(*fillings[i], view, 1, settings.states[i].input));
  }
  made.initial_.memory = memory;

  made.visible_.model = whole.model;
  for (size_t i = 0; i < whole.inputs.size(); ++i) {
    if (made.sources_[i].kind != Source::Kind::kClient) continue;
    made.sources_[i].index = made.visible_.inputs.size();
    made.visible_.inputs.push_back(whole.inputs[i]);
  }
  for (size_t i = 0; i < whole.outputs.size(); ++i) {
    if (std::ranges::find(made.state_outputs_, i) != made.state_outputs_.end()) continue;
    made.own_outputs_.push_back(i);
    made.visible_.outputs.push_back(whole.outputs[i]);
  }
  return made;
}

Status SequenceTensors::check(const protocol::SequencePlace& place) const {
  for (const Control& control : controls_) {
    if (control.kind != SequenceControl::Kind::kId || control.tensor.dtype == DType::kString) continue;
    if (!place.name.empty())
      return Error{Code::kInvalidArgument,
                   fmt::format("{} numbers its sequences: 'sequence_id' must be a number, not '{}'", visible_.model, place.name)};
    if (place.number > largest_id(control.tensor.dtype))
      return Error{Code::kInvalidArgument, fmt::format("{}: 'sequence_id' {} is not {}", visible_.model, place.number,
                                                       protocol::with_article(control.tensor.dtype))};
  }
  return {};
}

void SequenceTensors::complete(Job& job, const States& states) const {
  constexpr size_t kEach = AlignedBuffer::kAlignment;
  const auto added = std::make_shared<Added>(Added{AlignedBuffer(controls_.size() * kEach), job.sequence.name, states.memory, job.holds});
  if (added->id.empty()) added->id = std::to_string(job.sequence.number);
  std::vector<TensorView> inputs;
  inputs.reserve(sources_.size());
  for (const Source& source : sources_) {
    if (source.kind != Source::Kind::kControl) {
      inputs.push_back(source.kind == Source::Kind::kState ? states.views[source.index] : job.inputs[source.index]);
      continue;
    }
    const Control& control = controls_[source.index];
    TensorView tensor = control.tensor;
    tensor.data = added->memory.data() + source.index * kEach;
    switch (control.kind) {
      case SequenceControl::Kind::kStart: write_flag(tensor, control.values[job.sequence.start]); break;
      case SequenceControl::Kind::kEnd: write_flag(tensor, control.values[job.sequence.end]); break;
      case SequenceControl::Kind::kReady: write_flag(tensor, control.values[true]); break;
      case SequenceControl::Kind::kId:
        if (tensor.dtype == DType::kString)
          tensor.data = &added->id;
        else
          std::memcpy(tensor.data, &job.sequence.number, dtype_size(tensor.dtype));  // little-endian: the low bytes come first
        break;
    }
    inputs.push_back(tensor);
  }
  job.inputs = std::move(inputs);
  job.holds = added;
}

/// Copied: the outputs' memory is that of a whole batch, which a state would keep for as long as its sequence rests.
SequenceTensors::States SequenceTensors::take_states(Outputs& outputs) const {
  States states;
  size_t bytes = 0;
  for (const size_t i : state_outputs_) bytes += AlignedBuffer::rounded_up(outputs.tensors[i].bytes());
  const auto memory = std::make_shared<AlignedBuffer>(bytes);
  size_t offset = 0;
  for (const size_t i : state_outputs_) {
    TensorView state = outputs.tensors[i];
    state.data = memory->data() + offset;
    if (state.bytes() > 0) std::memcpy(state.data, outputs.tensors[i].data, state.bytes());
    offset += AlignedBuffer::rounded_up(state.bytes());
    states.views.push_back(state);
  }
  states.memory = memory;
  std::vector<TensorView> own;
  for (const size_t i : own_outputs_) own.push_back(outputs.tensors[i]);
  outputs = Outputs::of(std::move(own), outputs.block);
  return states;
}

}  // namespace serin::serving
