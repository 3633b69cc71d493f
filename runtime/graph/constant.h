// constant.h: tensors that are known at load.
//
//   ConstantPtr two = make_constant(DType::kFloat32, Shape{2}, values);                        // in memory
//   ConstantPtr weight = make_constant(DType::kFloat32, Shape{768, 768},                       // in the file until it is read
//                                      [file](std::span<std::byte> to) { return file->read(0, to); });
//   const Elements<float> w = weight->span<float>();                                           // in memory as long as `w` lives
//
// Weights are most of a model, and kernels keep them in their own layouts. To avoid a second copy in memory, a large constant may be a
// recipe: a function that produces the bytes whenever they are needed. The pointer that data() returns keeps them in memory longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/mutex.h"
#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::graph {

/// Thrown if a constant cannot be read again because its file was changed. It is used in the middle of packing, where a Result has no
/// place. The readers of formats, Model and Plan catch it and turn it into a result.
class LostConstant : public std::exception {
 public:
  explicit LostConstant(Error error) : error_(std::move(error)) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

/// Writes the bytes of a constant; every call writes the same bytes.
using Recipe = std::function<Status(std::span<std::byte>)>;

/// Bytes that stay in memory only while a pointer to them exists. Thread-safe: a second caller waits while the bytes are made.
class RecipeBytes {
 public:
  /// `first`: bytes that are already made, for the first caller.
  RecipeBytes(size_t bytes, Recipe recipe, std::shared_ptr<const std::byte> first = nullptr)
      : bytes_(bytes), recipe_(std::move(recipe)), first_(std::move(first)) {}
  std::shared_ptr<const std::byte> make() const;  ///< throws LostConstant
  std::shared_ptr<const std::byte> if_made() const;

 private:
  const size_t bytes_;
  const Recipe recipe_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const std::byte> first_ SERIN_GUARDED_BY(mutex_);
  mutable std::weak_ptr<const std::byte> made_ SERIN_GUARDED_BY(mutex_);
};

/// Elements of a constant, which stay in memory with it. Store this object, not a std::span of it.
template <class T>
class Elements {
 public:
  using value_type = T;
  using const_iterator = typename std::span<const T>::iterator;

  Elements(std::shared_ptr<const std::byte> data, size_t count) : data_(std::move(data)), count_(count) {}
  const T* data() const { return reinterpret_cast<const T*>(data_.get()); }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const_iterator begin() const { return std::span(data(), count_).begin(); }
  const_iterator end() const { return std::span(data(), count_).end(); }
  const T& operator[](size_t i) const { return data()[i]; }
  const T& front() const { return data()[0]; }

 private:
  std::shared_ptr<const std::byte> data_;
  size_t count_;
};

/// A tensor that is known at load. It is immutable, and copies share its bytes.
struct Constant {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::shared_ptr<const std::byte> resident;  ///< dense, row-major, aligned as its owner chose; set if the bytes stay in memory
  std::shared_ptr<const RecipeBytes> recipe;  ///< set if the bytes can be made again
  std::vector<std::string> strings;           ///< elements, if dtype is kString
  uint64_t id = 0;                            ///< identity within a process, set by the functions below: the key for packed weights

  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * dtype_size(dtype); }
  /// Null for strings, for zero elements, and for bytes that a plan has released. Throws LostConstant.
  std::shared_ptr<const std::byte> data() const { return resident || !recipe ? resident : recipe->make(); }
  std::shared_ptr<const std::byte> data_in_memory() const { return resident || !recipe ? resident : recipe->if_made(); }
  template <class T>
  Elements<T> span() const {
    return {data(), static_cast<size_t>(elements())};
  }
};
using ConstantPtr = std::shared_ptr<const Constant>;

/// Copies `bytes` (elements x dtype_size of them) into new memory, aligned to 64 bytes.
ConstantPtr make_constant(DType dtype, const Shape& shape, const void* bytes);
/// Makes one-dimensional integers, such as shapes and axes.
ConstantPtr make_constant(std::span<const int64_t> values);
/// Makes one element, converted; null for 16-bit floats and strings.
ConstantPtr make_scalar(DType dtype, double value);
/// Uses memory that `data` keeps alive.
ConstantPtr make_constant(DType dtype, const Shape& shape, std::shared_ptr<const std::byte> data);
/// Keeps the recipe if the constant is large; a small one is made now and stays in memory. Throws LostConstant.
ConstantPtr make_constant(DType dtype, const Shape& shape, Recipe recipe);
/// Shares the bytes of another constant.
ConstantPtr make_constant(DType dtype, const Shape& shape, std::shared_ptr<const RecipeBytes> recipe);
constexpr size_t kWorthARecipe = size_t{64} << 10;
/// Makes new zeroed memory that the caller fills before it is shared.
std::shared_ptr<Constant> make_mutable_constant(DType dtype, const Shape& shape, std::byte** memory);
/// Returns the same constant, in memory as long as it lives. Throws LostConstant.
ConstantPtr in_memory(ConstantPtr constant);

/// Returns the elements if they are integers (or bool) that fit int64.
std::optional<std::vector<int64_t>> integers_of(const Constant& constant);
/// Returns the element of a constant with one element (f32, f64 or integer).
std::optional<double> number_of(const Constant& constant);

}  // namespace serin::graph
