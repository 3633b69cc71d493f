#include "tests/fuzz/load_anything.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "runtime/engine/describe.h"
#include "runtime/engine/engine.h"
#include "runtime/formats/onnx/onnx.h"

namespace serin::fuzz {
namespace {

constexpr int64_t kMaxInputElements = 1 << 16;
constexpr int64_t kMaxFlops = 1 << 25;

/// Zeros for every input at its smallest; nothing where an input is no tensor, or large.
std::optional<std::vector<engine::Value>> smallest_inputs(const engine::Model& model) {
  std::vector<engine::Value> values;
  for (const graph::ValueId id : model.graph().inputs())
    if (model.graph().value(id).type.kind != graph::ValueKind::kTensor) return std::nullopt;
  for (const engine::TensorInfo& info : model.inputs()) {
    Shape shape = info.shape;
    for (size_t axis = 0; axis < shape.rank(); ++axis) shape[axis] = std::max<int64_t>(shape[axis], 1);
    const auto elements = shape.checked_elements();
    if (!elements || *elements > kMaxInputElements || info.dtype == DType::kUndefined) return std::nullopt;
    engine::FreshTensor zeros = engine::fresh_tensor(info.dtype, shape);
    if (info.dtype != DType::kString) std::memset(zeros.view.data, 0, zeros.view.bytes());
    values.push_back(engine::Value::of(std::move(zeros.tensor)));
  }
  return values;
}

/// Whether a run takes a moment, even with reference kernels under a sanitizer: a large convolution is no finding.
bool is_cheap(engine::Model& model) {
  graph::Bindings smallest;
  for (const std::string& symbol : model.symbols()) smallest[symbol] = 1;
  const auto executor = model.executor(smallest);
  if (!executor) return true;  // refused, or interpreted
  int64_t flops = 0;
  for (const engine::StepInfo& step : engine::steps((*executor)->plan())) flops += step.flops;
  return flops <= kMaxFlops;
}

}  // namespace

void load_anything(std::span<const std::byte> file) {
  // A copy of exactly that size, so that a sanitizer sees a read past the end.
  const std::shared_ptr<std::byte[]> bytes(new std::byte[file.size()]);
  if (!file.empty()) std::memcpy(bytes.get(), file.data(), file.size());
  const formats::OnnxLimits limits{.nodes = 1000, .nesting = 16, .sparse_bytes = size_t{1} << 20};
  auto graph = formats::read_onnx_bytes(std::shared_ptr<const std::byte>(bytes, bytes.get()), file.size(), "", {}, limits);
  if (graph) run_anything(std::move(*graph));
}

void run_anything(graph::Graph graph) {
  static const auto backend = kernels::make_cpu_backend({.onednn_path = "none", .reference_only = true});
  (void)graph::print(graph, {.types = true, .names = true});
  (void)graph::prove_batchable(graph);
  engine::LoadOptions options;
  options.max_arena_bytes = size_t{1} << 24;
  const auto model = engine::Model::from_graph(std::move(graph), *backend, std::move(options));
  if (!model || !is_cheap(**model)) return;
  if (const auto inputs = smallest_inputs(**model)) (void)(*model)->run(*inputs);
}

}  // namespace serin::fuzz
