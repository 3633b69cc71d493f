// solo.cc: the steps of one node, each tensor in memory of its own.
//
// A result whose size the data decides has memory for its bound; the kernel leaves the true shape in its view. Where there is no bound the
// kernel is run twice: without memory it only sets the shape.

#include "runtime/engine/lower/solo.h"

#include <algorithm>
#include <utility>

#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/lower/lowering.h"
#include "runtime/engine/lower/lowering_table.h"
#include "runtime/engine/value.h"

namespace serin::engine {

namespace {

using graph::ConstantPtr;

/// As tensor_of, but strings may be computed here, and a size without a bound is 0 until the kernel says it.
Result<Tensor> tensor_alone(const graph::Graph& graph, graph::ValueId id, Bounds& bounds, bool& boundless) {
  const graph::Value& value = graph.value(id);
  Tensor tensor{.name = value.name, .dtype = value.type.dtype, .constant = value.constant};
  if (value.type.kind != graph::ValueKind::kTensor) return Error{Code::kUnsupported, "'" + value.name + "' is not a tensor"};
  if (value.constant) {
    tensor.dtype = value.constant->dtype;
    tensor.shape = value.constant->shape;
  } else if (!value.type.shape) {
    return Error{Code::kUnsupported, "'" + value.name + "' has a rank that is not known"};
  } else if (const Status bounded = bounds.apply(*value.type.shape, tensor); !bounded) {
    if (tensor.storage != Storage::kDynamic) return bounded.error();
    boundless = true;
    tensor.shape = Shape();
    for (const graph::Dim& dim : *value.type.shape) tensor.shape.push_back(dim.value().value_or(0));
  }
  if (tensor.dtype == DType::kUndefined) return Error{Code::kUnsupported, "'" + value.name + "' has a type that is not known"};
  return tensor;
}

size_t bytes_of(DType dtype, const Shape& shape) {
  const auto elements = shape.checked_elements();
  const size_t size = dtype == DType::kString ? sizeof(std::string) : dtype_size(dtype);
  return !elements || static_cast<uint64_t>(*elements) > SIZE_MAX / 2 / std::max<size_t>(size, 1) ? SIZE_MAX
                                                                                                  : static_cast<size_t>(*elements) * size;
}

/// Some of the elements, seen with a shape of their own. What is much smaller than its memory does not keep that alive.
ConstantPtr part_of(const ConstantPtr& whole, DType dtype, const Shape& shape, size_t offset) {
  auto part = std::make_shared<graph::Constant>();
  part->dtype = dtype;
  part->shape = shape;
  if (dtype == DType::kString) {
    part->strings.assign(whole->strings.begin(), whole->strings.begin() + std::min(whole->elements(), shape.elements()));
    return part;
  }
  const auto data = whole->data();
  if (part->bytes() * 2 < whole->bytes()) return graph::make_constant(dtype, shape, data.get() + offset);
  part->resident = std::shared_ptr<const std::byte>(data, data.get() + offset);
  if (part->bytes() == whole->bytes()) part->recipe = whole->recipe;
  return part;
}

Status check_size(const std::string& name, DType dtype, const Shape& shape, size_t limit) {
  if (bytes_of(dtype, shape) <= limit) return {};
  return Error{Code::kTooLarge, "'" + name + "' " + shape.str() + " would take more than the limit of " + std::to_string(limit) + " bytes"};
}

}  // namespace

/// What the tensors of one run are in.
struct Solo::Memory {
  std::vector<ConstantPtr> held;  ///< by root tensor
  std::vector<Shape> shapes;      ///< by tensor: the true ones
};

Result<Solo> Solo::make(const graph::Graph& graph, const graph::Node& node, const SoloContext& context) {
  Solo solo;
  solo.max_bytes_ = context.max_bytes;
  solo.as_weights_ = context.as_weights;
  std::vector<TensorId> tensors(graph.value_capacity(), kNoTensor);
  SERIN_CHECK(solo.define(graph, node, tensors, context.max_bytes));
  const LowerFn fn = lower_fn(node.op);
  if (!fn) return Error{Code::kUnsupported, "it has no kernel"};
  Lowering at(solo.program_, node, tensors);
  SERIN_CHECK(fn(at));
  solo.boundless_.resize(solo.program_.tensors.size(), false);
  SERIN_CHECK(solo.prepare(context));
  return solo;
}

Status Solo::define(const graph::Graph& graph, const graph::Node& node, std::vector<TensorId>& tensors, size_t max_bytes) {
  Bounds bounds(graph);
  const auto add = [&](graph::ValueId id, std::vector<TensorId>& list, bool result) -> Status {
    if (id == graph::kNone) {
      list.push_back(kNoTensor);
      return {};
    }
    TensorId& known = tensors[static_cast<size_t>(id)];
    if (known == kNoTensor) {
      bool boundless = false;
      SERIN_TRY(Tensor tensor, tensor_alone(graph, id, bounds, boundless));
      if (result) SERIN_CHECK(check_size(tensor.name, tensor.dtype, tensor.shape, max_bytes));
      known = static_cast<TensorId>(program_.tensors.size());
      program_.tensors.push_back(std::move(tensor));
      boundless_.push_back(boundless);
    }
    list.push_back(known);
    return {};
  };
  for (const graph::ValueId id : node.inputs) SERIN_CHECK(add(id, inputs_, false));
  for (const graph::ValueId id : node.outputs) SERIN_CHECK(add(id, outputs_, true));
  return {};
}

Status Solo::prepare(const SoloContext& context) {
  kernels::PrepareContext prepare_context{&context.weights, context.threads};
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    const Step& step = program_.steps[i];
    kernels::OpDesc desc{step.kernel, {}, {}};
    const auto describe = [&](TensorId id) {
      if (id == kNoTensor) return kernels::TensorDesc{};
      const Tensor& tensor = program_.tensor(id);
      return kernels::TensorDesc{.dtype = tensor.dtype, .shape = tensor.shape, .bounded = tensor.storage != Storage::kFixed};
    };
    for (const TensorId id : step.inputs) desc.inputs.push_back(describe(id));
    for (const TensorId id : step.outputs) desc.outputs.push_back(describe(id));
    Call call{context.backend.prepare(desc, prepare_context), i};
    if (!call.prepared.kernel) {
      const auto& refusals = call.prepared.refusals;
      return Error{Code::kUnsupported, refusals.empty() ? "no kernel" : refusals.back().reason};
    }
    calls_.push_back(std::move(call));
  }
  return {};
}

Result<std::vector<ConstantPtr>> Solo::run(std::span<const ConstantPtr> operands, kernels::Workers* workers) const {
  Memory memory{std::vector<ConstantPtr>(program_.tensors.size()), {}};
  for (size_t i = 0; i < program_.tensors.size(); ++i) {
    memory.held[i] = graph::in_memory(program_.tensors[i].constant);
    memory.shapes.push_back(program_.tensors[i].shape);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] != kNoTensor && !memory.held[static_cast<size_t>(inputs_[i])])
      memory.held[static_cast<size_t>(inputs_[i])] = graph::in_memory(operands[i]);
  }
  for (const Call& call : calls_) SERIN_CHECK(run_call(call, memory, workers));

  std::vector<ConstantPtr> results;
  for (const TensorId id : outputs_) {
    if (id == kNoTensor) {
      results.push_back(nullptr);
      continue;
    }
    const auto [root, offset] = program_.root(id);
    const Tensor& tensor = program_.tensor(id);
    const Shape& shape = memory.shapes[static_cast<size_t>(id)];
    ConstantPtr& held = memory.held[static_cast<size_t>(root)];
    if (!held) held = fresh(tensor.dtype, shape).tensor;  // nothing wrote it: it is empty
    if (held->shape == shape && held->dtype == tensor.dtype && offset == 0) {
      results.push_back(held);
      continue;
    }
    results.push_back(part_of(held, tensor.dtype, shape, offset));
  }
  return results;
}

FreshTensor Solo::fresh(DType dtype, const Shape& shape) const {
  if (!as_weights_ || dtype == DType::kString || shape.elements() == 0) return fresh_tensor(dtype, shape);
  std::byte* memory = nullptr;
  auto tensor = graph::make_mutable_constant(dtype, shape, &memory);
  return {std::move(tensor), {dtype, shape, memory}};
}

Status Solo::run_call(const Call& call, Memory& memory, kernels::Workers* workers) const {
  const Step& step = program_.steps[call.step];
  const auto view = [&](TensorId id) {
    if (id == kNoTensor) return TensorView{};
    const auto [root, offset] = program_.root(id);
    const Tensor& owner = program_.tensor(root);
    ConstantPtr& held = memory.held[static_cast<size_t>(root)];
    if (!held && !boundless_[static_cast<size_t>(root)]) held = fresh(owner.dtype, owner.shape).tensor;
    TensorView seen{program_.tensor(id).dtype, memory.shapes[static_cast<size_t>(id)], nullptr};
    if (held) seen.data = view_of(*held).as<std::byte>() + (owner.dtype == DType::kString ? 0 : offset);
    return seen;
  };
  std::vector<TensorView> inputs, outputs;
  for (const TensorId id : step.inputs) inputs.push_back(view(id));
  for (const TensorId id : step.outputs) outputs.push_back(view(id));
  const AlignedBuffer scratch(call.prepared.kernel->scratch_bytes() + 1);
  kernels::Stream stream{scratch.data(), workers};
  const auto run = [&]() -> Status {
    if (const kernels::Fault fault = call.prepared.kernel->run(stream, inputs, outputs)) return Error{Code::kInvalidArgument, *fault};
    return {};
  };
  SERIN_CHECK(run());
  bool again = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto id = static_cast<size_t>(step.outputs[i]);
    if (!boundless_[id]) continue;
    SERIN_CHECK(check_size(program_.tensors[id].name, outputs[i].dtype, outputs[i].shape, max_bytes_));
    FreshTensor made = fresh(outputs[i].dtype, outputs[i].shape);
    outputs[i].data = made.view.data;
    memory.held[id] = std::move(made.tensor);
    again = true;
  }
  if (again) SERIN_CHECK(run());
  for (size_t i = 0; i < outputs.size(); ++i) memory.shapes[static_cast<size_t>(step.outputs[i])] = outputs[i].shape;
  return {};
}

}  // namespace serin::engine
