// pointwise.cc: a program of functions, run from its first step to its last for each element by itself.

#include "kernels/pointwise.h"

#include <array>

#include "kernels/indexing.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

namespace {

using Values = std::array<float, Pointwise::kMaxInputs + Pointwise::kMaxSteps>;

/// A bool is 0 or 1.
float compute(const Pointwise::Step& step, const Values& values) {
  const auto operand = [&](size_t i) { return values[static_cast<size_t>(step.operands[i])]; };
  if (const auto* unary = std::get_if<Unary>(&step.function)) return kernels::unary(unary->fn, operand(0), unary->alpha, unary->beta);
  const auto* binary = std::get_if<Binary>(&step.function);
  if (!binary) return operand(0) != 0 ? operand(1) : operand(2);
  if (is_compare(binary->fn)) return binary_predicate(binary->fn, operand(0), operand(1)) ? 1.f : 0.f;
  return kernels::binary(binary->fn, operand(0), operand(1));
}

float element(const TensorView& x, int64_t i) {
  switch (x.dtype) {
    case DType::kBool: return x.as<const bool>()[i] ? 1.f : 0.f;
    case DType::kFloat16: return to_float(x.as<const Half>()[i]);
    case DType::kBFloat16: return to_float(x.as<const BFloat16>()[i]);
    default: return x.as<const float>()[i];
  }
}

void store(const TensorView& y, int64_t i, float value) {
  switch (y.dtype) {
    case DType::kFloat16: y.as<Half>()[i] = to_half(value); return;
    case DType::kBFloat16: y.as<BFloat16>()[i] = to_bfloat16(value); return;
    default: y.as<float>()[i] = value; return;
  }
}

}  // namespace

Prepared pointwise(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!pointwise_types(desc, why)) return nullptr;
  return make_kernel([steps = std::get<Pointwise>(desc.op).steps](Stream&, Inputs in, Outputs out) -> Fault {
    std::array<Strides, Pointwise::kMaxInputs> strides{};
    for (size_t k = 0; k < in.size(); ++k) strides[k] = broadcast_strides(in[k].shape, out[0].shape);
    Values values{};
    for_each<Pointwise::kMaxInputs>(out[0].shape, strides, [&](int64_t i, const auto& at) {
      size_t next = 0;
      for (size_t k = 0; k < in.size(); ++k) values[next++] = element(in[k], at[k]);
      for (const Pointwise::Step& step : steps) values[next++] = compute(step, values);
      store(out[0], i, values[next - 1]);
    });
    return kOk;
  });
}

}  // namespace serin::kernels::ref
