// aligned.h: Checks the addresses of operands for kernels of libraries that assume an alignment.
//
// A tensor in the arena or among the weights begins at a multiple of 256 bytes. A view of one (a slice, or a part of a Concat) may begin at
// any element, which is known only in the run.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "kernels/make_kernel.h"

namespace serin::kernels::cuda {

/// Absent operands (null) count as aligned.
inline bool is_aligned_to(size_t bytes, std::span<const TensorView> operands) {
  return std::ranges::all_of(operands, [bytes](const TensorView& each) { return reinterpret_cast<uintptr_t>(each.data) % bytes == 0; });
}

/// `kernel` if all operands of a run begin at multiples of 16 bytes, otherwise `other`. Null if `other` is null.
inline std::unique_ptr<Kernel> aligned_or(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> other) {
  class Either final : public Kernel {
   public:
    Either(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> other) : kernel_(std::move(kernel)), other_(std::move(other)) {}
    std::string_view name() const override { return kernel_->name(); }
    size_t scratch_bytes() const override { return std::max(kernel_->scratch_bytes(), other_->scratch_bytes()); }
    Fault run(Stream& stream, Inputs in, Outputs out) const override {
      const bool aligned = is_aligned_to(16, in) && is_aligned_to(16, out);
      return (aligned ? kernel_ : other_)->run(stream, in, out);
    }

   private:
    const std::unique_ptr<Kernel> kernel_, other_;
  };
  if (!kernel || !other) return nullptr;
  return std::make_unique<Either>(std::move(kernel), std::move(other));
}

}  // namespace serin::kernels::cuda
