// infer.h: a request for inference and its answer, whatever protocol they came by: what the codecs read into and write from.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/memory_budget.h"
#include "runtime/base/recycler.h"
#include "runtime/protocol/tensor/shared_range.h"

namespace serin::protocol {

/// A list of what a request has one of for each tensor. So many as most models have lie in place: no memory is taken for them.
template <class T>
using Few = boost::container::small_vector<T, 16>;

/// An input or output of a model as clients see it; -1 where any size is taken.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  bool ranked = true;                               ///< false: any number of dimensions is taken, `shape` says nothing
  std::vector<std::string> labels = {};             ///< of the classes of an output
  std::string alias = {};                           ///< another name that Paddle's clients know it by; empty: none
  std::shared_ptr<const TensorView> standard = {};  ///< what an input is that a request leaves out; null: each brings it

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

struct Signature {
  std::string model;  ///< as messages name it: "model 'digits' version 3"
  std::vector<TensorSpec> inputs, outputs;
};

/// Most that one request may ask for; the body limit is the HTTP server's.
struct RequestLimits {
  size_t json_depth = 100;
  size_t tensor_bytes = size_t{256} << 20;  ///< of all inputs together once decoded: INT8 as JSON text widens, so it is bounded by itself
  std::shared_ptr<MemoryBudget> memory;     ///< that inputs take theirs from; null: they may have it
  size_t id_bytes = 1024;
  const SharedRegions* shared = nullptr;  ///< that tensors may lie in; null: none
};

/// Of a list in a message: two bytes may stand for one, and none has so many tensors.
inline constexpr size_t kMostEntries = 65'536;

struct WantedOutput {
  size_t index = 0;                 ///< into the signature's outputs
  bool binary = false;              ///< as bytes behind the JSON
  int64_t classes = 0;              ///< not 0: in place of the tensor its so many highest elements (classification.h)
  SharedRangePtr shared = nullptr;  ///< where it is to be put instead of into the answer
};

/// The sequence that a request belongs to, by a number or by a name; by neither: to none.
struct SequencePlace {
  uint64_t number = 0;
  std::string name;
  bool start = false, end = false;  ///< the first of it, the last

  bool any() const { return number != 0 || !name.empty(); }
  void clear() {
    number = 0;
    name.clear();
    start = end = false;
  }
};

struct InferRequest {
  std::string id;
  std::vector<TensorView> inputs;  ///< in the signature's order, dense, in `memory`
  AlignedBuffer memory;
  std::vector<std::vector<std::string>> texts;  ///< by input: the elements of those that are BYTES, which their views point to
  MemoryBudget::Share share;                    ///< of what both take; goes where they go
  std::vector<WantedOutput> outputs;            ///< in the order asked for; all of them when none were named
  int64_t timeout_us = 0;                       ///< parameter `timeout`; 0: none
  uint64_t priority = 0;                        ///< parameter `priority`: 1 goes first; 0: the model's own default
  SequencePlace sequence;                       ///< parameters `sequence_id`, `sequence_start`, `sequence_end`

  /// As new, but for the memory.
  void clear();
};

/// Lets go of what is too large to be kept for the next request.
void trim(AlignedBuffer& memory, std::vector<std::vector<std::string>>& texts);

struct NamedTensor {
  std::string_view name;
  TensorView tensor;
  bool binary = false;              ///< as bytes behind the JSON
  SharedRangePtr shared = nullptr;  ///< where it was put: the answer says so, and has none of it
  std::string_view alias = {};      ///< TensorSpec::alias
};

struct InferResponse {
  std::string_view model, version, id;  ///< id empty: not echoed
  std::span<const NamedTensor> outputs;
};

}  // namespace serin::protocol
