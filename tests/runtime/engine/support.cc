#include "tests/runtime/engine/support.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace serin::engine::test {

Tensor::Tensor(DType dtype, const Shape& shape) : view_{dtype, shape, nullptr} {
  memory_ = std::make_shared<AlignedBuffer>(view_.bytes() + 1);
  std::memset(memory_->data(), 0xcd, view_.bytes() + 1);  // so that what is not written shows
  view_.data = memory_->data();
}

Tensor::Tensor(const graph::Constant& constant) : Tensor(constant.dtype, constant.shape) {
  if (constant.bytes() != 0) std::memcpy(view_.data, constant.data().get(), constant.bytes());
}

Tensor random_tensor(const Shape& shape, uint32_t seed) {
  Tensor tensor(DType::kFloat32, shape);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1.f, 1.f);
  for (float& x : tensor.view().span<float>()) x = number(random);
  return tensor;
}

std::vector<TensorView> views(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.view());
  return result;
}

const kernels::Backend& reference() {
  static const auto backend = kernels::make_cpu_backend({.onednn_path = "none", .reference_only = true});
  return *backend;
}

const kernels::Backend& best() {
  static const auto backend = kernels::make_cpu_backend({});
  return *backend;
}

namespace {

Result<std::shared_ptr<Model>> make(std::string_view text, const kernels::Backend& backend, LoadOptions options) {
  SERIN_TRY(graph::Graph graph, graph::parse(text));
  return Model::from_graph(std::move(graph), backend, std::move(options));
}

}  // namespace

std::shared_ptr<Model> model_of(std::string_view text, const kernels::Backend& backend, LoadOptions options) {
  auto model = make(text, backend, std::move(options));
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : nullptr;
}

std::string refusal_of(std::string_view text) {
  const auto model = make(text, reference(), {});
  return model ? "accepted" : model.error().message;
}

std::vector<Tensor> make_outputs(const Executor& executor) {
  std::vector<Tensor> outputs;
  for (const TensorInfo& info : executor.outputs()) outputs.emplace_back(info.dtype, info.shape);
  return outputs;
}

std::vector<Tensor> run(Executor& executor, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs = make_outputs(executor);
  std::vector<TensorView> out = views(outputs);
  const Status status = executor.run(views(inputs), out);
  EXPECT_TRUE(status) << status.error().message;
  for (size_t i = 0; i < out.size(); ++i) outputs[i].view().shape = out[i].shape;
  return outputs;
}

std::vector<Tensor> run(std::string_view text, const std::vector<Tensor>& inputs) {
  const auto model = model_of(text);
  if (!model) return {};
  const auto bindings = bindings_for(model->inputs(), views(inputs));
  EXPECT_TRUE(bindings) << bindings.error().message;
  auto executor = model->executor(*bindings);
  EXPECT_TRUE(executor) << executor.error().message;
  return executor ? run(**executor, inputs) : std::vector<Tensor>();
}

namespace {

template <class T>
void expect_near(std::span<const T> actual, std::span<const T> expected, const std::string& what) {
  double largest = 0;
  for (const T x : expected) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(static_cast<double>(x)));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const double a = actual[i], b = expected[i];
    if (std::isnan(b) ? std::isnan(a) : a == b) continue;
    ASSERT_TRUE(std::isfinite(b) && std::abs(a - b) <= 1e-4 * std::abs(b) + 1e-5 * largest)
        << what << ": element " << i << " is " << a << ", expected " << b;
  }
}

}  // namespace

void expect_near(const TensorView& actual, const TensorView& expected, const std::string& what) {
  ASSERT_EQ(dtype_name(actual.dtype), dtype_name(expected.dtype)) << what;
  ASSERT_EQ(actual.shape.str(), expected.shape.str()) << what;
  if (actual.dtype == DType::kFloat32) return expect_near(actual.span<const float>(), expected.span<const float>(), what);
  if (actual.dtype == DType::kFloat64) return expect_near(actual.span<const double>(), expected.span<const double>(), what);
  EXPECT_EQ(std::memcmp(actual.data, expected.data, expected.bytes()), 0) << what << ": differs";
}

}  // namespace serin::engine::test
