// solo.h: lowers and prepares a single node and runs it with its own memory for every tensor.
//
//   SERIN_TRY(const Solo solo, Solo::make(graph, node, {backend, weights, threads, max_bytes}));   // operand types known, results inferred
//   SERIN_TRY(const std::vector<graph::ConstantPtr> results, solo.run(operands));
//
// It serves nodes that no plan can contain: results whose size depends on the data, strings, and nodes computed while a model is loaded
// (Folder).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "runtime/base/result.h"
#include "runtime/engine/program/program.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

struct SoloContext {
  const kernels::Backend& backend;
  kernels::PackedWeights& weights;
  int threads = 1;
  size_t max_bytes = SIZE_MAX;  ///< of one result, at its bound
  bool as_weights = false;      ///< results get the memory of weights (kernels/weight_memory.h), which the heap does not keep
};

class Solo {
 public:
  /// kUnsupported if no kernel computes it, kTooLarge, or the error of the lowering. No error names the node.
  static Result<Solo> make(const graph::Graph& graph, const graph::Node& node, const SoloContext& context);

  /// `operands` by position; those that were constants when this was made are not read. Views share their operand's memory.
  Result<std::vector<graph::ConstantPtr>> run(std::span<const graph::ConstantPtr> operands, kernels::Workers* workers = nullptr) const;

 private:
  struct Call {
    kernels::Prepared prepared;
    size_t step = 0;
  };
  struct Memory;

  Status define(const graph::Graph& graph, const graph::Node& node, std::vector<TensorId>& tensors, size_t max_bytes);
  Status prepare(const SoloContext& context);
  FreshTensor fresh(DType dtype, const Shape& shape) const;
  Status run_call(const Call& call, Memory& memory, kernels::Workers* workers) const;

  Program program_;
  std::vector<Call> calls_;
  std::vector<TensorId> inputs_, outputs_;  // of the node, by position; kNoTensor where absent
  std::vector<bool> boundless_;             // by tensor: no bound is known, so the kernel reports the size first
  size_t max_bytes_ = SIZE_MAX;
  bool as_weights_ = false;
};

}  // namespace serin::engine
