// support.h: tensors with memory (shared by copies), and models from the text form of a graph, for the tests of the engine.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/engine.h"

namespace serin::engine::test {

class Tensor {
 public:
  Tensor(DType dtype, const Shape& shape);
  template <class T>
  Tensor(const Shape& shape, const std::vector<T>& values) : Tensor(dtype_of<T>(), shape) {
    for (size_t i = 0; i < values.size(); ++i) view_.as<T>()[i] = values[i];
  }
  explicit Tensor(const graph::Constant& constant);

  const TensorView& view() const { return view_; }
  TensorView& view() { return view_; }
  template <class T>
  std::vector<T> values() const {
    const auto span = view_.span<const T>();
    return {span.begin(), span.end()};
  }

 private:
  std::shared_ptr<AlignedBuffer> memory_;
  TensorView view_;
};

/// Numbers in [-1, 1), the same for the same seed.
Tensor random_tensor(const Shape& shape, uint32_t seed);
std::vector<TensorView> views(const std::vector<Tensor>& tensors);

/// The reference backend, and whatever this machine has best.
const kernels::Backend& reference();
const kernels::Backend& best();

std::shared_ptr<Model> model_of(std::string_view text, const kernels::Backend& backend = reference(), LoadOptions options = {});
/// Why the text makes no model.
std::string refusal_of(std::string_view text);

std::vector<Tensor> make_outputs(const Executor& executor);
/// Runs once with fresh outputs; a failure fails the test.
std::vector<Tensor> run(Executor& executor, const std::vector<Tensor>& inputs);
std::vector<Tensor> run(std::string_view text, const std::vector<Tensor>& inputs);

/// |a - b| <= 1e-4 |b| + 1e-5 max|b|; NaN equals NaN, infinities and what is no float must be equal.
void expect_near(const TensorView& actual, const TensorView& expected, const std::string& what);

}  // namespace serin::engine::test
