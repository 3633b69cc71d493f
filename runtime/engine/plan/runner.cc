// runner.cc: the loop that runs a plan. Everything that can be known before a run is in operands_ and calls_; a run inserts the caller's
// pointers and goes through the calls.
//
// Sizes that the data decides: the step that decides one (NonZero) leaves it in its result's shape, from where it goes to sizes_; every
// later operand whose shape depends on it is resized before its step. A step of a device leaves it in the device's memory: the copy behind
// it (placement.cc) brings it, and the host waits for that number alone. Whether such a size fits what it meets (1 or 6 with a 6), only the
// run can tell; kernels rely on it.

#include "runtime/engine/plan/runner.h"

#include <algorithm>
#include <chrono>

#include "kernels/indexing.h"

namespace serin::engine {

namespace {

using Views = std::span<const TensorView>;

bool element_wise(const kernels::Op& op) {
  return std::holds_alternative<kernels::Binary>(op) || std::holds_alternative<kernels::Select>(op) ||
         std::holds_alternative<kernels::Pointwise>(op);
}

bool wants_equal_sizes(const kernels::Op& op) {
  return element_wise(op) || std::holds_alternative<kernels::Concat>(op) || std::holds_alternative<kernels::MatMul>(op);
}

kernels::Fault misfit_of_matrices(const kernels::MatMul& op, Views in) {
  const Shape &a = in[0].shape, &b = in[1].shape;
  if (a.rank() < 2 || b.rank() < 2) return {};
  if (a[a.rank() - (op.transpose_a ? 2 : 1)] == b[b.rank() - (op.transpose_b ? 1 : 2)]) return {};
  return "cannot multiply " + a.str() + (op.transpose_a ? " (transposed)" : "") + " by " + b.str() +
         (op.transpose_b ? " (transposed)" : "");
}

kernels::Fault misfit(const kernels::Op& op, Views in, const Shape& y) {
  if (const auto* const matrices = std::get_if<kernels::MatMul>(&op)) {
    if (kernels::Fault fault = misfit_of_matrices(*matrices, in)) return fault;
    in = in.subspan(2);  // a bias, a residual
  }
  const auto* const concat = std::get_if<kernels::Concat>(&op);
  for (const TensorView& x : in) {
    Shape to = y;
    if (concat) to[static_cast<size_t>(concat->axis)] = x.shape[static_cast<size_t>(concat->axis)];
    if (concat ? x.shape != to : !kernels::broadcasts_to(x.shape, to))
      return x.shape.str() + (concat ? " cannot be joined to " : " does not broadcast to ") + y.str();
  }
  return {};
}

}  // namespace

Runner::Runner(const Plan& plan, std::byte* arena, kernels::Workers* workers, const OnDevice& device)
    : plan_(plan), sizes_(plan.program.symbols.size(), 0), device_(device) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.program.steps[i];
    const PreparedStep& prepared = plan.steps[i];
    Call call;
    call.kernel = prepared.kernel.get();
    call.on_device = prepared.memory == Memory::kDevice;
    call.stream = {arena + prepared.scratch_offset, workers};
    if (call.on_device) {
      call.stream = {.scratch = device_.arena + prepared.scratch_offset,
                     .queue = device_.queue->native(),
                     .fault = device_.fault,
                     .step = static_cast<int32_t>(i) + 1};
    }
    for (size_t body = 0; body < prepared.bodies.size(); ++body) {
      if (prepared.bodies[body]) call.bodies[body] = std::make_unique<Runner>(*prepared.bodies[body], call.stream.scratch, workers);
    }
    call.first_input = operands_.size();
    call.inputs = step.inputs.size();
    call.outputs = step.outputs.size();
    call.first_resize = resizes_.size();
    for (const TensorId id : step.inputs) add_operand(id, arena);
    for (const TensorId id : step.outputs) add_operand(id, arena);
    call.resizes = resizes_.size() - call.first_resize;
    call.meets_sizes = call.resizes != 0 && wants_equal_sizes(step.kernel) && prepared.bodies.empty();
    call.of_staged = !call.on_device && std::ranges::any_of(plan.program.staged, [&](const auto& pair) {
      return step.inputs.size() == 1 &&
             (plan.program.root(step.inputs[0]).first == pair.first ? step.outputs[0] == pair.second : step.inputs[0] == pair.second);
    });
    for (const DecidedSize& size : prepared.defines) call.decides_sizes |= size.symbol >= 0;
    call.brings_sizes = !calls_.empty() && calls_.back().decides_sizes && calls_.back().on_device;
    calls_.push_back(std::move(call));
  }
  find_segments();
}

void Runner::add_operand(TensorId id, std::byte* arena) {
  if (id == kNoTensor) {
    operands_.emplace_back();
    return;
  }
  const Tensor& tensor = plan_.program.tensor(id);
  const Place& place = plan_.places[static_cast<size_t>(id)];
  TensorView view{tensor.dtype, tensor.shape, nullptr};
  switch (place.in) {
    case Place::In::kArena: view.data = (tensor.memory == Memory::kDevice ? device_.arena : arena) + place.offset; break;
    case Place::In::kInput: inputs_.push_back({operands_.size(), place.index, place.offset}); break;
    case Place::In::kOutput: outputs_.push_back({operands_.size(), place.index, place.offset}); break;
    case Place::In::kConstant: {
      if (tensor.memory == Memory::kDevice) {
        const auto& buffer = plan_.device_constants[static_cast<size_t>(place.index)];
        if (buffer) view.data = buffer->data + place.offset;
        break;
      }
      const graph::Constant& constant = *plan_.program.tensor(place.index).constant;
      // Kernels write to outputs only, and a constant is never one.
      if (constant.resident) view.data = const_cast<std::byte*>(constant.resident.get()) + place.offset;
      break;
    }
    case Place::In::kNowhere: break;
  }
  for (const BoundedDim& dim : tensor.bounded) resizes_.push_back({operands_.size(), &dim});
  operands_.push_back(view);
}

int64_t Runner::size_of(const BoundedDim& dim) const {
  int64_t size = dim.fixed;
  for (const auto& [symbol, factor] : dim.terms) size += factor * sizes_[static_cast<size_t>(symbol)];
  return size;
}

Status Runner::run(std::span<const TensorView> inputs, std::span<TensorView> outputs, std::span<int64_t> step_ns) {
  for (const External& at : inputs_) operands_[at.operand].data = inputs[static_cast<size_t>(at.index)].as<std::byte>() + at.offset;
  for (const External& at : outputs_) operands_[at.operand].data = outputs[static_cast<size_t>(at.index)].as<std::byte>() + at.offset;
  if (device_.device) device_.device->make_current();
  if (Status ran = run_steps(step_ns); !ran) return device_.device ? failed_on_device(std::move(ran).error()) : std::move(ran);
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const BoundedDim& dim : plan_.program.tensor(plan_.program.outputs[i]).bounded) outputs[i].shape[dim.axis] = size_of(dim);
  }
  return {};
}

Status Runner::run_steps(std::span<int64_t> step_ns) {
  using Clock = std::chrono::steady_clock;
  auto segment = segments_.begin();
  for (size_t i = 0; i < calls_.size(); ++i) {
    const bool timed = !step_ns.empty();
    if (segment != segments_.end() && segment->first == i) {
      SERIN_CHECK(run_segment(*segment, timed));
      if (timed) SERIN_CHECK(add_times(*segment, step_ns));
      i = segment++->last;
      SERIN_CHECK(learn_sizes(i));
      continue;
    }
    if (timed) SERIN_CHECK(finish_device());
    const auto begin = timed ? Clock::now() : Clock::time_point();
    SERIN_CHECK(run_step(i));
    SERIN_CHECK(learn_sizes(i));
    if (timed) step_ns[i] += std::chrono::nanoseconds(Clock::now() - begin).count();
  }
  return finish_device();
}

Status Runner::run_step(size_t step) {
  Call& call = calls_[step];
  if (call.of_staged && operands_[call.first_input].data == operands_[call.first_input + 1].data) return {};
  if (call.on_device)
    pending_ = true;
  else
    SERIN_CHECK(finish_device());  // a copy may still read what this step overwrites, or write what it reads
  for (size_t r = call.first_resize; r < call.first_resize + call.resizes; ++r) {
    operands_[resizes_[r].operand].shape[resizes_[r].dim->axis] = size_of(*resizes_[r].dim);
  }
  const Views in(operands_.data() + call.first_input, call.inputs);
  const std::span<TensorView> out(operands_.data() + call.first_input + call.inputs, call.outputs);
  if (call.meets_sizes) {
    if (const kernels::Fault fault = misfit(plan_.program.steps[step].kernel, in, out[0].shape))
      return Error{Code::kInvalidArgument, plan_.program.steps[step].label() + ": " + *fault};
  }
  if (call.kernel) {
    const kernels::Fault fault = call.kernel->run(call.stream, in, out);
    if (fault) return Error{call.on_device ? Code::kInternal : Code::kInvalidArgument, plan_.program.steps[step].label() + ": " + *fault};
  } else {
    const auto& body = call.bodies[*in[0].as<const bool>() ? 0 : 1];
    const Status status = body->run(in.subspan(1), out);
    if (!status) return status.error().in(plan_.program.steps[step].label());
  }
  return {};
}

Status Runner::learn_sizes(size_t step) {
  const Call& call = calls_[step];
  const bool decided_here = call.decides_sizes && !call.on_device;
  if (!decided_here && !call.brings_sizes) return {};
  if (call.brings_sizes) SERIN_CHECK(finish_device());
  const size_t first_output = call.first_input + call.inputs;
  const std::vector<DecidedSize>& defines = plan_.steps[decided_here ? step : step - 1].defines;
  for (size_t i = 0; i < defines.size(); ++i) {
    if (defines[i].symbol < 0) continue;
    int64_t& size = sizes_[static_cast<size_t>(defines[i].symbol)];
    size = decided_here ? operands_[first_output + i].shape[defines[i].axis] : operands_[first_output].as<const int64_t>()[i];
  }
  return {};
}

}  // namespace serin::engine
