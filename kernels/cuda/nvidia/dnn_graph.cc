// dnn_graph.cc: chooses the plan of a cuDNN graph. The plans that the library offers are timed when the kernel is prepared, on memory of
// its own, in the library's order. Timing stops when a few in a row were no faster, or after a second. There are up to 50 plans, and
// building one can take 100 ms.

#include "kernels/cuda/nvidia/dnn_graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "kernels/cuda/trial.h"
#include "kernels/mutex.h"

namespace serin::kernels::cuda {

class Dnn {
 public:
  explicit Dnn(cudnnHandle_t handle) : handle_(handle) {}
  ~Dnn() { cudnnDestroy(handle_); }
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  cudnnHandle_t handle() const SERIN_REQUIRES(mutex) { return handle_; }
  Mutex mutex;

 private:
  const cudnnHandle_t handle_;
};

namespace {

constexpr int64_t kMaxWorkspace = int64_t{256} << 20;

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
    const MutexLock lock(dnn_->mutex);
    if (cudnnSetStream(dnn_->handle(), static_cast<cudaStream_t>(stream.queue)) != CUDNN_STATUS_SUCCESS)
      return "cuDNN: the stream is not accepted";
    const fe::error_t error = graph_->graph().execute_plan_at_index(dnn_->handle(), pointers, stream.scratch, plan_);
    cudnnSetStream(dnn_->handle(), nullptr);  // the queue may go before the next run
    return error.is_good() ? Fault() : Fault(reason_of(error));
  }

  /// Builds and times the plans; false with the reason where none works.
  bool choose(Tactics& tactics, const OpDesc& desc, std::string& why, const SearchLimits& limits) {
    if (const fe::error_t offered = ask_for_plans(); !offered.is_good()) return why = reason_of(offered), false;
    const auto plans = static_cast<int>(graph_->graph().get_execution_plan_count());
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::optional<Operands> operands;
      const int way = tactics.choose(
          graph_->key, plans,
          [&](int plan) {
            if (!operands) operands.emplace(*graph_, desc);
            return time(plan, *operands);
          },
          limits);
      if (way >= 0 && take(way)) return true;
      if (way < 0 && operands && operands->trial.works()) return why = "cuDNN: no plan works", false;
      if (way < 0) break;
      tactics.forget(graph_->key);  // remembered, and no longer to be had
    }
    for (int plan = 0; plan < plans; ++plan) {  // there is no memory to time them: the first that can be built
      if (take(plan)) return true;
    }
    return why = "cuDNN: no plan can be built", false;
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

  fe::error_t ask_for_plans() const {
    const MutexLock lock(dnn_->mutex);
    const fe::error_t error = graph_->ask_for_plans(dnn_->handle());
    return error.is_good() ? graph_->graph().check_support(dnn_->handle()) : error;
  }

  /// Runs go by this plan; false where it cannot be built.
  bool take(int64_t plan) {
    const MutexLock lock(dnn_->mutex);
    fe::graph::Graph& graph = graph_->graph();
    int64_t workspace = 0;
    if (!graph.build_plan_at_index(dnn_->handle(), plan).is_good() || !graph.get_workspace_size_plan_at_index(plan, workspace).is_good())
      return false;
    plan_ = plan, workspace_ = std::max<int64_t>(workspace, 0);
    return true;
  }

  /// Takes the library's lock, which choose() does not hold while it waits for its turn: others measure kernels that run through the library.
  std::optional<double> time(int64_t plan, Operands& operands) const {
    const MutexLock lock(dnn_->mutex);
    fe::graph::Graph& graph = graph_->graph();
    int64_t workspace = 0;
    if (!graph.build_plan_at_index(dnn_->handle(), plan).is_good() || !graph.get_workspace_size_plan_at_index(plan, workspace).is_good() ||
        workspace > kMaxWorkspace || cudnnSetStream(dnn_->handle(), operands.trial.stream()) != CUDNN_STATUS_SUCCESS)
      return std::nullopt;
    const cudnnHandle_t handle = dnn_->handle();
    const auto milliseconds = operands.trial.time(static_cast<size_t>(std::max<int64_t>(workspace, 0)), [&](void* scratch) {
      return graph.execute_plan_at_index(handle, operands.pointers, scratch, plan).is_good();
    });
    cudnnSetStream(dnn_->handle(), nullptr);  // the trial's stream goes with it
    return milliseconds;
  }

  const std::shared_ptr<Dnn> dnn_;
  const std::unique_ptr<DnnGraph> graph_;
  int64_t plan_ = 0, workspace_ = 0;
};

using Mode = fe::PointwiseMode_t;

std::optional<fe::graph::Pointwise_attributes> clip_of(fe::graph::Pointwise_attributes& node, const Epilogue& epilogue) {
  if (epilogue.alpha > epilogue.beta) return std::nullopt;
  return node.set_mode(Mode::RELU_FWD).set_relu_lower_clip(epilogue.alpha).set_relu_upper_clip(epilogue.beta);
}

}  // namespace

DnnGraph::TensorPtr DnnGraph::operand(int64_t i, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  inputs_.push_back(i);
  return graph_.tensor(fe::graph::Tensor_attributes().set_uid(uid_of(i)).set_dim(dims).set_stride(strides));
}

DnnGraph::TensorPtr DnnGraph::sum(const TensorPtr& value, const TensorPtr& operand, const std::vector<int64_t>& dims,
                                  const std::vector<int64_t>& strides) {
  auto added = graph_.pointwise(value, operand, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
  added->set_dim(dims).set_stride(strides);
  return added;
}

void DnnGraph::answer(const TensorPtr& y, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, fe::DataType_t type) {
  y->set_dim(dims).set_stride(strides).set_output(true).set_uid(uid_of(kDnnOutput)).set_data_type(type);
}

fe::error_t DnnGraph::ask_for_plans(cudnnHandle_t handle) {
  fe::error_t error = graph_.validate();
  if (error.is_good()) error = handle ? graph_.build_operation_graph(handle) : graph_.build_operation_graph();
  if (error.is_good()) error = graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
  if (!error.is_good()) return error;
  graph_.deselect_numeric_notes(imprecise);  // among the plans that there are by now
  graph_.deselect_workspace_greater_than(kMaxWorkspace);
  return error;
}

std::optional<fe::DataType_t> dnn_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return fe::DataType_t::FLOAT;
    case DType::kFloat16: return fe::DataType_t::HALF;
    case DType::kBFloat16: return fe::DataType_t::BFLOAT16;
    default: return std::nullopt;
  }
}

std::optional<fe::graph::Pointwise_attributes> dnn_activation(const Epilogue& epilogue) {
  constexpr auto none = std::nullopt;
  fe::graph::Pointwise_attributes node;
  switch (epilogue.activation) {
#define SERIN_UNARY(name, word, alpha, beta, follows, chain, finite, scalar, vector, onednn, cudnn) \
  case UnaryFn::k##name: return cudnn;
#include "kernels/functions.def"
  }
  return none;
}

std::unique_ptr<Kernel> prepare_dnn(const std::shared_ptr<Dnn>& dnn, std::unique_ptr<DnnGraph> graph, Tactics& tactics, const OpDesc& desc,
                                    std::string& why, const SearchLimits& limits) {
  auto kernel = std::make_unique<DnnKernel>(dnn, std::move(graph));
  return kernel->choose(tactics, desc, why, limits) ? std::move(kernel) : nullptr;
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
