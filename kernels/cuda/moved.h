// moved.h: Moves elements without reading their values, in the widest pieces that their addresses allow.
#pragma once

#include <cstdint>

#include "kernels/make_kernel.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

/// make(Element<T>{}) with an unsigned T of the dtype's size. Only strings have none, and they never occur here.
template <class F>
std::unique_ptr<Kernel> for_sizes(DType dtype, std::string& why, F&& make) {
  return ref::visit_size(dtype, [&]<class T>(ref::Element<T> element) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_integral_v<T>)
      return make(element);
    else
      return ref::refuse_dtype(why, dtype);
  });
}

struct alignas(16) Piece {
  uint64_t low, high;
};

/// run(Element<Piece>{}, elements of a piece) if all these lengths, in elements, are whole pieces and these addresses are aligned;
/// otherwise run(Element<T>{}, 1).
template <class T, class F>
Fault in_pieces(std::initializer_list<int64_t> lengths, std::initializer_list<const void*> addresses, F&& run) {
  constexpr auto kElements = static_cast<int64_t>(sizeof(Piece) / sizeof(T));
  bool whole = true;
  for (const int64_t each : lengths) whole = whole && each % kElements == 0;
  for (const void* each : addresses) whole = whole && reinterpret_cast<uintptr_t>(each) % sizeof(Piece) == 0;
  return whole ? run(ref::Element<Piece>{}, kElements) : run(ref::Element<T>{}, int64_t{1});
}

}  // namespace serin::kernels::cuda
