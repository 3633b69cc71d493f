#include "tests/gpu/nvidia/fake_dnn.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "tests/gpu/nvidia/fake_dnn_operations.h"
#include "tests/gpu/nvidia/fake_numbers.h"

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  std::atomic<bool> used = false;
};

namespace fake_dnn {

Rules rules;
uint64_t runs = 0, refusals = 0;

fe::error_t refuse(std::string why) {
  ++refusals;
  std::fprintf(stderr, "fake cuDNN: %s\n", why.c_str());
  return {std::move(why), false};
}

}  // namespace fake_dnn

namespace {

using namespace cudnn_frontend;  // NOLINT: the names are the library's
using namespace fake_dnn;        // NOLINT: of the other half of this library
using graph::Tensor_attributes;
using Mode = PointwiseMode_t;

constexpr int64_t kAlignment = 16;

bool fails_now() { return fake::fails_now(rules.calls_before_failure); }

/// A handle has one stream at a time, so it is used by one thread at a time.
class Use {
 public:
  explicit Use(cudnnHandle_t handle) : handle_(handle) {
    if (handle_ && handle_->used.exchange(true)) emulator::fail("two threads use one handle of cuDNN");
  }
  ~Use() {
    if (handle_) handle_->used = false;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  const cudnnHandle_t handle_;
};

int64_t position_of(const Sizes& index, const Sizes& strides) {
  int64_t position = 0;
  for (size_t i = 0; i < index.size(); ++i) position += index[i] * strides[i];
  return position;
}

size_t bytes_of(const Tensor_attributes& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.dim.size(); ++i) last += (tensor.dim[i] - 1) * tensor.stride[i];
  return static_cast<size_t>(last + 1) * size_of(tensor.data_type);
}

/// One operation: its operands, its result, the sizes that the result must have, and the computation.
struct Node {
  std::vector<Tensor> operands;
  Tensor result;
  std::function<fe::error_t(Sizes& dims)> check;
  std::function<Values(const std::vector<Values>&, bool rounds)> compute;
  Mode mode = Mode::NOT_SET;
};

struct Plan {
  int64_t workspace = 0;
  std::vector<NumericalNote_t> notes;
  bool builds = true, runs = true, deselected = false, built = false;
};

}  // namespace

struct cudnn_frontend::graph::Graph::State {
  DataType_t io = DataType_t::NOT_SET, between = DataType_t::NOT_SET, compute = DataType_t::NOT_SET;
  std::vector<Tensor> tensors;  // given from outside
  std::vector<Node> nodes;
  std::vector<Plan> plans;
  enum class Stage { kMade, kValid, kBuilt, kPlanned, kSupported } stage = Stage::kMade;

  Tensor add(Node node) {
    node.result = std::make_shared<Tensor_attributes>();
    nodes.push_back(std::move(node));
    return nodes.back().result;
  }

  fe::error_t complete(Node& node) {
    Sizes dims;
    if (fe::error_t error = node.check(dims); !error.is_good()) return error;
    Tensor_attributes& result = *node.result;
    if (result.dim.empty()) result.dim = dims;
    if (result.dim != dims) return refuse("a result has other sizes than its operation");
    if (result.output && (result.stride.size() != dims.size() || !result.uid)) return refuse("an output without strides or name");
    if (result.data_type == DataType_t::NOT_SET) result.data_type = result.output ? io : between;
    if (!result.output && result.data_type != DataType_t::FLOAT) return refuse("a sum between two operations is rounded to 16 bits");
    return {};
  }

  /// Whether a library has kernels for it.
  bool is_supported() const {
    if (!fake_dnn::rules.fuses && nodes.size() > 1) return false;
    if (fake_dnn::rules.residual_first) return true;
    return !(nodes.size() > 2 && nodes[1].mode == Mode::ADD && nodes[2].mode == Mode::ADD &&
             nodes[1].operands[1]->dim == nodes[1].operands[0]->dim);
  }

  fe::error_t place(const std::unordered_map<int64_t, void*>& pointers, const Tensor_attributes& tensor, void*& at) const {
    const auto found = pointers.find(*tensor.uid);
    if (found == pointers.end() || !found->second) return refuse("an operand is missing");
    if (reinterpret_cast<uintptr_t>(found->second) % kAlignment != 0) return refuse("an operand is not aligned to 16 bytes");
    at = found->second;
    emulator::check_global(at, bytes_of(tensor));
    return {};
  }
};

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (fails_now()) return CUDNN_STATUS_ALLOC_FAILED;
  auto made = std::make_unique<cudnnContext>();
  cudaGetDevice(&made->device);
  *handle = made.release();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (fails_now()) return CUDNN_STATUS_BAD_PARAM;
  const Use use(handle);
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
const char* cudnnGetErrorString(cudnnStatus_t status) { return status == CUDNN_STATUS_ALLOC_FAILED ? "no memory" : "bad parameter"; }
size_t cudnnGetVersion() { return 91900; }

namespace cudnn_frontend::graph {

Graph::Graph() : state_(std::make_unique<State>()) {}
Graph::~Graph() = default;

Graph& Graph::set_io_data_type(DataType_t type) { return state_->io = type, *this; }
Graph& Graph::set_intermediate_data_type(DataType_t type) { return state_->between = type, *this; }
Graph& Graph::set_compute_data_type(DataType_t type) { return state_->compute = type, *this; }

Graph::Tensor Graph::tensor(const Tensor_attributes& attributes) {
  state_->tensors.push_back(std::make_shared<Tensor_attributes>(attributes));
  state_->tensors.back()->input = true;
  return state_->tensors.back();
}

Graph::Tensor Graph::pointwise(Tensor x, Pointwise_attributes attributes) {
  const auto check = [x, attributes](Sizes& dims) {
    if (attributes.mode == Mode::ADD || attributes.mode == Mode::NOT_SET) return refuse("a function of one operand that needs two");
    dims = x->dim;
    return fe::error_t();
  };
  const auto compute = [attributes](const std::vector<Values>& in, bool) {
    Values y = in[0];
    for (double& each : y.at) each = activated(attributes, each);
    return y;
  };
  return state_->add({{x}, nullptr, check, compute, attributes.mode});
}

Graph::Tensor Graph::pointwise(Tensor x, Tensor other, Pointwise_attributes attributes) {
  const auto check = [x, other, attributes](Sizes& dims) {
    dims = x->dim;
    return attributes.mode == Mode::ADD ? check_broadcast(x, other) : refuse("a function of two operands that is no addition");
  };
  const auto compute = [](const std::vector<Values>& in, bool) {
    Values y = in[0];
    each_index(y.dims, [&](const Sizes& index, size_t at) { y.at[at] += in[1](index); });
    return y;
  };
  return state_->add({{x, other}, nullptr, check, compute, attributes.mode});
}

Graph::Tensor Graph::conv_fprop(Tensor x, Tensor weight, Conv_fprop_attributes attributes) {
  const auto check = [x, weight, attributes](Sizes& dims) { return check_conv(x, weight, attributes, dims); };
  const auto compute = [x, weight, attributes](const std::vector<Values>& in, bool rounds) {
    Sizes dims;
    static_cast<void>(check_conv(x, weight, attributes, dims));
    return convolve(in[0], in[1], attributes, dims, rounds);
  };
  return state_->add({{x, weight}, nullptr, check, compute});
}

Graph::Tensor Graph::matmul(Tensor a, Tensor b, Matmul_attributes) {
  const auto check = [a, b](Sizes& dims) { return check_matmul(a, b, dims); };
  const auto compute = [a, b](const std::vector<Values>& in, bool) {
    Sizes dims;
    static_cast<void>(check_matmul(a, b, dims));
    return multiply(in[0], in[1], dims);
  };
  return state_->add({{a, b}, nullptr, check, compute});
}

std::array<Graph::Tensor, 2> Graph::sdpa(Tensor q, Tensor k, Tensor v, SDPA_attributes attributes) {
  const auto check = [q, k, v, attributes](Sizes& dims) { return check_sdpa(q, k, v, attributes, dims); };
  const auto compute = [q, k, v, attributes](const std::vector<Values>& in, bool) {
    Sizes dims;
    static_cast<void>(check_sdpa(q, k, v, attributes, dims));
    return attend(in[0], in[1], in[2], attributes, dims);
  };
  return {state_->add({{q, k, v}, nullptr, check, compute}), nullptr};
}

fe::error_t Graph::validate() {
  if (fails_now()) return refuse("this call fails");
  if (state_->io == DataType_t::NOT_SET || state_->compute != DataType_t::FLOAT)
    return refuse("a graph without types, or that adds in 16 bits");
  std::set<int64_t> names;
  for (const Tensor& tensor : state_->tensors) {
    if (!tensor->uid || !names.insert(*tensor->uid).second) return refuse("a tensor without a name, or two with one");
    if (tensor->dim.size() != tensor->stride.size() || tensor->dim.size() < 3) return refuse("a tensor without sizes or strides");
    for (size_t i = 0; i < tensor->dim.size(); ++i)
      if (tensor->dim[i] <= 0 || tensor->stride[i] <= 0) return refuse("a tensor with a size or a stride of nothing");
    if (tensor->data_type == DataType_t::NOT_SET) tensor->data_type = state_->io;
  }
  for (Node& node : state_->nodes)
    if (fe::error_t error = state_->complete(node); !error.is_good()) return error;
  if (state_->nodes.empty() || !state_->nodes.back().result->output) return refuse("a graph without a result");
  state_->stage = State::Stage::kValid;
  return {};
}

fe::error_t Graph::build_operation_graph(cudnnHandle_t handle) {
  const Use use(handle);
  return handle ? build_operation_graph() : refuse("no handle");
}
fe::error_t Graph::build_operation_graph() {
  if (fails_now()) return refuse("this call fails");
  if (state_->stage != State::Stage::kValid) return refuse("a graph is built that was not validated");
  state_->stage = State::Stage::kBuilt;
  return {};
}

fe::error_t Graph::create_execution_plans(const std::vector<HeurMode_t>& modes) {
  if (fails_now()) return refuse("this call fails");
  if (state_->stage != State::Stage::kBuilt || modes.empty()) return refuse("plans are asked for before the graph is built");
  if (!state_->is_supported()) return {"no engine for this graph", false};
  state_->plans = {{.workspace = 0, .notes = {NumericalNote_t::TENSOR_CORE}},
                   {.workspace = int64_t{1} << 40},
                   {.workspace = 4096, .builds = false},
                   {.workspace = 64, .runs = false},
                   {.workspace = 70000}};
  if (rules.tensor_cores_alone) state_->plans.resize(1);
  state_->stage = State::Stage::kPlanned;
  return {};
}

Graph& Graph::deselect_numeric_notes(const std::vector<NumericalNote_t>& notes) {
  for (Plan& plan : state_->plans)
    for (const NumericalNote_t note : notes) plan.deselected = plan.deselected || std::ranges::find(plan.notes, note) != plan.notes.end();
  return *this;
}
Graph& Graph::deselect_workspace_greater_than(int64_t bytes) {
  for (Plan& plan : state_->plans) plan.deselected = plan.deselected || plan.workspace > bytes;
  return *this;
}

fe::error_t Graph::check_support(cudnnHandle_t handle) {
  const Use use(handle);
  if (fails_now()) return refuse("this call fails");
  if (state_->stage != State::Stage::kPlanned) return refuse("support is asked for before there are plans");
  state_->stage = State::Stage::kSupported;
  return {};
}

int64_t Graph::get_execution_plan_count() const { return static_cast<int64_t>(state_->plans.size()); }

fe::error_t Graph::build_plan_at_index(cudnnHandle_t handle, int64_t index) {
  const Use use(handle);
  if (fails_now()) return refuse("this call fails");
  if (state_->stage != State::Stage::kSupported || index < 0 || index >= get_execution_plan_count()) return refuse("there is no such plan");
  Plan& plan = state_->plans[static_cast<size_t>(index)];
  plan.built = plan.builds && !plan.deselected;
  return plan.built ? fe::error_t() : fe::error_t{"the plan is deselected, or cannot be built", false};
}

fe::error_t Graph::get_workspace_size_plan_at_index(int64_t index, int64_t& bytes) const {
  if (fails_now()) return refuse("this call fails");
  bytes = state_->plans[static_cast<size_t>(index)].workspace;
  return {};
}

fe::error_t Graph::execute_plan_at_index(cudnnHandle_t handle, std::unordered_map<int64_t, void*>& pointers, void* workspace,
                                         int64_t index) const {
  const Use use(handle);
  if (fails_now()) return refuse("this call fails");
  const Plan& plan = state_->plans[static_cast<size_t>(index)];
  if (!plan.built) return refuse("a plan runs that was not built");
  if (!handle->stream || handle->stream->device != handle->device) return refuse("no stream, or one of another device");
  if (!plan.runs) return {"the plan does not run", false};
  std::map<const Tensor_attributes*, void*> places;
  for (const Tensor& tensor : state_->tensors)
    if (fe::error_t error = state_->place(pointers, *tensor, places[tensor.get()]); !error.is_good()) return error;
  const Tensor_attributes* const result = state_->nodes.back().result.get();
  if (fe::error_t error = state_->place(pointers, *result, places[result]); !error.is_good()) return error;
  if (plan.workspace > 0) emulator::check_global(workspace, static_cast<size_t>(plan.workspace));
  const bool rounds = !plan.notes.empty() && state_->io == DataType_t::FLOAT;
  const cudaError_t submitted = emulator::submit(handle->stream, [=, nodes = state_->nodes, bytes = plan.workspace] {
    ++fake_dnn::runs;
    if (bytes > 0) std::memset(workspace, 0x7F, static_cast<size_t>(bytes));
    std::map<const Tensor_attributes*, Values> values;
    for (const auto& [tensor, at] : places) {
      if (!tensor->input) continue;
      Values& read = values.emplace(tensor, Values(tensor->dim)).first->second;
      each_index(tensor->dim, [&, t = tensor, p = at](const Sizes& i, size_t n) {
        read.at[n] = fake::load(dtype_of(t->data_type), p, position_of(i, t->stride));
      });
    }
    for (const Node& node : nodes) {
      std::vector<Values> in;
      for (const Tensor& operand : node.operands) in.push_back(values.at(operand.get()));
      values[node.result.get()] = node.compute(in, rounds);
    }
    const Values& y = values.at(result);
    each_index(result->dim, [&](const Sizes& i, size_t n) {
      fake::store(dtype_of(result->data_type), places.at(result), position_of(i, result->stride), y.at[n]);
    });
  });
  return submitted == cudaSuccess ? fe::error_t() : refuse("the stream does not take it");
}

}  // namespace cudnn_frontend::graph
