// program.h: a graph lowered for one bucket of shapes: tensors with known sizes, and the steps that compute them.
//
//   graph::Graph  --lower()-->  Program  --Plan-->  offsets in the arena, prepared kernels
//
// A step is one kernel (or an If with its bodies). A reshape is not a step: its result is a view, another shape on the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/op.h"
#include "kernels/tensor.h"
#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

using TensorId = int32_t;
inline constexpr TensorId kNoTensor = -1;

/// Says when the size of a tensor is known.
enum class Storage : uint8_t {
  kFixed,    ///< at planning
  kBounded,  ///< during the run, with a bound known at planning (NonZero): planned at the bound
  kDynamic,  ///< during the run, without a bound: never in a plan, the graph is interpreted (stage.h)
};
std::string_view storage_name(Storage storage);

/// The memory of a tensor. Kernels of a device read and write only the device's memory, all others only the host's.
enum class Memory : uint8_t { kHost, kDevice };

/// A dimension that depends on the data: fixed + sum(factor * size of symbol). The symbols are numbered within a Program.
struct BoundedDim {
  size_t axis = 0;
  int64_t fixed = 0;
  std::vector<std::pair<int, int64_t>> terms;  ///< symbol, factor
};

struct Tensor {
  std::string name = {};
  DType dtype = DType::kUndefined;
  Shape shape = {};  ///< the upper bound if `storage` is kBounded
  Storage storage = Storage::kFixed;
  std::vector<BoundedDim> bounded = {};  ///< the axes that depend on the data
  graph::ConstantPtr constant = {};      ///< set if known at load
  TensorId base = kNoTensor;             ///< base of a view: the same bytes as that tensor, from byte `offset`
  size_t offset = 0;
  Memory memory = Memory::kHost;  ///< the same as that of its root

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtype_size(dtype); }
};

struct Program;

struct Step {
  std::string node;  ///< the graph's name, for messages: "conv1+bn1+relu1"
  graph::Op op = graph::Op::kIdentity;
  kernels::Op kernel = {};
  std::vector<TensorId> inputs = {}, outputs = {};  ///< an input may be kNoTensor: absent
  /// If: then, else; null if one is never taken. inputs[0] is the condition; the rest are the values that the bodies read.
  std::vector<std::shared_ptr<Program>> bodies = {};
  std::string label() const;  ///< "node 'conv1' (Conv)"
};

struct Program {
  std::vector<Tensor> tensors;
  std::vector<Step> steps;                ///< in the order of execution
  std::vector<TensorId> inputs, outputs;  ///< an output is never an input, a constant or a view: those were copied
  std::vector<std::string> symbols;       ///< sizes that depend on the data, by the graph's names
  /// Inputs and outputs that pass as a whole through a tensor of the host's arena on their way to or from a device (placement.h). Each pair
  /// is the caller's tensor and the arena's.
  std::vector<std::pair<TensorId, TensorId>> staged;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }
  /// Returns the tensor whose bytes `id` shows, and the first byte.
  std::pair<TensorId, size_t> root(TensorId id) const;
};

class Folder;

/// Lowers a graph whose input dimensions are bound. `folder` computes nodes that only constants feed. kUnsupported names every node that
/// cannot be lowered; kInvalidArgument if the graph contradicts itself.
Result<Program> lower(const graph::Graph& graph, const Folder& folder);

}  // namespace serin::engine
