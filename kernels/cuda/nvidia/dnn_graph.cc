// dnn_graph.cc: every plan that the library offers for a graph is timed when the kernel is prepared, on memory of its own.

#include "kernels/cuda/nvidia/dnn_graph.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "kernels/cuda/trial.h"

namespace serin::kernels::cuda {

class Dnn {
 public:
  explicit Dnn(cudnnHandle_t handle) : handle_(handle) {}
  ~Dnn() { cudnnDestroy(handle_); }
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  cudnnHandle_t handle() const { return handle_; }
  std::mutex& mutex() { return mutex_; }

 private:
  const cudnnHandle_t handle_;
  std::mutex mutex_;
};

namespace {

constexpr int64_t kMaxWorkspace = int64_t{256} << 20;
constexpr int64_t kMaxPlans = 16;

using Pointers = std::unordered_map<int64_t, void*>;

std::string reason_of(const fe::error_t& error) { return "cuDNN: " + error.err_msg; }

constexpr int64_t kDnnOutput = 1000;  // the kernel's one output, among the numbers of its inputs

/// An operand's name within a graph: 0 is none.
int64_t uid_of(int64_t input) { return input + 1; }

class DnnKernel final : public Kernel {
 public:
  DnnKernel(std::shared_ptr<Dnn> dnn, std::unique_ptr<DnnGraph> graph) : dnn_(std::move(dnn)), graph_(std::move(graph)) {}

  std::string_view name() const override { return "cudnn"; }
  size_t scratch_bytes() const override { return static_cast<size_t>(workspace_); }

  Fault run(Stream& stream, std::span<const TensorView> in, std::span<TensorView> out) const override {
    Pointers pointers{{uid_of(kDnnOutput), out[0].data}};
    for (const int64_t input : graph_->inputs()) pointers[uid_of(input)] = in[static_cast<size_t>(input)].data;
    const std::lock_guard lock(dnn_->mutex());
    if (cudnnSetStream(dnn_->handle(), static_cast<cudaStream_t>(stream.queue)) != CUDNN_STATUS_SUCCESS)
      return "cuDNN: the stream is not taken";
    const fe::error_t error = graph_->graph().execute_plan_at_index(dnn_->handle(), pointers, stream.scratch, plan_);
    return error.is_good() ? Fault() : Fault(reason_of(error));
  }

  /// Builds and times the plans; false with the reason where none works.
  bool choose(Tactics& tactics, const OpDesc& desc, std::string& why) {
    const std::lock_guard lock(dnn_->mutex());
    fe::graph::Graph& graph = graph_->graph();
    fe::error_t error = graph.validate();
    if (error.is_good()) error = graph.build_operation_graph(dnn_->handle());
    if (error.is_good()) error = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (error.is_good()) error = graph.check_support(dnn_->handle());
    if (!error.is_good()) return why = reason_of(error), false;
    graph.deselect_workspace_greater_than(kMaxWorkspace);
    const int64_t plans = std::min(graph.get_execution_plan_count(), kMaxPlans);
    std::optional<Operands> operands;
    const int way = tactics.choose(graph_->key, static_cast<int>(plans), [&](int plan) {
      if (!operands) operands.emplace(*graph_, desc);
      return time(plan, *operands);
    });
    const bool timed = operands && operands->trial.works();
    if (way < 0 && timed) return why = "cuDNN: no plan works", false;
    plan_ = std::max(way, 0);  // where there is no memory to time them, the library's first choice
    if (const auto built = graph.build_plan_at_index(dnn_->handle(), plan_); !built.is_good()) return why = reason_of(built), false;
    if (const auto known = graph.get_workspace_size_plan_at_index(plan_, workspace_); !known.is_good())
      return why = reason_of(known), false;
    return true;
  }

 private:
  struct Operands {
    Operands(const DnnGraph& graph, const OpDesc& desc) {
      for (const int64_t input : graph.inputs()) take(uid_of(input), desc.inputs[static_cast<size_t>(input)]);
      take(uid_of(kDnnOutput), desc.outputs[0]);
    }
    void take(int64_t name, const TensorDesc& tensor) {
      pointers[name] = trial.take(static_cast<size_t>(tensor.shape.elements()) * dtype_size(tensor.dtype));
    }
    Trial trial;
    Pointers pointers;
  };

  std::optional<double> time(int64_t plan, Operands& operands) const {
    fe::graph::Graph& graph = graph_->graph();
    int64_t workspace = 0;
    if (!graph.build_plan_at_index(dnn_->handle(), plan).is_good() || !graph.get_workspace_size_plan_at_index(plan, workspace).is_good() ||
        workspace > kMaxWorkspace || cudnnSetStream(dnn_->handle(), operands.trial.stream()) != CUDNN_STATUS_SUCCESS)
      return std::nullopt;
    const auto milliseconds = operands.trial.time(static_cast<size_t>(std::max<int64_t>(workspace, 0)), [&](void* scratch) {
      return graph.execute_plan_at_index(dnn_->handle(), operands.pointers, scratch, plan).is_good();
    });
    cudnnSetStream(dnn_->handle(), nullptr);  // the trial's stream goes with it
    return milliseconds;
  }

  const std::shared_ptr<Dnn> dnn_;
  const std::unique_ptr<DnnGraph> graph_;
  int64_t plan_ = 0, workspace_ = 0;
};

}  // namespace

DnnGraph::TensorPtr DnnGraph::operand(int64_t i, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  inputs_.push_back(i);
  return graph_.tensor(fe::graph::Tensor_attributes().set_uid(uid_of(i)).set_dim(dims).set_stride(strides));
}

void DnnGraph::answer(const TensorPtr& y, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, fe::DataType_t type) {
  y->set_dim(dims).set_stride(strides).set_output(true).set_uid(uid_of(kDnnOutput)).set_data_type(type);
}

std::optional<fe::DataType_t> dnn_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return fe::DataType_t::FLOAT;
    case DType::kFloat16: return fe::DataType_t::HALF;
    case DType::kBFloat16: return fe::DataType_t::BFLOAT16;
    default: return std::nullopt;
  }
}

std::unique_ptr<Kernel> prepare_dnn(const std::shared_ptr<Dnn>& dnn, std::unique_ptr<DnnGraph> graph, Tactics& tactics, const OpDesc& desc,
                                    std::string& why) {
  auto kernel = std::make_unique<DnnKernel>(dnn, std::move(graph));
  return kernel->choose(tactics, desc, why) ? std::move(kernel) : nullptr;
}

std::shared_ptr<Dnn> open_dnn(std::string& why) {
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = cudnnCreate(&handle);
  if (status == CUDNN_STATUS_SUCCESS) return std::make_shared<Dnn>(handle);
  why = std::string("cuDNN: ") + cudnnGetErrorString(status);
  return nullptr;
}

std::string dnn_version() {
  const size_t version = cudnnGetVersion();
  return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

}  // namespace serin::kernels::cuda
