// cost.cc: counts the operations of a step, with one rule for each operator kind. Operators that go to the backend by name count like the
// kind they resemble, or else one operation for each element of their results.

#include "runtime/engine/plan/cost.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

namespace serin::engine {

namespace {

class StepCost {
 public:
  StepCost(const Program& program, const Step& step) : program_(program), step_(step) {}

  int64_t macs() const {
    return std::visit([this](const auto& kernel) { return multiply_adds(kernel); }, step_.kernel);
  }

  int64_t flops() const {
    return 2 * macs() + std::visit([this](const auto& kernel) { return count(kernel); }, step_.kernel);
  }

  int64_t bytes() const {
    size_t sum = 0;
    for (const TensorId id : step_.inputs) sum += id == kNoTensor ? 0 : program_.tensor(id).bytes();
    for (const TensorId id : step_.outputs) sum += id == kNoTensor ? 0 : program_.tensor(id).bytes();
    return static_cast<int64_t>(sum);
  }

 private:
  bool has(size_t i) const { return i < step_.inputs.size() && step_.inputs[i] != kNoTensor; }
  const Shape& input(size_t i) const { return program_.tensor(step_.inputs[i]).shape; }
  int64_t read(size_t i) const { return has(i) ? input(i).elements() : 0; }
  const Shape& result() const { return program_.tensor(step_.outputs[0]).shape; }
  int64_t written() const { return step_.outputs.empty() || step_.outputs[0] == kNoTensor ? 0 : result().elements(); }

  /// Every weight meets every pixel of the result once: weight [o, c / group, kernel...], result [n, o, spatial...] or in channel blocks.
  int64_t convolution(const Shape& weight) const {
    if (weight.rank() == 0 || weight[0] == 0) return 0;
    const bool blocked = result().rank() == weight.rank() + 1;
    const int64_t channels = blocked ? result()[1] * result().back() : weight[0];
    return weight.elements() * (written() / std::max<int64_t>(channels, 1));
  }
  int64_t epilogue(const kernels::Epilogue& epilogue, bool bias) const {
    return written() * ((bias ? 1 : 0) + (epilogue.residual ? 1 : 0) + (epilogue.activation == kernels::UnaryFn::kIdentity ? 0 : 1));
  }

  int64_t multiply_adds(const kernels::Conv&) const { return has(1) ? convolution(input(1)) : 0; }
  int64_t multiply_adds(const kernels::MatMul& op) const {
    const Shape& a = input(0);
    if (a.is_scalar()) return 0;
    return written() * (op.transpose_a && a.rank() > 1 ? a[a.rank() - 2] : a.back());
  }
  int64_t multiply_adds(const kernels::Generic& op) const { return products_by_name(op.name).value_or(0); }
  template <class Other>
  int64_t multiply_adds(const Other&) const {
    return 0;
  }

  int64_t count(const kernels::Unary& op) const { return op.fn == kernels::UnaryFn::kIdentity ? 0 : written(); }
  int64_t count(const kernels::Binary&) const { return written(); }
  int64_t count(const kernels::Select&) const { return written(); }
  int64_t count(const kernels::Pointwise& op) const { return written() * static_cast<int64_t>(op.steps.size()); }
  int64_t count(const kernels::Conv& op) const { return has(1) ? epilogue(op.epilogue, op.bias) : 0; }
  int64_t count(const kernels::MatMul& op) const { return input(0).is_scalar() ? 0 : epilogue(op.epilogue, op.bias); }
  int64_t count(const kernels::Pool& op) const {
    return written() * std::accumulate(op.kernel.begin(), op.kernel.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t count(const kernels::Reduce&) const { return read(0); }
  int64_t count(const kernels::Softmax&) const { return 4 * read(0); }    // maximum, difference with exponential, sum, quotient
  int64_t count(const kernels::LayerNorm&) const { return 7 * read(0); }  // mean, variance (2), difference, quotient, scale, shift
  int64_t count(const kernels::BatchNorm&) const { return 2 * read(0); }
  int64_t count(const kernels::ArgMax&) const { return read(0); }
  int64_t count(const kernels::CumSum&) const { return read(0); }
  int64_t count(const kernels::Generic& op) const { return products_by_name(op.name) ? 0 : written(); }
  template <class Movement>
  int64_t count(const Movement&) const {
    return 0;
  }

  /// Nothing: it does not multiply matrices.
  std::optional<int64_t> products_by_name(std::string_view name) const {
    if (name == "ConvTranspose" && has(1) && input(1).rank() > 0) return read(1) * (read(0) / std::max<int64_t>(input(1)[0], 1));
    if ((name == "ConvInteger" || name == "DeformConv") && has(1)) return convolution(input(1));
    if (name == "QLinearConv" && has(3)) return convolution(input(3));
    if (name.find("MatMul") != name.npos && has(0) && !input(0).is_scalar()) return written() * input(0).back();
    if (name == "Attention" && has(1) && input(1).rank() >= 2) return (read(0) + written()) * input(1)[input(1).rank() - 2];
    if ((name == "LSTM" || name == "GRU" || name == "RNN") && has(2) && input(0).rank() == 3)
      return input(0)[0] * input(0)[1] * (read(1) + read(2));
    return std::nullopt;
  }

  const Program& program_;
  const Step& step_;
};

}  // namespace

Cost cost_of(const Plan& plan, size_t step) {
  if (!plan.steps[step].bodies.empty()) {
    Cost worst;
    for (const auto& body : plan.steps[step].bodies) {
      const Cost cost = body ? cost_of(*body) : Cost();
      if (cost.flops >= worst.flops) worst = cost;
    }
    return worst;
  }
  const StepCost cost(plan.program, plan.program.steps[step]);
  return {cost.flops(), cost.macs(), cost.bytes()};
}

Cost cost_of(const Plan& plan) {
  Cost sum;
  for (size_t i = 0; i < plan.steps.size(); ++i) sum += cost_of(plan, i);
  return sum;
}

}  // namespace serin::engine
