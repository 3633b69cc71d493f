// dnn_graph.h: One cuDNN graph as a kernel, compiled or refused as a whole.
//
// Its plans are timed; the fastest is kept and remembered (kernels/cuda/tactics.h).
//
//   auto graph = std::make_unique<DnnGraph>();
//   auto x = graph->operand(0, dims, strides);                     // the kernel's input 0
//   DnnGraph::answer(graph->graph().conv_fprop(x, ...), dims, strides, type);
//   return prepare_dnn(dnn, std::move(graph), *libraries.tactics, desc, why);
//
// Only for the files that build graphs: cudnn-frontend takes most of a minute to compile.
#pragma once

#include <cudnn_frontend.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/nvidia/dnn.h"
#include "kernels/cuda/nvidia/library.h"

namespace serin::kernels::cuda {

namespace fe = cudnn_frontend;

class DnnGraph {
 public:
  using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;

  /// The tensor at the kernel's input `i`.
  TensorPtr operand(int64_t i, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides);
  /// value + operand, as large as `value`.
  TensorPtr sum(const TensorPtr& value, const TensorPtr& operand, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides);
  /// The graph's result.
  static void answer(const TensorPtr& y, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, fe::DataType_t type);
  fe::graph::Graph& graph() { return graph_; }
  const std::vector<int64_t>& inputs() const { return inputs_; }
  /// Completes the graph: requests the library's plans, and excludes those not allowed. No handle: for the device set in graph().
  fe::error_t ask_for_plans(cudnnHandle_t handle);

  std::string key;                             ///< of the choice among its plans
  std::vector<fe::NumericalNote_t> imprecise;  ///< plans that have one of these notes are left out

 private:
  fe::graph::Graph graph_;
  std::vector<int64_t> inputs_;
};

/// f32, f16 and bf16.
std::optional<fe::DataType_t> dnn_type(DType dtype);

/// The activation as a pointwise node; nothing where the library has none, and for Identity.
std::optional<fe::graph::Pointwise_attributes> dnn_activation(const Epilogue& epilogue);

/// Plans that the library has compiled, and plans that it compiles when they are built, which takes far longer than a measurement.
inline constexpr SearchLimits kSearchReady{.measured = 16, .in_vain = 4, .time = std::chrono::seconds(1)};
inline constexpr SearchLimits kSearchCompiled{.measured = 4, .in_vain = 2, .time = std::chrono::milliseconds(300)};

/// Null, with the reason in `why`, if the library has no plan for the graph.
std::unique_ptr<Kernel> prepare_dnn(const std::shared_ptr<Dnn>& dnn, std::unique_ptr<DnnGraph> graph, Tactics& tactics, const OpDesc& desc,
                                    std::string& why, const SearchLimits& limits = kSearchReady);

}  // namespace serin::kernels::cuda
