// step.h: a step before a model makes the model's inputs from an element that a client sent; one after it makes the clients' outputs.
//
// A step sees one row of a request at a time, so no axis of its tensors counts rows. Steps are immutable and thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/result.h"
#include "runtime/steps/vision/placement.h"

namespace serin::steps {

/// A tensor of the model or of its clients, for one row; -1 for a size that is open.
struct TensorFacts {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;

  friend bool operator==(const TensorFacts&, const TensorFacts&) = default;
};

/// Null: none has that name.
inline const TensorFacts* find_tensor(std::span<const TensorFacts> tensors, std::string_view name) {
  for (const TensorFacts& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

/// A tensor that a step made, with its memory.
struct Made {
  DType dtype = DType::kUndefined;
  Shape shape;
  AlignedBuffer memory;            ///< of numbers
  std::vector<std::string> texts;  ///< of strings

  /// Uninitialised numbers. Throws std::bad_alloc.
  static Made numbers(DType dtype, const Shape& shape) {
    return {dtype, shape, AlignedBuffer(static_cast<size_t>(shape.elements()) * dtype_size(dtype)), {}};
  }
  static Made strings(std::vector<std::string> texts, const Shape& shape) { return {DType::kString, shape, {}, std::move(texts)}; }

  /// The view borrows from this object.
  TensorView view() {
    return {dtype, shape, dtype == DType::kString ? static_cast<void*>(texts.data()) : static_cast<void*>(memory.data())};
  }
};

/// Facts that steps before the model leave for those after it.
struct RowFacts {
  Placement picture;                      ///< source_width 0: no step read a picture
  int input_width = 0, input_height = 0;  ///< of the model's tensor of pixels
  std::vector<int64_t> mask;              ///< of a text's tokens: 1, or 0 for padding; empty: no step read a text
};

/// Measures the parts of a step, in the order of its parts().
class Laps {
 public:
  static constexpr size_t kMost = 4;

  void next() {
    const auto now = std::chrono::steady_clock::now();
    if (count_ < kMost) took_[count_++] = now - since_;
    since_ = now;
  }
  std::span<const std::chrono::nanoseconds> took() const { return {took_.data(), count_}; }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::array<std::chrono::nanoseconds, kMost> took_{};
  size_t count_ = 0;
};

class PreStep {
 public:
  virtual ~PreStep() = default;
  /// The clients' inputs, of type BYTES: each row has one element of each.
  virtual std::span<const std::string> inputs() const = 0;
  /// The model's inputs that run() makes.
  virtual std::span<const TensorFacts> makes() const = 0;
  /// Names of its parts for metrics, at most Laps::kMost.
  virtual std::span<const std::string_view> parts() const = 0;
  /// `elements`: in the order of inputs(). Returns tensors in the order of makes(). kInvalidArgument, kCorrupt, kUnsupported, kTooLarge: an
  /// element is at fault.
  virtual Result<std::vector<Made>> run(std::span<const std::string_view> elements, RowFacts& facts, Laps& laps) const = 0;
  /// Whether run() takes less time than waking a thread for it.
  virtual bool quick(std::span<const std::string_view> elements) const = 0;
};

class PostStep {
 public:
  virtual ~PostStep() = default;
  /// The model's outputs that run() reads, and that clients do not see.
  virtual std::span<const std::string> reads() const = 0;
  /// The clients' outputs.
  virtual std::span<const TensorFacts> makes() const = 0;
  virtual std::string_view part() const = 0;  ///< its name for metrics
  /// `read`: tensors in the order of reads(). Returns tensors in the order of makes().
  virtual Result<std::vector<Made>> run(std::span<const TensorView> read, const RowFacts& facts) const = 0;
  virtual bool quick() const = 0;  ///< as for PreStep
};

}  // namespace serin::steps
