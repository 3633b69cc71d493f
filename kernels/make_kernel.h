// make_kernel.h: a Kernel from a lambda, for kernels that are one function and nothing else.
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
  return std::make_unique<FunctionKernel>(std::move(run), traits);
}

/// What a row answers when it cannot take a description.
inline std::unique_ptr<Kernel> refuse(std::string& why, std::string reason) {
  why = std::move(reason);
  return nullptr;
}

}  // namespace serin::kernels
