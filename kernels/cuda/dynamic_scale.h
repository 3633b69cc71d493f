// dynamic_scale.h: Converts f32 to u8 with the scale that fits the values (DynamicScale in kernels/quantise.h).
//
// One launch finds the range of many parts; another joins the parts and quantises.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/quant.h"

namespace serin::kernels::cuda {

namespace dynamic {

constexpr int kWarps = 8, kThreads = 32 * kWarps, kMostParts = 256;

struct Range {
  float low = 0, high = 0;  ///< includes 0
};

struct Widen {
  __device__ Range operator()(Range a, Range b) const { return {b.low < a.low ? b.low : a.low, b.high > a.high ? b.high : a.high}; }
};

static __global__ void find_range(const float* x, int64_t n, Range* parts) {
  Range range;
  for (int64_t i = first_element(); i < n; i += element_step()) range = Widen{}(range, {x[i], x[i]});
  range = combine_block<kWarps>(range, Widen{}, shared_memory<Range>());
  if (threadIdx.x == 0) parts[blockIdx.x] = range;
}

static __global__ void quantise(const float* x, int64_t n, const Range* parts, int count, uint8_t* y, float* scale, uint8_t* zero) {
  Range range;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) range = Widen{}(range, parts[i]);
  range = combine_block<kWarps>(range, Widen{}, shared_memory<Range>());
  const DynamicScale found = DynamicScale::of(range.low, range.high);
  for (int64_t i = first_element(); i < n; i += element_step()) y[i] = found.quantise(x[i]);
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = found.scale, *zero = found.zero;
}

}  // namespace dynamic

/// The scratch layout: the parts' ranges, and the bytes of a product's left operand with their scale and zero point.
class DynamicMemory {
 public:
  struct At {
    dynamic::Range* parts;
    float* scale;
    uint8_t *zero, *bytes;
  };
  explicit DynamicMemory(int64_t elements) : elements_(elements) {}
  static constexpr size_t kParts = dynamic::kMostParts * sizeof(dynamic::Range);
  size_t bytes() const { return kParts + 2 * kAlign + (static_cast<size_t>(elements_) + kAlign - 1) / kAlign * kAlign; }
  At at(std::byte* scratch) const {
    return {reinterpret_cast<dynamic::Range*>(scratch), reinterpret_cast<float*>(scratch + kParts),
            reinterpret_cast<uint8_t*>(scratch + kParts + kAlign), reinterpret_cast<uint8_t*>(scratch + kParts + 2 * kAlign)};
  }

 private:
  static constexpr size_t kAlign = 64;
  int64_t elements_;
};

inline Fault quantise_dynamically(const Stream& stream, const float* x, int64_t n, const DynamicMemory::At& at) {
  using namespace dynamic;
  constexpr int64_t kPart = 4 * kThreads;  // elements that justify a block
  const auto parts = static_cast<unsigned>(std::clamp<int64_t>(ceil_div(n, kPart), 1, kMostParts));
  const size_t shared = kWarps * sizeof(Range);
  if (Fault fault = launch(stream, {parts, kThreads, shared}, find_range, x, n, at.parts)) return fault;
  return launch(stream, {parts, kThreads, shared}, quantise, x, n, at.parts, static_cast<int>(parts), at.bytes, at.scale, at.zero);
}

}  // namespace serin::kernels::cuda
