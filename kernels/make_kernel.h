// make_kernel.h: Makes a Kernel from a lambda, for kernels that consist of one function.
//
//   return make_kernel([axis](Stream&, Inputs x, Outputs y) -> Fault { ...; return kOk; });
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "kernels/backend.h"

namespace serin::kernels {

using Inputs = std::span<const TensorView>;
using Outputs = std::span<TensorView>;
inline constexpr std::nullopt_t kOk = std::nullopt;

// An operand may be absent: after the last one given, or of type kUndefined between others.

inline bool has_operand(const OpDesc& desc, size_t i) { return i < desc.inputs.size() && desc.inputs[i].dtype != DType::kUndefined; }
/// Of a run; null if it is absent.
inline const TensorView* operand(Inputs in, size_t i) { return i < in.size() && in[i].dtype != DType::kUndefined ? &in[i] : nullptr; }
template <class T>
const T* operand_as(Inputs in, size_t i) {
  const TensorView* const view = operand(in, i);
  return view ? view->as<const T>() : nullptr;
}

struct KernelTraits {
  size_t scratch_bytes = 0;
  uint32_t packed_inputs = 0;
};

template <class F>
std::unique_ptr<Kernel> make_kernel(F run, KernelTraits traits = {}) {
  class FunctionKernel final : public Kernel {
   public:
    FunctionKernel(F function, KernelTraits kernel_traits) : run_(std::move(function)), traits_(kernel_traits) {}
    Fault run(Stream& stream, Inputs inputs, Outputs outputs) const override { return run_(stream, inputs, outputs); }
    size_t scratch_bytes() const override { return traits_.scratch_bytes; }
    uint32_t packed_inputs() const override { return traits_.packed_inputs; }

   private:
    F run_;
    KernelTraits traits_;
  };
  return std::unique_ptr<Kernel>(
      new FunctionKernel(std::move(run), traits));  // make_unique would be compiled for each of thousands of classes
}

/// The answer of a row that cannot accept a description.
inline std::unique_ptr<Kernel> refuse(std::string& why, std::string reason) {
  why = std::move(reason);
  return nullptr;
}

}  // namespace serin::kernels
