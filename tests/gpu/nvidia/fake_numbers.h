// fake_numbers.h: Numbers as the fake libraries read, round and write them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/float16.h"

namespace fake {

/// An element of f32, f16 or bf16.
inline double load(serin::DType dtype, const void* at, int64_t i) {
  using namespace serin;           // NOLINT: names of types
  using namespace serin::kernels;  // NOLINT: types and conversions of 16-bit floats
  if (dtype == DType::kFloat32) return static_cast<double>(static_cast<const float*>(at)[i]);
  if (dtype == DType::kFloat16) return static_cast<double>(to_float(static_cast<const Half*>(at)[i]));
  return static_cast<double>(to_float(static_cast<const BFloat16*>(at)[i]));
}
inline void store(serin::DType dtype, void* at, int64_t i, double value) {
  using namespace serin;           // NOLINT: names of types
  using namespace serin::kernels;  // NOLINT: as above
  const auto rounded = static_cast<float>(value);
  if (dtype == DType::kFloat32) static_cast<float*>(at)[i] = rounded;
  if (dtype == DType::kFloat16) static_cast<Half*>(at)[i] = to_half(rounded);
  if (dtype == DType::kBFloat16) static_cast<BFloat16*>(at)[i] = to_bfloat16(rounded);
}

/// With 10 bits of the fraction, as tensor cores read a float.
inline double tf32(double value) {
  const auto bits = (std::bit_cast<uint32_t>(static_cast<float>(value)) + 0x1000u) & ~0x1FFFu;
  return static_cast<double>(std::bit_cast<float>(bits));
}

inline double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

/// Whether this call is the one that fails; `calls_before` counts down to it, and is negative where none does.
inline bool fails_now(int& calls_before) { return calls_before >= 0 && calls_before-- == 0; }

}  // namespace fake
