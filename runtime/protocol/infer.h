// infer.h: an inference request and its answer, independent of the protocol. The codecs read into and write from these types.
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

/// A list with one element for each tensor of a request. It has room in place for as many tensors as most models have, without an
/// allocation.
template <class T>
using Few = boost::container::small_vector<T, 16>;

/// An input or output of a model as clients see it; -1 if any size is accepted.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  bool ranked = true;                               ///< false: any number of dimensions is accepted, and `shape` is ignored
  std::vector<std::string> labels = {};             ///< labels of an output's classes
  std::string alias = {};                           ///< another name, used by Paddle's clients; empty: none
  std::shared_ptr<const TensorView> standard = {};  ///< value of an input that a request omits; null: the input is required
  bool examples = false;                            ///< elements are serialized tf.Example messages, which the model parses
  bool body = false;                                ///< the body of an HTTP request may be the only element: a picture, a sentence

  /// Whether a tensor of that shape can be this one.
  bool takes(const Shape& tensor) const {
    bool fits = !ranked || tensor.rank() == shape.rank();
    for (size_t axis = 0; fits && ranked && axis < tensor.rank(); ++axis) fits = shape[axis] < 0 || shape[axis] == tensor[axis];
    return fits;
  }

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

struct Signature {
  std::string model;  ///< name for messages: "model 'digits' version 3"
  std::vector<TensorSpec> inputs, outputs;
  std::string name = {};    ///< of a model with several signatures, for protocols that know them; empty: it has one
  std::string method = {};  ///< TensorFlow's "tensorflow/serving/classify", for example; empty: it says none
};

/// Limits of one request; the limit of the body is the HTTP server's.
struct RequestLimits {
  size_t json_depth = 100;
  /// Decoded bytes of all inputs together; separate from the body limit, because INT8 as JSON text is longer than decoded.
  size_t tensor_bytes = size_t{256} << 20;
  std::shared_ptr<MemoryBudget> memory;  ///< budget for inputs; null: unlimited
  size_t id_bytes = 1024;
  const SharedRegions* shared = nullptr;  ///< regions that tensors may use; null: none
};

/// Limit for lists in a message. Two bytes may encode one entry, and no model has so many tensors.
inline constexpr size_t kMostEntries = 65'536;

struct WantedOutput {
  size_t index = 0;                 ///< index into the signature's outputs
  bool binary = false;              ///< as bytes after the JSON
  int64_t classes = 0;              ///< not 0: that many highest elements replace the tensor (classification.h)
  SharedRangePtr shared = nullptr;  ///< destination instead of the answer
};

/// The sequence of a request, by number or by name; with neither, it belongs to none.
struct SequencePlace {
  uint64_t number = 0;
  std::string name;
  bool start = false, end = false;  ///< the first or last request of the sequence

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
  std::vector<std::vector<std::string>> texts;  ///< by input: the elements of BYTES inputs, which their views point to
  MemoryBudget::Share share;                    ///< share of the budget for both; it moves with them
  std::vector<WantedOutput> outputs;            ///< in the requested order; all outputs if none is named
  int64_t timeout_us = 0;                       ///< parameter `timeout`; 0: none
  uint64_t priority = 0;                        ///< parameter `priority`: 1 goes first; 0: the model's own default
  SequencePlace sequence;                       ///< parameters `sequence_id`, `sequence_start`, `sequence_end`

  /// Resets everything except the memory.
  void clear();
};

/// Releases memory that is too large to keep for the next request.
void trim(AlignedBuffer& memory, std::vector<std::vector<std::string>>& texts);

struct NamedTensor {
  std::string_view name;
  TensorView tensor;
  bool binary = false;              ///< as bytes after the JSON
  SharedRangePtr shared = nullptr;  ///< its destination; the answer names it and omits the data
  std::string_view alias = {};      ///< TensorSpec::alias
};

struct InferResponse {
  std::string_view model, version, id;  ///< id empty: not echoed
  std::span<const NamedTensor> outputs;
};

}  // namespace serin::protocol
