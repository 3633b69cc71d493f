// plan.cc: lower, choose kernels, lay out memory.
//
// Kernels come before memory because their scratch regions are buffers like any other, alive during one step. So is the arena of an If's
// bodies: only one of them runs, so they share it.

#include "runtime/engine/plan.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"
#include "runtime/engine/layout/channel_blocks.h"
#include "runtime/engine/layout/pointwise_chains.h"
#include "runtime/engine/plan/bind_sizes.h"
#include "runtime/engine/program/verify_program.h"

namespace serin::engine {

namespace {

constexpr size_t kWorthSharing = size_t{4} << 20;  // bytes of constants: about a millisecond of packing

TensorInfo info_of(const Tensor& tensor, std::string name) {
  return {std::move(name), tensor.dtype, tensor.shape, graph::dims_of(tensor.shape)};
}

bool computes_nothing(const Program& program, const Step& step) {
  return std::all_of(step.outputs.begin(), step.outputs.end(),
                     [&](TensorId id) { return program.tensor(id).storage == Storage::kFixed && program.tensor(id).bytes() == 0; });
}

size_t constant_bytes(const Program& program) {
  size_t bytes = 0;
  for (const Tensor& tensor : program.tensors) bytes += tensor.constant ? tensor.constant->bytes() : 0;
  return bytes;
}

/// The same constant without its data.
graph::ConstantPtr without_data(const graph::Constant& constant) {
  auto empty = std::make_shared<graph::Constant>(constant);
  empty->resident = nullptr;
  empty->recipe = nullptr;
  return empty;
}

/// What a kernel that packs it asks for; it is let go with the step's description.
kernels::ConstantData to_fetch(graph::ConstantPtr constant, size_t offset) {
  return kernels::ConstantData([constant = std::move(constant), offset] {
    auto data = constant->data();
    return kernels::ConstantData::Held(data, data.get() + offset);
  });
}

}  // namespace

kernels::TensorDesc describe(const Program& program, TensorId id) {
  if (id == kNoTensor) return {};
  const Tensor& tensor = program.tensor(id);
  const auto [root, offset] = program.root(id);
  kernels::TensorDesc described;
  described.dtype = tensor.dtype;
  described.shape = tensor.shape;
  described.bounded = tensor.storage != Storage::kFixed;
  if (const graph::ConstantPtr& constant = program.tensor(root).constant; constant && constant->bytes() != 0) {
    described.constant = to_fetch(constant, offset);
    if (offset == 0 && tensor.bytes() == constant->bytes()) described.constant_id = constant->id;
  }
  return described;
}

Result<std::shared_ptr<const Plan>> Plan::make(const graph::Graph& graph, const graph::Bindings& bindings, const Context& context) try {
  SERIN_TRY(const graph::Graph bound, bind_sizes(graph, bindings, context.folder));
  SERIN_TRY(Program program, lower(bound, context.folder));
  SERIN_TRY(std::unique_ptr<Plan> plan, make_from(std::move(program), context));
  if (plan->arena_bytes > context.max_arena_bytes) {
    return Error{Code::kTooLarge, "these sizes need an arena of " + std::to_string(plan->arena_bytes) + " bytes, more than the limit of " +
                                      std::to_string(context.max_arena_bytes)};
  }
  for (size_t i = 0; i < plan->outputs.size() && i < graph.output_names().size(); ++i) plan->outputs[i].name = graph.output_names()[i];
  return std::shared_ptr<const Plan>(std::move(plan));
} catch (const graph::LostConstant& lost) {
  return lost.error();
}

Result<std::unique_ptr<Plan>> Plan::make_from(Program program, const Context& context) {
  auto plan = std::make_unique<Plan>();
  plan->program = std::move(program);
  std::erase_if(plan->program.steps, [&](const Step& step) { return computes_nothing(plan->program, step); });
  if (assign_channel_blocks(plan->program, context.channel_block)) SERIN_CHECK(verify(plan->program));
  if (context.device) SERIN_CHECK(plan->suit_device(context));
  if (context.pointwise_chains && fuse_pointwise_chains(plan->program, context.device != nullptr)) SERIN_CHECK(verify(plan->program));
  SERIN_CHECK(plan->prepare(context));
  SERIN_CHECK(plan->number_symbols());
  if (context.device) plan->ask_for_constants(context);
  plan->keep_what_is_read_plain(context);
  plan->place(assign_buffers(plan->program));
  for (const TensorId id : plan->program.inputs) plan->inputs.push_back(info_of(plan->program.tensor(id), plan->program.tensor(id).name));
  for (const TensorId id : plan->program.outputs) plan->outputs.push_back(info_of(plan->program.tensor(id), plan->program.tensor(id).name));
  return plan;
}

Status Plan::prepare(const Context& context) {
  steps.resize(program.steps.size());
  std::vector<std::string> refused;
  Code code = Code::kUnsupported;
  std::vector<Status> statuses = prepare_steps(context);
  if (context.device) SERIN_CHECK(place_on_device(context, statuses));
  reads_constant.assign(program.tensors.size(), false);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    note_constants_read(i);
    const Status& status = statuses[i];
    if (status) continue;
    if (status.error().code == Code::kUnavailable) return status;  // its weight cannot be read again: not the node's fault
    refused.push_back("'" + program.steps[i].node + "' (" + std::string(graph::op_name(program.steps[i].op)) +
                      "): " + status.error().message);
    code = status.error().code;
  }
  if (refused.empty()) return {};
  std::string message = std::to_string(refused.size()) + (refused.size() == 1 ? " node" : " nodes") + " cannot be run: ";
  for (size_t i = 0; i < refused.size(); ++i) message.append(i ? "; " : "").append(refused[i]);
  return Error{code, std::move(message)};
}

/// Packing the weights is most of it. Steps know nothing of each other, so whatever the order, the same comes out.
std::vector<Status> Plan::prepare_steps(const Context& context) {
  std::vector<Status> statuses(program.steps.size());
  const auto prepare = [&](int64_t i, int) {
    auto& status = statuses[static_cast<size_t>(i)];
    try {
      status = prepare_step(static_cast<size_t>(i), context, Where::kAny);
    } catch (const graph::LostConstant& lost) {
      status = lost.error();
    } catch (const std::bad_alloc&) {
      status = Error{Code::kTooLarge, "there is not enough memory for its kernel"};
    }
  };
  std::optional<kernels::Workers> workers;
  if (context.threads > 1 && constant_bytes(program) > kWorthSharing) workers.emplace(context.threads);
  kernels::parallel_for({nullptr, workers ? &*workers : nullptr}, static_cast<int64_t>(statuses.size()), prepare);
  return statuses;
}

/// What a kernel packed it does not read again.
void Plan::note_constants_read(size_t i) {
  const Step& step = program.steps[i];
  const kernels::Kernel* const kernel = steps[i].kernel.get();
  for (size_t input = 0; input < step.inputs.size(); ++input) {
    if (step.inputs[input] == kNoTensor) continue;
    const bool packed = kernel && input < 32 && (kernel->packed_inputs() >> input & 1) != 0;
    if (!packed) reads_constant[static_cast<size_t>(program.root(step.inputs[input]).first)] = true;
  }
}

Status Plan::prepare_step(size_t i, const Context& context, Where where) {
  Step& step = program.steps[i];
  PreparedStep& prepared = steps[i];
  if (!step.bodies.empty()) {
    Context on_host = context;  // which body runs is known here alone
    on_host.device = nullptr;
    for (const std::shared_ptr<Program>& body : step.bodies) {
      if (!body) {
        prepared.bodies.push_back(nullptr);
        continue;
      }
      SERIN_TRY(std::unique_ptr<Plan> plan, make_from(std::move(*body), on_host));
      prepared.scratch_bytes = std::max(prepared.scratch_bytes, plan->arena_bytes);
      prepared.bodies.push_back(std::move(plan));
    }
    prepared.kernel_name = "if";
    return {};
  }

  kernels::OpDesc desc{step.kernel, {}, {}};
  for (const TensorId id : step.inputs) desc.inputs.push_back(describe(program, id));
  for (const TensorId id : step.outputs) desc.outputs.push_back(describe(program, id));

  kernels::Prepared result;
  const auto ask = [&](const kernels::Backend& backend, kernels::PackedWeights& weights, Memory memory) {
    if (backend.device()) backend.device()->make_current();
    kernels::PrepareContext prepare_context{&weights, context.threads, context.precision == Precision::kTf32};
    result = backend.prepare(desc, prepare_context);
    if (memory == Memory::kDevice && !result.kernel && result.refusals.empty())
      prepared.refusals.emplace_back("device", "has no kernel for it");
    for (kernels::Refusal& refusal : result.refusals) prepared.refusals.emplace_back(refusal.kernel, std::move(refusal.reason));
    prepared.memory = memory;
  };
  if (where != Where::kHost && context.device) ask(*context.device, *context.device_weights, Memory::kDevice);
  if (where != Where::kDevice && !result.kernel) ask(context.backend, context.weights, Memory::kHost);
  if (!result.kernel) {
    return Error{Code::kUnsupported, prepared.refusals.empty() ? "no kernel" : prepared.refusals.back().second};
  }
  prepared.kernel_name = result.name;
  prepared.scratch_bytes = result.kernel->scratch_bytes();
  prepared.kernel = std::move(result.kernel);
  if (context.notes) note_packing(i, context);
  return {};
}

/// A run packs one weight after the other: the plain form of each is in memory meanwhile.
void Plan::note_packing(size_t i, const Context& context) const {
  if (context.trial) return;  // its packed forms go with it
  std::vector<graph::ConstantPtr> weights;
  const uint32_t packed = steps[i].kernel->packed_inputs();
  for (size_t input = 0; input < program.steps[i].inputs.size() && input < 32; ++input) {
    const TensorId id = program.steps[i].inputs[input];
    if (id == kNoTensor || (packed >> input & 1) == 0) continue;
    const graph::ConstantPtr& constant = program.tensor(program.root(id).first).constant;
    if (constant && constant->recipe) weights.push_back(constant);
  }
  if (!weights.empty()) context.notes->packed(weights, context.weights.bytes());
}

/// And nothing else: the plain form of a packed weight is in memory while another plan packs it, no longer.
void Plan::keep_what_is_read_plain(const Context& context) {
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    graph::ConstantPtr& constant = program.tensors[i].constant;
    const bool kept = reads_constant[i] && !context.trial && program.tensors[i].memory == Memory::kHost;
    if (!constant) continue;
    if (kept && context.notes)
      context.notes->add(*constant);
    else
      constant = kept ? graph::in_memory(std::move(constant)) : without_data(*constant);
  }
}

/// A symbol is decided by the first step whose result has it, bare, as an axis: NonZero, or one by name. Everything that reads it comes later.
Status Plan::number_symbols() {
  std::vector<bool> known(program.symbols.size(), false);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    steps[i].defines.assign(program.steps[i].outputs.size(), {});
    for (size_t output = 0; output < program.steps[i].outputs.size(); ++output) {
      const Tensor& tensor = program.tensor(program.steps[i].outputs[output]);
      for (const BoundedDim& dim : tensor.bounded) {
        const auto undecided = [&](const auto& term) { return !known[static_cast<size_t>(term.first)]; };
        if (std::none_of(dim.terms.begin(), dim.terms.end(), undecided)) continue;
        const bool bare = dim.terms.size() == 1 && dim.fixed == 0 && dim.terms[0].second == 1;
        const kernels::Op& kernel = program.steps[i].kernel;
        if (!bare || !(std::holds_alternative<kernels::NonZero>(kernel) || std::holds_alternative<kernels::Generic>(kernel))) {
          return Error{Code::kUnsupported, program.steps[i].label() + ": the size of '" + tensor.name +
                                               "' depends on the data in a way that a plan cannot express"};
        }
        steps[i].defines[output] = {dim.terms[0].first, dim.axis};
        known[static_cast<size_t>(dim.terms[0].first)] = true;
      }
    }
  }
  return {};
}

void Plan::place(const Buffers& buffers) {
  std::vector<Interval> intervals = buffers.intervals;
  std::vector<Memory> memories = buffers.memories;
  std::vector<size_t> scratch_steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].scratch_bytes == 0) continue;
    intervals.push_back({steps[i].scratch_bytes, static_cast<int>(i), static_cast<int>(i)});
    memories.push_back(steps[i].memory);
    scratch_steps.push_back(i);
  }
  std::vector<size_t> offsets(intervals.size());
  const auto pack_memory = [&](Memory memory, size_t* least) {
    std::vector<Interval> own;
    std::vector<size_t> numbers;
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (memories[i] != memory) continue;
      own.push_back(intervals[i]);
      numbers.push_back(i);
    }
    const Packing packing = pack(own, memory == Memory::kDevice ? kDeviceAlignment : kArenaAlignment);
    for (size_t i = 0; i < own.size(); ++i) offsets[numbers[i]] = packing.offsets[i];
    if (least) *least = engine::live_bytes(own);
    return packing.bytes;
  };
  arena_bytes = pack_memory(Memory::kHost, &live_bytes);
  device_bytes = pack_memory(Memory::kDevice, nullptr);
  places = buffers.places;
  for (Place& place : places) {
    if (place.in == Place::In::kArena) place.offset += offsets[static_cast<size_t>(place.index)];
  }
  for (size_t i = 0; i < scratch_steps.size(); ++i) steps[scratch_steps[i]].scratch_offset = offsets[buffers.intervals.size() + i];
}

}  // namespace serin::engine
