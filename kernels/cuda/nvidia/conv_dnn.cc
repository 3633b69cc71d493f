// conv_dnn.cc: Conv by cuDNN's graph API: convolution, bias, residual and activation as one graph, which the library compiles or refuses as a whole.
//
// Every plan that the library offers for a graph is timed when the kernel is prepared, on memory of its own; the fastest is kept and remembered
// (tactics.h). f32 keeps its precision: engines that round operands for tensor cores are left out unless tf32 was asked for. Between the operators of a
// graph everything is f32 and never stored.

#include "kernels/cuda/nvidia/conv_dnn.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "kernels/indexing.h"

namespace serin::kernels::cuda {

namespace fe = cudnn_frontend;

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
constexpr int kRuns = 5;

/// Names of the operands within a graph.
enum Operand : int64_t { kX = 1, kWeight, kBias, kResidual, kY };
using Pointers = std::unordered_map<int64_t, void*>;
using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;

std::string reason_of(fe::error_t error) { return "cuDNN: " + error.get_message(); }

std::optional<fe::DataType_t> type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return fe::DataType_t::FLOAT;
    case DType::kFloat16: return fe::DataType_t::HALF;
    case DType::kBFloat16: return fe::DataType_t::BFLOAT16;
    default: return std::nullopt;
  }
}

/// The activation as a pointwise node; nothing where the library has none, an empty mode for Identity.
std::optional<fe::graph::Pointwise_attributes> activation_of(const Epilogue& epilogue) {
  fe::graph::Pointwise_attributes node;
  switch (epilogue.activation) {
    case UnaryFn::kRelu: return node.set_mode(fe::PointwiseMode_t::RELU_FWD);
    case UnaryFn::kClip:
      if (epilogue.alpha > epilogue.beta) return std::nullopt;
      return node.set_mode(fe::PointwiseMode_t::RELU_FWD).set_relu_lower_clip(epilogue.alpha).set_relu_upper_clip(epilogue.beta);
    case UnaryFn::kLeakyRelu: return node.set_mode(fe::PointwiseMode_t::RELU_FWD).set_relu_lower_clip_slope(epilogue.alpha);
    case UnaryFn::kSigmoid: return node.set_mode(fe::PointwiseMode_t::SIGMOID_FWD);
    case UnaryFn::kTanh: return node.set_mode(fe::PointwiseMode_t::TANH_FWD);
    case UnaryFn::kSilu: return node.set_mode(fe::PointwiseMode_t::SWISH_FWD).set_swish_beta(1.f);
    case UnaryFn::kGelu: return node.set_mode(fe::PointwiseMode_t::GELU_FWD);
    case UnaryFn::kGeluTanh: return node.set_mode(fe::PointwiseMode_t::GELU_APPROX_TANH_FWD);
    default: return std::nullopt;
  }
}

std::vector<int64_t> dims(const Shape& shape) { return {shape.begin(), shape.end()}; }
std::vector<int64_t> dense_strides(const Shape& shape) {
  const Strides strides = row_major_strides(shape);
  return {strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(shape.rank())};
}

struct ConvGraph {
  fe::graph::Graph graph;
  std::string key;

  TensorPtr operand(Operand name, const Shape& shape) {
    return graph.tensor(fe::graph::Tensor_attributes().set_uid(name).set_dim(dims(shape)).set_stride(dense_strides(shape)));
  }
};

/// y = act(conv(x, w) + bias + residual). Nothing, with the reason, where the library cannot say it.
bool build(ConvGraph& made, const OpDesc& desc, bool tf32, std::string& why) {
  const auto& op = std::get<Conv>(desc.op);
  const auto type = type_of(desc.outputs[0].dtype);
  const auto no = [&why](std::string reason) {
    why = std::move(reason);
    return false;
  };
  if (!type) return no("cuDNN convolves f32, f16 and bf16 here");
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != desc.outputs[0].dtype) return no("inputs differ in dtype");
  }
  const Shape &x = desc.inputs[0].shape, &weight = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  const size_t axes = op.strides.size();
  if (axes != 2 && axes != 3) return no("only two or three spatial axes");
  if (y.elements() == 0 || x.elements() == 0) return no("there are no elements");
  if (op.epilogue.residual && desc.inputs.back().shape != y) return no("the residual broadcasts");

  fe::graph::Graph& graph = made.graph;
  graph.set_io_data_type(*type).set_intermediate_data_type(fe::DataType_t::FLOAT).set_compute_data_type(fe::DataType_t::FLOAT);
  if (*type == fe::DataType_t::FLOAT && !tf32) {
    graph.deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE, fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                                  fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION, fe::NumericalNote_t::FFT});
  }
  const auto axes_of = [](const std::vector<int64_t>& all, size_t first, size_t count) {
    return std::vector<int64_t>(all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(first + count));
  };
  TensorPtr value = graph.conv_fprop(made.operand(kX, x), made.operand(kWeight, weight),
                                     fe::graph::Conv_fprop_attributes()
                                         .set_pre_padding(axes_of(op.pads, 0, axes))
                                         .set_post_padding(axes_of(op.pads, axes, axes))
                                         .set_stride(op.strides)
                                         .set_dilation(op.dilations));
  value->set_dim(dims(y)).set_stride(dense_strides(y));
  const auto add = [&](TensorPtr operand) {
    value = graph.pointwise(value, operand, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    value->set_dim(dims(y)).set_stride(dense_strides(y));
  };
  if (op.bias) {
    Shape along{1, y[1]};
    for (size_t axis = 0; axis < axes; ++axis) along.push_back(1);
    add(made.operand(kBias, along));
  }
  if (op.epilogue.residual) add(made.operand(kResidual, y));
  if (op.epilogue.activation != UnaryFn::kIdentity) {
    const auto activation = activation_of(op.epilogue);
    if (!activation) return no("cuDNN has no such activation");
    value = graph.pointwise(value, *activation);
    value->set_dim(dims(y)).set_stride(dense_strides(y));
  }
  value->set_output(true).set_uid(kY).set_data_type(*type);

  made.key = "conv " + std::string(dtype_name(desc.outputs[0].dtype)) + (tf32 ? " tf32 " : " ") + x.str() + weight.str() + y.str();
  for (const auto* list : {&op.strides, &op.dilations, &op.pads}) {
    for (const int64_t each : *list) made.key += " " + std::to_string(each);
  }
  made.key +=
      " " + std::to_string(op.bias) + std::to_string(op.epilogue.residual) + " " + std::to_string(static_cast<int>(op.epilogue.activation));
  return true;
}

class DnnKernel final : public Kernel {
 public:
  DnnKernel(std::shared_ptr<Dnn> dnn, std::unique_ptr<ConvGraph> graph, const OpDesc& desc)
      : dnn_(std::move(dnn)),
        graph_(std::move(graph)),
        bias_(std::get<Conv>(desc.op).bias),
        residual_(std::get<Conv>(desc.op).epilogue.residual) {}

  std::string_view name() const override { return "cudnn"; }
  size_t scratch_bytes() const override { return static_cast<size_t>(workspace_); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    Pointers pointers{{kX, in[0].data}, {kWeight, in[1].data}, {kY, out[0].data}};
    if (bias_) pointers[kBias] = in[2].data;
    if (residual_) pointers[kResidual] = in.back().data;
    return execute(plan_, static_cast<cudaStream_t>(stream.queue), pointers, stream.scratch);
  }

  /// Builds and times the plans; false with the reason where none works.
  bool choose(Tactics& tactics, const OpDesc& desc, std::string& why) {
    const std::lock_guard lock(dnn_->mutex());
    fe::graph::Graph& graph = graph_->graph;
    fe::error_t error = graph.validate();
    if (error.is_good()) error = graph.build_operation_graph(dnn_->handle());
    if (error.is_good()) error = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (error.is_good()) error = graph.check_support(dnn_->handle());
    if (!error.is_good()) return why = reason_of(error), false;
    graph.deselect_workspace_greater_than(kMaxWorkspace);
    const int64_t plans = std::min(graph.get_execution_plan_count(), kMaxPlans);
    std::vector<void*> memory;
    const auto allocate = [&memory](size_t bytes) {
      void* pointer = nullptr;
      if (cudaMalloc(&pointer, std::max<size_t>(bytes, 1)) == cudaSuccess) memory.push_back(pointer);
      return pointer;
    };
    Pointers pointers;
    bool measured = false;
    const int way = tactics.choose(graph_->key, static_cast<int>(plans), [&](int plan) -> std::optional<double> {
      if (!std::exchange(measured, true)) pointers = operands(desc, allocate);
      return time(plan, pointers);
    });
    for (void* each : memory) cudaFree(each);
    cudaGetLastError();
    if (way < 0) return why = "cuDNN: no plan works", false;
    plan_ = way;
    if (const auto built = graph.build_plan_at_index(dnn_->handle(), plan_); !built.is_good()) return why = reason_of(built), false;
    if (const auto known = graph.get_workspace_size_plan_at_index(plan_, workspace_); !known.is_good())
      return why = reason_of(known), false;
    return true;
  }

 private:
  template <class Allocate>
  Pointers operands(const OpDesc& desc, Allocate&& allocate) const {
    const auto bytes = [](const TensorDesc& tensor) { return static_cast<size_t>(tensor.shape.elements()) * dtype_size(tensor.dtype); };
    Pointers pointers{
        {kX, allocate(bytes(desc.inputs[0]))}, {kWeight, allocate(bytes(desc.inputs[1]))}, {kY, allocate(bytes(desc.outputs[0]))}};
    if (bias_) pointers[kBias] = allocate(bytes(desc.inputs[2]));
    if (residual_) pointers[kResidual] = allocate(bytes(desc.inputs.back()));
    for (const auto& [name, pointer] : pointers) {
      const TensorDesc& tensor = name == kY        ? desc.outputs[0]
                                 : name == kX      ? desc.inputs[0]
                                 : name == kWeight ? desc.inputs[1]
                                                   : desc.inputs.back();
      if (pointer && name != kBias) cudaMemset(pointer, 0x3C, bytes(tensor));  // small numbers: zeros would run faster than what comes
    }
    return pointers;
  }

  std::optional<double> time(int64_t plan, Pointers& pointers) const {
    fe::graph::Graph& graph = graph_->graph;
    int64_t workspace = 0;
    if (!graph.build_plan_at_index(dnn_->handle(), plan).is_good() || !graph.get_workspace_size_plan_at_index(plan, workspace).is_good() ||
        workspace > kMaxWorkspace)
      return std::nullopt;
    void* scratch = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;
    float milliseconds = 0;
    const auto run = [&] { return graph.execute_plan_at_index(dnn_->handle(), pointers, scratch, plan).is_good(); };
    bool works = cudaMalloc(&scratch, static_cast<size_t>(std::max<int64_t>(workspace, 1))) == cudaSuccess &&
                 cudnnSetStream(dnn_->handle(), nullptr) == CUDNN_STATUS_SUCCESS && run() && cudaEventCreate(&begin) == cudaSuccess &&
                 cudaEventCreate(&end) == cudaSuccess && cudaEventRecord(begin, nullptr) == cudaSuccess;
    for (int i = 0; works && i < kRuns; ++i) works = run();
    works = works && cudaEventRecord(end, nullptr) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess &&
            cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess;
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
    cudaFree(scratch);
    return works ? std::optional<double>(milliseconds / kRuns) : std::nullopt;
  }

  Fault execute(int64_t plan, cudaStream_t stream, Pointers& pointers, void* scratch) const {
    const std::lock_guard lock(dnn_->mutex());
    if (cudnnSetStream(dnn_->handle(), stream) != CUDNN_STATUS_SUCCESS) return "cuDNN: the stream is not taken";
    const fe::error_t error = graph_->graph.execute_plan_at_index(dnn_->handle(), pointers, scratch, plan);
    return error.is_good() ? kOk : Fault(reason_of(error));
  }

  const std::shared_ptr<Dnn> dnn_;
  const std::unique_ptr<ConvGraph> graph_;
  const bool bias_, residual_;
  int64_t plan_ = 0, workspace_ = 0;
};

}  // namespace

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

std::unique_ptr<Kernel> prepare_conv_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc, PrepareContext&,
                                         std::string& why) {
  auto graph = std::make_unique<ConvGraph>();
  if (!build(*graph, desc, libraries.tf32, why)) return nullptr;
  auto kernel = std::make_unique<DnnKernel>(dnn, std::move(graph), desc);
  return kernel->choose(*libraries.tactics, desc, why) ? std::move(kernel) : nullptr;
}

}  // namespace serin::kernels::cuda
