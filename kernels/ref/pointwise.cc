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

}  // namespace

Prepared pointwise(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!pointwise_types(desc, why)) return nullptr;
  return make_kernel([steps = std::get<Pointwise>(desc.op).steps](Stream&, Inputs in, Outputs out) -> Fault {
    std::array<Strides, Pointwise::kMaxInputs> strides{};
    for (size_t k = 0; k < in.size(); ++k) strides[k] = broadcast_strides(in[k].shape, out[0].shape);
    Values values{};
    for_each<Pointwise::kMaxInputs>(out[0].shape, strides, [&](int64_t i, const auto& at) {
      size_t next = 0;
      for (size_t k = 0; k < in.size(); ++k)
        values[next++] = in[k].dtype == DType::kBool ? static_cast<float>(in[k].as<const bool>()[at[k]]) : in[k].as<const float>()[at[k]];
      for (const Pointwise::Step& step : steps) values[next++] = compute(step, values);
      out[0].as<float>()[i] = values[next - 1];
    });
    return kOk;
  });
}

}  // namespace serin::kernels::ref
