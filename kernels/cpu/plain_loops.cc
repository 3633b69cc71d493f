// plain_loops.cc: Unary and Binary for the types and functions that the vector loops of simd/ lack: integers of 8, 32 and 64 bits, f64, bool,
// Mod of floats, and tests of floats. There is one loop for each function and type, over runs that are dense or one value. The compiler
// turns most of them into the vector code that every x86-64 has.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/ranges.h"
#include "kernels/functors.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

using Loop = void (*)(const void* a, bool a_scalar, const void* b, bool b_scalar, void* y, int64_t n);

template <class T, class D, BinaryFn kFn>
D apply(T a, T b) {
  if constexpr (is_compare(kFn) || is_logical(kFn))
    return binary_predicate(kFn, a, b);
  else
    return binary(kFn, a, b);
}

/// std::fmod goes bit by bit. Where the quotient has at most 29 bits, its product with a float is exact in double, and so is what is left.
template <>
float apply<float, float, BinaryFn::kFMod>(float a, float b) {
  const double quotient = static_cast<double>(a) / static_cast<double>(b);
  if (!(std::fabs(quotient) < 0x1p29) || std::isinf(b)) return binary(BinaryFn::kFMod, a, b);
  double rest = static_cast<double>(a) - static_cast<double>(static_cast<int32_t>(quotient)) * static_cast<double>(b);
  if (rest != 0 && (rest < 0) != (a < 0)) rest += std::copysign(static_cast<double>(b), static_cast<double>(a));  // it was rounded up
  return std::copysign(static_cast<float>(rest), a);
}

template <class T, class D, BinaryFn kFn>
void run(const void* left, bool a_scalar, const void* right, bool b_scalar, void* result, int64_t n) {
  const T *a = static_cast<const T*>(left), *b = static_cast<const T*>(right);
  D* y = static_cast<D*>(result);
  const T a0 = *a, b0 = *b;
  if (a_scalar && b_scalar) {
    std::fill_n(y, n, apply<T, D, kFn>(a0, b0));
  } else if (a_scalar) {
    for (int64_t i = 0; i < n; ++i) y[i] = apply<T, D, kFn>(a0, b[i]);
  } else if (b_scalar) {
    for (int64_t i = 0; i < n; ++i) y[i] = apply<T, D, kFn>(a[i], b0);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = apply<T, D, kFn>(a[i], b[i]);
  }
}

template <class T>
Loop number_loop(BinaryFn fn) {
  switch (fn) {
    case BinaryFn::kAdd: return run<T, T, BinaryFn::kAdd>;
    case BinaryFn::kSub: return run<T, T, BinaryFn::kSub>;
    case BinaryFn::kMul: return run<T, T, BinaryFn::kMul>;
    case BinaryFn::kDiv: return run<T, T, BinaryFn::kDiv>;
    case BinaryFn::kMod: return run<T, T, BinaryFn::kMod>;
    case BinaryFn::kMin: return run<T, T, BinaryFn::kMin>;
    case BinaryFn::kMax: return run<T, T, BinaryFn::kMax>;
    case BinaryFn::kEqual: return run<T, bool, BinaryFn::kEqual>;
    case BinaryFn::kLess: return run<T, bool, BinaryFn::kLess>;
    case BinaryFn::kLessOrEqual: return run<T, bool, BinaryFn::kLessOrEqual>;
    case BinaryFn::kGreater: return run<T, bool, BinaryFn::kGreater>;
    case BinaryFn::kGreaterOrEqual: return run<T, bool, BinaryFn::kGreaterOrEqual>;
    default: return nullptr;
  }
}

/// Without the branches of && and ||.
template <BinaryFn kFn>
uint8_t combine(uint8_t a, uint8_t b) {
  const int left = a != 0 ? 1 : 0, right = b != 0 ? 1 : 0;
  return static_cast<uint8_t>(kFn == BinaryFn::kAnd ? left & right : kFn == BinaryFn::kOr ? left | right : left ^ right);
}

template <BinaryFn kFn>
void run_bool(const void* left, bool a_scalar, const void* right, bool b_scalar, void* result, int64_t n) {
  if (a_scalar) {
    std::swap(left, right);
    std::swap(a_scalar, b_scalar);
  }
  const auto *a = static_cast<const uint8_t*>(left), *b = static_cast<const uint8_t*>(right);
  auto* y = static_cast<uint8_t*>(result);
  const uint8_t b0 = *b;
  if (a_scalar) {
    std::fill_n(y, n, combine<kFn>(*a, b0));
  } else if (b_scalar) {
    for (int64_t i = 0; i < n; ++i) y[i] = combine<kFn>(a[i], b0);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = combine<kFn>(a[i], b[i]);
  }
}

Loop bool_loop(BinaryFn fn) {
  switch (fn) {
#define SERIN_LOGICAL_FN(name, ...) \
  case BinaryFn::k##name: return run_bool<BinaryFn::k##name>;
#include "kernels/functions.def"
    default: return nullptr;
  }
}

Loop loop_for(BinaryFn fn, DType dtype) {
  switch (dtype) {
    case DType::kInt8: return number_loop<int8_t>(fn);
    case DType::kUInt8: return number_loop<uint8_t>(fn);
    case DType::kInt32: return number_loop<int32_t>(fn);
    case DType::kInt64: return number_loop<int64_t>(fn);
    case DType::kFloat32: return fn == BinaryFn::kFMod ? run<float, float, BinaryFn::kFMod> : nullptr;
    case DType::kFloat64: return number_loop<double>(fn);
    case DType::kBool: return bool_loop(fn);
    default: return nullptr;
  }
}

/// y = f(x), a bool.
template <class T, class F>
Prepared over_elements(F f) {
  return make_kernel([f](Stream& stream, Inputs in, Outputs out) -> Fault {
    parallel_ranges(stream, in[0].elements(), kElements, [&](int64_t begin, int64_t end) {
      const T* x = in[0].as<const T>();
      uint8_t* y = out[0].as<uint8_t>();
      for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]) ? 1 : 0;
    });
    return kOk;
  });
}

}  // namespace

Prepared binary_plain(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const BinaryFn fn = std::get<Binary>(desc.op).fn;
  if (desc.inputs.size() != 2 || desc.inputs[0].dtype != desc.inputs[1].dtype) return refuse(why, "operands differ in dtype");
  const Loop loop = loop_for(fn, desc.inputs[0].dtype);
  if (!loop) return refuse(why, "no loop for this function and dtype");
  const DType expected = is_compare(fn) || is_logical(fn) ? DType::kBool : desc.inputs[0].dtype;
  if (desc.outputs[0].dtype != expected) return refuse(why, "output has the wrong dtype");
  return make_kernel(
      [loop, size = dtype_size(desc.inputs[0].dtype), y_size = dtype_size(expected)](Stream& stream, Inputs in, Outputs out) -> Fault {
        const Shape& y = out[0].shape;
        const Collapsed<2> space = collapse<2>(y, {broadcast_strides(in[0].shape, y), broadcast_strides(in[1].shape, y)});
        Shape outer = space.shape;
        const size_t last = outer.rank() - 1;
        const int64_t n = outer[last];
        outer[last] = 1;
        if (n == 0) return kOk;
        const auto at_byte = [](const TensorView& view, int64_t element, size_t width) {
          return view.as<std::byte>() + static_cast<size_t>(element) * width;
        };
        parallel_rows(stream, outer.elements(), n, [&](int64_t begin, int64_t end) {
          for_each_in<2>(outer, space.strides, begin, end, [&](int64_t i, const auto& at) {
            loop(at_byte(in[0], at[0], size), space.strides[0][last] == 0, at_byte(in[1], at[1], size), space.strides[1][last] == 0,
                 at_byte(out[0], i * n, y_size), n);
          });
        });
        return kOk;
      });
}

Prepared unary_plain(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const Unary op = std::get<Unary>(desc.op);
  if (desc.inputs.size() != 1 || desc.outputs[0].dtype != DType::kBool) return refuse(why, "does not return bool");
  const DType dtype = desc.inputs[0].dtype;
  if (op.fn == UnaryFn::kNot && dtype == DType::kBool) return over_elements<uint8_t>([](uint8_t x) { return x == 0; });
  if (dtype != DType::kFloat32) return refuse(why, "no loop for this function and dtype");
  if (op.fn == UnaryFn::kIsNaN) return over_elements<float>([](float x) { return x != x; });
  if (op.fn != UnaryFn::kIsInf) return refuse(why, "no loop for this function and dtype");
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (op.alpha == 0) return over_elements<float>([](float x) { return std::fabs(x) == kInf; });
  return over_elements<float>([wanted = op.alpha > 0 ? kInf : -kInf](float x) { return x == wanted; });
}

}  // namespace serin::kernels::cpu
