// fold.cc: a node is lowered like any other and its few steps are run at once, each tensor in memory of its own.
//
// Shape, Size, ConstantOfShape and Range have no kernel at all: their results are known before anything runs, so they are computed here.

#include "runtime/engine/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/lowering.h"
#include "runtime/engine/lowering_table.h"

namespace serin::engine {

namespace {

using graph::ConstantPtr;
using graph::Op;
using Constants = std::vector<ConstantPtr>;

Error unsupported(std::string why) { return Error{Code::kUnsupported, std::move(why)}; }

Result<Constants> fold_shape(const graph::Graph& graph, const graph::Node& node) {
  const auto& dims = graph.value(node.inputs[0]).type.shape;
  const auto shape = dims ? graph::known_shape(*dims) : std::nullopt;
  if (!shape) return unsupported("the shape of '" + graph.value(node.inputs[0]).name + "' is not known at load");
  if (node.op == Op::kSize) {
    const int64_t size = shape->elements();
    return Constants{graph::make_constant(DType::kInt64, Shape{}, &size)};
  }
  const auto rank = static_cast<int64_t>(shape->rank());
  const auto clamp = [rank](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t begin = clamp(node.integer("start", 0)), end = std::max(begin, clamp(node.integer("end", rank)));
  return Constants{graph::make_constant(shape->dims().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)))};
}

Result<Constants> fold_constant_of_shape(const graph::Graph& graph, const graph::Node& node) {
  const ConstantPtr dims = graph.constant(node.inputs[0]);
  if (!dims || dims->dtype != DType::kInt64) return unsupported("the shape is not known at load");
  if (!Shape::fits(dims->span<int64_t>().size())) return unsupported("too many dimensions");
  const Shape shape(dims->span<int64_t>());
  const auto elements = shape.checked_elements();
  ConstantPtr value = node.constant("value");
  if (!value) value = graph::make_scalar(DType::kFloat32, 0);
  const size_t size = dtype_size(value->dtype);
  if (!elements || size == 0) return Error{Code::kInvalidArgument, "cannot make a tensor of shape " + shape.str()};
  if (static_cast<size_t>(*elements) > Folder::kMaxBytes / size) {
    return Error{Code::kTooLarge,
                 "would make a constant of shape " + shape.str() + ", more than " + std::to_string(Folder::kMaxBytes) + " bytes"};
  }
  std::byte* memory = nullptr;
  auto result = graph::make_mutable_constant(value->dtype, shape, &memory);
  for (int64_t i = 0; i < *elements; ++i) std::memcpy(memory + static_cast<size_t>(i) * size, value->data.get(), size);
  return Constants{std::move(result)};
}

template <class T>
Result<Constants> fold_range(const graph::Constant& start, const graph::Constant& limit, const graph::Constant& delta) {
  const T from = start.span<T>()[0], to = limit.span<T>()[0], step = delta.span<T>()[0];
  if (step == T(0)) return Error{Code::kInvalidArgument, "delta is 0"};
  const double count = std::max(0.0, std::ceil((static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(step)));
  if (!(count * sizeof(T) <= static_cast<double>(Folder::kMaxBytes))) {
    return Error{Code::kTooLarge, "would make more than " + std::to_string(Folder::kMaxBytes) + " bytes"};
  }
  std::byte* memory = nullptr;
  auto result = graph::make_mutable_constant(start.dtype, Shape{static_cast<int64_t>(count)}, &memory);
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    const T value = static_cast<T>(from + static_cast<T>(i) * step);
    std::memcpy(memory + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return Constants{std::move(result)};
}

Result<Constants> fold_range(const graph::Graph& graph, const graph::Node& node) {
  const ConstantPtr start = graph.constant(node.inputs[0]), limit = graph.constant(node.inputs[1]), delta = graph.constant(node.inputs[2]);
  if (!start || !limit || !delta) return unsupported("its operands are not known at load");
  if (start->dtype != limit->dtype || start->dtype != delta->dtype || start->elements() * limit->elements() * delta->elements() != 1) {
    return Error{Code::kInvalidArgument, "start, limit and delta must be single numbers of one type"};
  }
  switch (start->dtype) {
    case DType::kInt32: return fold_range<int32_t>(*start, *limit, *delta);
    case DType::kInt64: return fold_range<int64_t>(*start, *limit, *delta);
    case DType::kFloat32: return fold_range<float>(*start, *limit, *delta);
    case DType::kFloat64: return fold_range<double>(*start, *limit, *delta);
    default: return unsupported("no Range of " + std::string(dtype_name(start->dtype)));
  }
}

/// Memory for each root tensor of a small program, and the views into it.
class Scratchpad {
 public:
  explicit Scratchpad(const Program& program) : program_(program), memory_(program.tensors.size()), shapes_(program.tensors.size()) {
    for (size_t i = 0; i < program.tensors.size(); ++i) shapes_[i] = program.tensors[i].shape;
  }

  TensorView view(TensorId id) {
    const auto [root, offset] = program_.root(id);
    const Tensor& owner = program_.tensor(root);
    const std::byte* data = nullptr;
    if (owner.constant) {
      data = owner.constant->data.get();
    } else {
      auto& memory = memory_[static_cast<size_t>(root)];
      if (memory.size() == 0) memory = AlignedBuffer(owner.bytes() + 1);
      data = memory.data();
    }
    // Kernels never write to inputs; a view of a constant is only ever one.
    return {program_.tensor(id).dtype, shapes_[static_cast<size_t>(id)], const_cast<std::byte*>(data + offset)};
  }
  void set_shape(TensorId id, const Shape& shape) { shapes_[static_cast<size_t>(id)] = shape; }

 private:
  const Program& program_;
  std::vector<AlignedBuffer> memory_;
  std::vector<Shape> shapes_;
};

Status run(const Program& program, const kernels::Backend& backend, Scratchpad& memory) {
  for (const Step& step : program.steps) {
    kernels::OpDesc desc{step.kernel, {}, {}};
    std::vector<TensorView> inputs, outputs;
    for (const TensorId id : step.inputs) {
      inputs.push_back(id == kNoTensor ? TensorView{} : memory.view(id));
      desc.inputs.push_back({inputs.back().dtype, inputs.back().shape});
    }
    for (const TensorId id : step.outputs) {
      outputs.push_back(memory.view(id));
      desc.outputs.push_back({outputs.back().dtype, outputs.back().shape});
    }
    kernels::PackedWeights weights;
    kernels::PrepareContext context{&weights, 1};
    const kernels::Prepared prepared = backend.prepare(desc, context);
    if (!prepared.kernel)
      return unsupported("no kernel takes it" + (prepared.refusals.empty() ? "" : ": " + prepared.refusals.back().reason));
    AlignedBuffer scratch(prepared.kernel->scratch_bytes() + 1);
    kernels::Stream stream{scratch.data()};
    if (const kernels::Fault fault = prepared.kernel->run(stream, inputs, outputs)) return Error{Code::kInvalidArgument, *fault};
    for (size_t i = 0; i < outputs.size(); ++i) memory.set_shape(step.outputs[i], outputs[i].shape);
  }
  return {};
}

/// A program of this one node: constants in, results out. The bytes of each result must be known.
Result<Program> lower_alone(const graph::Graph& graph, const graph::Node& node, std::vector<TensorId>& tensors) {
  Program program;
  Bounds bounds(graph);
  tensors.assign(graph.value_capacity(), kNoTensor);
  const auto add = [&](graph::ValueId id, bool input) -> Status {
    if (id == graph::kNone || tensors[static_cast<size_t>(id)] != kNoTensor) return {};
    SERIN_TRY(Tensor tensor, tensor_of(graph, id, bounds));
    if (input && !tensor.constant) return unsupported("'" + tensor.name + "' is not known at load");
    if (!input && tensor.bytes() > Folder::kMaxBytes) {
      return Error{Code::kTooLarge,
                   "would make " + std::to_string(tensor.bytes()) + " bytes, more than " + std::to_string(Folder::kMaxBytes)};
    }
    tensors[static_cast<size_t>(id)] = static_cast<TensorId>(program.tensors.size());
    program.tensors.push_back(std::move(tensor));
    return {};
  };
  for (const graph::ValueId id : node.inputs) SERIN_CHECK(add(id, true));
  for (const graph::ValueId id : node.outputs) SERIN_CHECK(add(id, false));
  const LowerFn fn = lower_fn(node.op);
  if (!fn) return unsupported("it is not computed at load");
  Lowering at(program, node, tensors);
  SERIN_CHECK(fn(at));
  return program;
}

Result<Constants> compute(const graph::Graph& graph, const graph::Node& node, const kernels::Backend& backend) {
  if (node.op == Op::kShape || node.op == Op::kSize) return fold_shape(graph, node);
  if (node.op == Op::kConstantOfShape) return fold_constant_of_shape(graph, node);
  if (node.op == Op::kRange) return fold_range(graph, node);

  std::vector<TensorId> tensors;
  SERIN_TRY(const Program program, lower_alone(graph, node, tensors));
  Scratchpad memory(program);
  SERIN_CHECK(run(program, backend, memory));
  Constants results;
  for (const graph::ValueId id : node.outputs) {
    if (id == graph::kNone) {
      results.push_back(nullptr);
      continue;
    }
    const TensorView result = memory.view(tensors[static_cast<size_t>(id)]);
    results.push_back(graph::make_constant(result.dtype, result.shape, result.data));
  }
  return results;
}

}  // namespace

Folder::Folder() : reference_(kernels::make_cpu_backend({.isa = kernels::Isa::kScalar, .onednn_path = "none", .reference_only = true})) {}
Folder::~Folder() = default;

Result<Constants> Folder::evaluate(const graph::Graph& graph, graph::NodeId id) const {
  const graph::Node& node = graph.node(id);
  auto results = compute(graph, node, *reference_);
  if (!results) return results.error().in("node '" + node.name + "' (" + std::string(graph::op_name(node.op)) + ")");
  return results;
}

}  // namespace serin::engine
