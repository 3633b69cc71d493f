// reduce_integers.cc: the largest and the smallest of integers over axes that lie side by side, in loops that the compiler makes vector code of.

#include <algorithm>
#include <limits>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

template <class T, bool kLargest>
T better(T a, T b) {
  return (kLargest ? a > b : a < b) ? a : b;
}

template <class T, bool kLargest>
T best_of(const T* x, int64_t n) {
  constexpr T kNone = kLargest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  T best = kNone;
  int64_t i = 0;
  if constexpr (sizeof(T) == 8) {  // SSE2 does not compare them, and one chain of scalar compares waits for itself
    T second = kNone, third = kNone, fourth = kNone;
    for (; i + 4 <= n; i += 4) {
      best = better<T, kLargest>(best, x[i]);
      second = better<T, kLargest>(second, x[i + 1]);
      third = better<T, kLargest>(third, x[i + 2]);
      fourth = better<T, kLargest>(fourth, x[i + 3]);
    }
    best = better<T, kLargest>(better<T, kLargest>(best, second), better<T, kLargest>(third, fourth));
  }
  for (; i < n; ++i) best = better<T, kLargest>(best, x[i]);
  return best;
}

/// y[j] = the best of x[i * inner + j] over i < n.
template <class T, bool kLargest>
void best_rows(const T* x, int64_t n, int64_t inner, T* y) {
  std::fill_n(y, inner, kLargest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max());
  for (int64_t i = 0; i < n; ++i, x += inner) {
    for (int64_t j = 0; j < inner; ++j) y[j] = better<T, kLargest>(y[j], x[j]);
  }
}

template <class T, bool kLargest>
Prepared best(size_t first, size_t end) {
  return make_kernel([first, end](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& shape = in[0].shape;
    const int64_t outer = product(shape, 0, first), n = product(shape, first, end), inner = product(shape, end, shape.rank());
    const T* x = in[0].as<const T>();
    T* y = out[0].as<T>();
    parallel_rows(stream, outer, n * inner, [&](int64_t from, int64_t to) {
      for (int64_t o = from; o < to; ++o) {
        if (inner == 1)
          y[o] = best_of<T, kLargest>(x + o * n, n);
        else
          best_rows<T, kLargest>(x + o * n * inner, n, inner, y + o * inner);
      }
    });
    return kOk;
  });
}

template <class T>
Prepared best(ReduceFn fn, size_t first, size_t end) {
  return fn == ReduceFn::kMax ? best<T, true>(first, end) : best<T, false>(first, end);
}

}  // namespace

Prepared reduce_integers(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const Reduce& op = std::get<Reduce>(desc.op);
  if (op.fn != ReduceFn::kMax && op.fn != ReduceFn::kMin) return refuse(why, "only the largest and the smallest");
  const auto rank = static_cast<int64_t>(desc.inputs[0].shape.rank());
  if (desc.outputs[0].dtype != desc.inputs[0].dtype || op.axes.empty()) return refuse(why, "another dtype, or no axes");
  const auto [low, high] = std::ranges::minmax(op.axes);
  if (low < 0 || high >= rank) return refuse(why, "an axis is out of range");
  for (int64_t axis = low; axis <= high; ++axis) {
    if (std::ranges::find(op.axes, axis) == op.axes.end()) return refuse(why, "only axes side by side");
  }
  const auto first = static_cast<size_t>(low), end = static_cast<size_t>(high) + 1;
  switch (desc.inputs[0].dtype) {
    case DType::kInt8: return best<int8_t>(op.fn, first, end);
    case DType::kUInt8: return best<uint8_t>(op.fn, first, end);
    case DType::kInt16: return best<int16_t>(op.fn, first, end);
    case DType::kUInt16: return best<uint16_t>(op.fn, first, end);
    case DType::kInt32: return best<int32_t>(op.fn, first, end);
    case DType::kInt64: return best<int64_t>(op.fn, first, end);
    default: return refuse(why, "no loop for this dtype");
  }
}

}  // namespace serin::kernels::cpu
