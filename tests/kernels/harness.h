// harness.h: runs one operator on any kernel row and compares it with the reference kernel.
//
//   Case c{.op = Softmax{-1}, .inputs = {random_tensor({3, 17}, /*seed=*/1)}, .outputs = {{DType::kFloat32, {3, 17}}}};
//   expect_rows_match_reference(backend(Isa::kAvx2), c);
//
// Every output lies between sentinel bytes, which must be whole after the run; scratch too, of exactly the size the kernel asked for.
#pragma once

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/parallel.h"
#include "kernels/functors.h"

namespace serin::kernels::test {

/// A tensor that owns its memory, with sentinel bytes on both sides.
class Tensor {
 public:
  Tensor(DType dtype, const Shape& shape);
  template <class T>
  Tensor(const Shape& shape, const std::vector<T>& values) : Tensor(dtype_of_element<T>(), shape) {
    for (size_t i = 0; i < values.size(); ++i) view().as<T>()[i] = values[i];
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  TensorView view() const { return {dtype_, shape_, const_cast<std::byte*>(bytes_.data()) + kGuard}; }
  template <class T>
  std::vector<T> values() const {
    const auto span = view().span<const T>();
    return {span.begin(), span.end()};
  }
  /// Element i as a double, whatever the dtype.
  double at(int64_t i) const;
  /// Whether the bytes before and after the elements are as they were made.
  bool sentinels_intact() const;
  /// Kernels with bounded outputs set the true shape.
  void set_shape(const Shape& shape) { shape_ = shape; }

 private:
  static constexpr size_t kGuard = 64;
  template <class T>
  static DType dtype_of_element() {
    if (std::is_same_v<T, Half>) return DType::kFloat16;
    if (std::is_same_v<T, BFloat16>) return DType::kBFloat16;
    return dtype_of<T>();
  }

  DType dtype_;
  Shape shape_;
  size_t size_;
  std::vector<std::byte> bytes_;
};

struct Output {
  DType dtype;
  Shape shape;
};

/// One operator with its operands.
struct Case {
  Op op;
  std::vector<Tensor> inputs;
  std::vector<Output> outputs;
  uint32_t constants = 0;  ///< bit i: input i is known when the kernel is prepared
  int64_t bound = 0;       ///< added to the first dimension of every description whose tensor has one: prepared for more than is run

  OpDesc describe() const;
  std::string str() const;
};

/// Sets an attribute of an operator known by name.
inline void set(Case& c, const std::string& key, Attribute value) { std::get<Generic>(c.op).attributes.set(key, std::move(value)); }

inline constexpr DType kF32 = DType::kFloat32;
inline constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

inline Tensor floats(const Shape& shape, const std::vector<float>& values) { return {shape, values}; }
inline Tensor longs(const Shape& shape, const std::vector<int64_t>& values) { return {shape, values}; }

/// Normally distributed f32.
Tensor random_tensor(const Shape& shape, uint32_t seed, float scale = 1.f);
/// Small integers of any dtype (0 and 1 for bool).
Tensor random_integers(DType dtype, const Shape& shape, uint32_t seed, int low = -9, int high = 9);
/// NaN, infinities, zeros of both signs, the ends of the range of float, and subnormals among ordinary values.
Tensor special_values(const Shape& shape);

struct Tolerance {
  double relative = 1e-5;  ///< of the expected element
  double absolute = 0;     ///< of the largest finite expected element
};

void expect_near(const Tensor& actual, const Tensor& expected, Tolerance tolerance, const std::string& what);

/// Runs a kernel on the case's inputs (a packed one comes without data); fails the test on a fault or a broken sentinel.
std::vector<Tensor> run_kernel(const Kernel& kernel, const Case& c, Workers* workers = nullptr);
/// The result of the reference kernel.
std::vector<Tensor> run_reference(const Case& c);
/// What the reference kernel says when it cannot; empty where it can.
std::string reference_fault(const Case& c);

/// Every row but the last that accepts the case must agree with the reference, on one thread and on three. At least one must accept, unless `may_refuse`.
/// Answers the names of the rows that did.
std::vector<std::string> expect_rows_match_reference(const Backend& backend, const Case& c, Tolerance tolerance = {},
                                                     bool may_refuse = false);

/// Backends without oneDNN, made once for each instruction set; the one with only reference rows.
const Backend& backend(Isa isa);
const Backend& reference_backend();
/// A parameter of tests: rows of an instruction set, or those for bf16.
struct Target {
  Isa isa;
  bool bf16 = false;
};
/// The best instruction set, with the rows for bf16 where there are any.
const Backend& bf16_backend();
/// f32 whose elements are bf16.
Tensor rounded_to_bf16(const Tensor& x);

}  // namespace serin::kernels::test
