#include "tests/kernels/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/ref/visit.h"

namespace serin::kernels::test {

namespace {

constexpr std::byte kSentinel{0xA5};

std::vector<TensorView> views(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.view());
  return result;
}

std::vector<Tensor> make_outputs(const Case& c) {
  std::vector<Tensor> outputs;
  for (const Output& output : c.outputs) outputs.emplace_back(output.dtype, output.shape);
  return outputs;
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape)
    : dtype_(dtype),
      shape_(shape),
      size_(static_cast<size_t>(shape.elements()) * dtype_size(dtype)),
      bytes_(size_ + 2 * kGuard, kSentinel) {}

double Tensor::at(int64_t i) const {
  return ref::visit_dtype(dtype_, [&]<class T>(ref::Element<T>) -> double {
    if constexpr (std::is_void_v<T>)
      return 0;
    else
      return static_cast<double>(load(view().as<const T>()[i]));
  });
}

bool Tensor::sentinels_intact() const {
  for (size_t i = 0; i < kGuard; ++i) {
    if (bytes_[i] != kSentinel || bytes_[kGuard + size_ + i] != kSentinel) return false;
  }
  return true;
}

OpDesc Case::describe() const {
  OpDesc desc{op, {}, {}};
  const auto bounded_shape = [this](Shape shape) {
    if (bound > 0 && shape.rank() > 0) shape[0] += bound;
    return shape;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool constant = constants >> i & 1u;
    const bool bounded = bound > 0 && !constant;
    desc.inputs.push_back({inputs[i].dtype(), bounded ? bounded_shape(inputs[i].shape()) : inputs[i].shape(), bounded,
                           constant ? inputs[i].view().data : nullptr, 0});
  }
  for (const Output& output : outputs) desc.outputs.push_back({output.dtype, bounded_shape(output.shape), bound > 0, nullptr, 0});
  return desc;
}

std::string Case::str() const {
  std::string text(kOpNames[op.index()]);
  for (const Tensor& input : inputs) text += " " + std::string(dtype_name(input.dtype())) + input.shape().str();
  for (const Output& output : outputs) text += " -> " + std::string(dtype_name(output.dtype)) + output.shape.str();
  return text;
}

Tensor random_tensor(const Shape& shape, uint32_t seed, float scale) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Tensor tensor(DType::kFloat32, shape);
  for (float& x : tensor.view().span<float>()) x = scale * normal(engine);
  return tensor;
}

Tensor random_integers(DType dtype, const Shape& shape, uint32_t seed, int low, int high) {
  std::mt19937 engine(seed);
  Tensor tensor(dtype, shape);
  ref::visit_dtype(dtype, [&]<class T>(ref::Element<T>) {
    if constexpr (!std::is_void_v<T>) {
      if (std::is_unsigned_v<T>) low = 0;
      if (std::is_same_v<T, bool>) high = 1;
      std::uniform_int_distribution<int> uniform(low, high);
      for (T& x : tensor.view().span<T>()) x = cast<T>(uniform(engine));
    }
  });
  return tensor;
}

Tensor special_values(const Shape& shape) {
  using Limits = std::numeric_limits<float>;
  const float values[] = {Limits::quiet_NaN(),
                          1.5f,
                          Limits::infinity(),
                          -Limits::infinity(),
                          0.f,
                          -0.f,
                          Limits::max(),
                          Limits::lowest(),
                          Limits::min(),
                          Limits::denorm_min(),
                          -1e-40f,
                          0.5f,
                          -0.5f,
                          2.5f,
                          -2.5f,
                          88.f,
                          -88.f,
                          89.5f,
                          -103.f,
                          1e-8f,
                          -1e-8f,
                          0.99999994f,
                          1e20f,
                          -7.f,
                          0.3f,
                          -0.31f,
                          3.f};
  Tensor tensor = random_tensor(shape, 7, 3.f);
  const auto span = tensor.view().span<float>();
  for (size_t i = 0; i < span.size(); i += 2) span[i] = values[i / 2 % std::size(values)];
  return tensor;
}

void expect_near(const Tensor& actual, const Tensor& expected, Tolerance tolerance, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  double largest = 0;
  for (int64_t i = 0; i < expected.shape().elements(); ++i) {
    if (std::isfinite(expected.at(i))) largest = std::max(largest, std::fabs(expected.at(i)));
  }
  int failures = 0;
  for (int64_t i = 0; i < expected.shape().elements() && failures < 5; ++i) {
    const double a = actual.at(i), e = expected.at(i);
    const bool same = a == e || (std::isnan(a) && std::isnan(e));
    // 1e-40: where the expected value is subnormal its own spacing is the limit.
    const bool near = std::fabs(a - e) <= tolerance.relative * std::fabs(e) + tolerance.absolute * largest + 1e-40;
    if (same || (near && std::isfinite(e))) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << a << ", expected " << e;
    ++failures;
  }
}

std::vector<Tensor> run_kernel(const Kernel& kernel, const Case& c, Workers* workers) {
  std::vector<Tensor> outputs = make_outputs(c);
  std::vector<TensorView> in = views(c.inputs), out = views(outputs);
  for (size_t i = 0; i < in.size(); ++i) {
    if (kernel.packed_inputs() >> i & 1u) in[i].data = nullptr;
  }
  // Scratch is 64-byte aligned as the engine's is, and guarded.
  constexpr size_t kAlign = 64;
  std::vector<std::byte> memory(kernel.scratch_bytes() + 3 * kAlign, kSentinel);
  std::byte* scratch = memory.data() + kAlign;
  scratch += (kAlign - reinterpret_cast<uintptr_t>(scratch) % kAlign) % kAlign;
  Stream stream{scratch, workers};
  if (Fault fault = kernel.run(stream, in, out)) ADD_FAILURE() << c.str() << ": " << *fault;
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(scratch[kernel.scratch_bytes() + i], kSentinel) << c.str() << ": wrote past its scratch";
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].sentinels_intact()) << c.str() << ": wrote outside output " << i;
    outputs[i].set_shape(out[i].shape);
  }
  return outputs;
}

std::vector<Tensor> run_reference(const Case& c) {
  PackedWeights weights;
  PrepareContext context{&weights};
  const Prepared prepared = reference_backend().prepare(c.describe(), context);
  if (!prepared.kernel) {
    ADD_FAILURE() << c.str() << ": the reference refused: " << prepared.refusals.back().reason;
    return make_outputs(c);
  }
  return run_kernel(*prepared.kernel, c);
}

std::string reference_fault(const Case& c) {
  PackedWeights weights;
  PrepareContext context{&weights};
  const Prepared prepared = reference_backend().prepare(c.describe(), context);
  if (!prepared.kernel) return prepared.refusals.back().reason;
  std::vector<Tensor> outputs = make_outputs(c);
  std::vector<TensorView> in = views(c.inputs), out = views(outputs);
  Stream stream;
  return prepared.kernel->run(stream, in, out).value_or("");
}

namespace {

/// Three do not divide what two, four and eight do.
Workers& three_workers() {
  static Workers workers(3);
  return workers;
}

}  // namespace

std::vector<std::string> expect_rows_match_reference(const Backend& backend, const Case& c, Tolerance tolerance, bool may_refuse) {
  const std::vector<Tensor> expected = run_reference(c);
  const auto& rows = backend.table()[c.op.index()];
  std::vector<std::string> accepted;
  std::string reasons;
  for (size_t row = 0; row + 1 < rows.size(); ++row) {
    PackedWeights weights;
    std::string why;
    for (Workers* workers : {static_cast<Workers*>(nullptr), &three_workers()}) {
      PrepareContext context{&weights, workers ? workers->count() : 1};
      const std::unique_ptr<Kernel> kernel = rows[row].prepare(c.describe(), context, why);
      if (!kernel) {
        EXPECT_FALSE(why.empty()) << rows[row].name << " refused " << c.str() << " without a reason";
        reasons += "; " + rows[row].name + ": " + why;
        break;
      }
      if (!workers) accepted.push_back(rows[row].name);
      const std::vector<Tensor> actual = run_kernel(*kernel, c, workers);
      const std::string what = rows[row].name + (workers ? " on three threads: " : ": ") + c.str();
      for (size_t i = 0; i < actual.size(); ++i) expect_near(actual[i], expected[i], tolerance, what);
    }
  }
  EXPECT_TRUE(!accepted.empty() || may_refuse) << c.str() << reasons;
  return accepted;
}

const Backend& backend(Isa isa) {
  static const std::unique_ptr<Backend> backends[] = {make_cpu_backend({.isa = Isa::kScalar, .onednn_path = "none"}),
                                                      make_cpu_backend({.isa = Isa::kAvx2, .onednn_path = "none"}),
                                                      make_cpu_backend({.isa = Isa::kAvx512, .onednn_path = "none"})};
  return *backends[static_cast<size_t>(isa)];
}

const Backend& reference_backend() {
  static const std::unique_ptr<Backend> reference = make_cpu_backend({.reference_only = true});
  return *reference;
}

const Backend& bf16_backend() {
  static const std::unique_ptr<Backend> made = make_cpu_backend({.onednn_path = "none", .bf16 = true});
  return *made;
}

Tensor rounded_to_bf16(const Tensor& x) {
  Tensor result(DType::kFloat32, x.shape());
  const auto from = x.view().span<const float>();
  for (size_t i = 0; i < from.size(); ++i) result.view().as<float>()[i] = to_float(to_bfloat16(from[i]));
  return result;
}

}  // namespace serin::kernels::test
