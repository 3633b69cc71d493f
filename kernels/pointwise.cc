// pointwise.cc: checks a program of functions of single elements.

#include "kernels/pointwise.h"

#include "kernels/functors.h"
#include "kernels/indexing.h"

namespace serin::kernels {

namespace {

struct Signature {
  std::vector<DType> operands;
  DType result;
};

std::optional<Signature> signature_of(const Pointwise::Step& step) {
  constexpr DType kF32 = DType::kFloat32, kBool = DType::kBool;
  if (const auto* unary = std::get_if<Unary>(&step.function)) {
    if (is_predicate(unary->fn)) return std::nullopt;
    return Signature{{kF32}, kF32};
  }
  if (const auto* binary = std::get_if<Binary>(&step.function)) {
    if (is_logical(binary->fn)) return std::nullopt;
    return Signature{{kF32, kF32}, is_compare(binary->fn) ? kBool : kF32};
  }
  return Signature{{kBool, kF32, kF32}, kF32};
}

/// What is computed as f32.
bool computes_as_f32(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

}  // namespace

size_t operand_count(const Pointwise::Step& step) { return step.function.index() + 1; }

std::optional<std::vector<DType>> pointwise_types(const OpDesc& desc, std::string& why) {
  const auto refused = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  const std::vector<Pointwise::Step>& steps = std::get<Pointwise>(desc.op).steps;
  if (desc.inputs.empty() || desc.inputs.size() > Pointwise::kMaxInputs || steps.empty() || steps.size() > Pointwise::kMaxSteps)
    return refused("too few or too many inputs or steps");
  if (desc.outputs.size() != 1 || !computes_as_f32(desc.outputs[0].dtype)) return refused("f32 and 16-bit floats only");

  std::vector<DType> types;
  for (const TensorDesc& input : desc.inputs) {
    if (!broadcasts_to(input.shape, desc.outputs[0].shape)) return refused("an input does not broadcast to the result");
    types.push_back(computes_as_f32(input.dtype) ? DType::kFloat32 : input.dtype);
  }
  for (const Pointwise::Step& step : steps) {
    const auto signature = signature_of(step);
    if (!signature) return refused("a function that answers bool from other than a comparison");
    for (size_t i = 0; i < signature->operands.size(); ++i) {
      const int32_t operand = step.operands[i];
      if (operand < 0 || static_cast<size_t>(operand) >= types.size()) return refused("a step reads a value that is not computed yet");
      if (types[static_cast<size_t>(operand)] != signature->operands[i]) return refused("a step reads a value of another type");
    }
    types.push_back(signature->result);
  }
  if (types.back() != DType::kFloat32) return refused("the last result is not a float");
  return types;
}

}  // namespace serin::kernels
