// constant.h: tensors that are known at load.
//
//   ConstantPtr two = make_constant(DType::kFloat32, Shape{2}, values);                        // in memory
//   ConstantPtr weight = make_constant(DType::kFloat32, Shape{768, 768},                       // in the file until somebody reads it
//                                      [file](std::span<std::byte> to) { return file->read(0, to); });
//   const Elements<float> w = weight->span<float>();                                           // here now, and for as long as `w`
//
// Weights are most of a model, and kernels keep them in layouts of their own. So that they are not in memory twice, a large constant may be a
// recipe: how to get the bytes, as often as somebody wants them. Who needs them longer holds on to what data() returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::graph {

/// A constant could not be had again: its file was changed. Thrown where a Result has no place, in the middle of packing; caught where an
/// error becomes a result again: the reader of a format, Model and Plan.
class LostConstant : public std::exception {
 public:
  explicit LostConstant(Error error) : error_(std::move(error)) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

/// Writes the bytes of a constant; the same ones each time.
using Recipe = std::function<Status(std::span<std::byte>)>;

/// Bytes that are in memory only while somebody holds them. Thread-safe: who wants what is being made waits for it.
class RecipeBytes {
 public:
  /// `first`, where they have been made already, is what the first who wants them gets.
  RecipeBytes(size_t bytes, Recipe recipe, std::shared_ptr<const std::byte> first = nullptr)
      : bytes_(bytes), recipe_(std::move(recipe)), first_(std::move(first)) {}
  std::shared_ptr<const std::byte> make() const;  ///< throws LostConstant
  std::shared_ptr<const std::byte> if_made() const;

 private:
  const size_t bytes_;
  const Recipe recipe_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const std::byte> first_;  // guarded by mutex_
  mutable std::weak_ptr<const std::byte> made_;     // guarded by mutex_
};

/// Elements of a constant, which stay in memory with it: keep this, not a std::span of it.
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

/// A tensor that is known at load; immutable, shares its bytes.
struct Constant {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::shared_ptr<const std::byte> resident;  ///< dense, row-major, aligned as its owner chose, where they are in memory to stay
  std::shared_ptr<const RecipeBytes> recipe;  ///< where they can be made again
  std::vector<std::string> strings;           ///< elements, where dtype is kString
  uint64_t id = 0;                            ///< identity within a process, given by the makers below: the key for packed weights

  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * dtype_size(dtype); }
  /// Null for strings, for zero elements, and for what a plan let go. Throws LostConstant.
  std::shared_ptr<const std::byte> data() const { return resident || !recipe ? resident : recipe->make(); }
  std::shared_ptr<const std::byte> data_in_memory() const { return resident || !recipe ? resident : recipe->if_made(); }
  template <class T>
  Elements<T> span() const {
    return {data(), static_cast<size_t>(elements())};
  }
};
using ConstantPtr = std::shared_ptr<const Constant>;

/// Copies `bytes` (elements x dtype_size of them) into fresh 64-byte-aligned memory.
ConstantPtr make_constant(DType dtype, const Shape& shape, const void* bytes);
/// One-dimensional integers, as shapes and axes are.
ConstantPtr make_constant(std::span<const int64_t> values);
/// One element, converted; null for 16-bit floats and strings.
ConstantPtr make_scalar(DType dtype, double value);
/// Takes memory that somebody else keeps alive through `data`.
ConstantPtr make_constant(DType dtype, const Shape& shape, std::shared_ptr<const std::byte> data);
/// By recipe where it is large; a small one is made now and stays. Throws LostConstant.
ConstantPtr make_constant(DType dtype, const Shape& shape, Recipe recipe);
/// The same bytes as another constant.
ConstantPtr make_constant(DType dtype, const Shape& shape, std::shared_ptr<const RecipeBytes> recipe);
constexpr size_t kWorthARecipe = size_t{64} << 10;
/// Fresh zeroed memory to be filled before it is shared.
std::shared_ptr<Constant> make_mutable_constant(DType dtype, const Shape& shape, std::byte** memory);
/// The same constant, in memory for as long as it lives. Throws LostConstant.
ConstantPtr in_memory(ConstantPtr constant);

/// The elements, where they are integers (or bool) that fit int64.
std::optional<std::vector<int64_t>> integers_of(const Constant& constant);
/// The one element of a constant of one element (f32, f64 or integer).
std::optional<double> number_of(const Constant& constant);

}  // namespace serin::graph
