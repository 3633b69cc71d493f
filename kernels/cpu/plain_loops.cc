// plain_loops.cc: Binary for what the vector loops of simd/ do not have: 32- and 64-bit integers, bool, and powers of floats. One loop for
// each function and type, over runs that are dense or one value; the compiler turns most of them into the vector code that every x86-64
// has.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/generic.h"
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
Loop integer_loop(BinaryFn fn) {
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

Loop bool_loop(BinaryFn fn) {
  switch (fn) {
    case BinaryFn::kAnd: return run<bool, bool, BinaryFn::kAnd>;
    case BinaryFn::kOr: return run<bool, bool, BinaryFn::kOr>;
    case BinaryFn::kXor: return run<bool, bool, BinaryFn::kXor>;
    default: return nullptr;
  }
}

/// Nothing here adds to what the C library's pow does, but the way to it is short.
void power_loop(const void* left, bool a_scalar, const void* right, bool b_scalar, void* result, int64_t n) {
  const float *a = static_cast<const float*>(left), *b = static_cast<const float*>(right);
  for (int64_t i = 0; i < n; ++i) static_cast<float*>(result)[i] = std::pow(a[a_scalar ? 0 : i], b[b_scalar ? 0 : i]);
}

Loop loop_for(BinaryFn fn, DType dtype) {
  switch (dtype) {
    case DType::kInt32: return integer_loop<int32_t>(fn);
    case DType::kInt64: return integer_loop<int64_t>(fn);
    case DType::kBool: return bool_loop(fn);
    case DType::kFloat32: return fn == BinaryFn::kPow ? power_loop : nullptr;
    default: return nullptr;
  }
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
      [loop, size = dtype_size(desc.inputs[0].dtype), y_size = dtype_size(expected)](Stream&, Inputs in, Outputs out) -> Fault {
        const Shape& y = out[0].shape;
        const Collapsed<2> space = collapse<2>(y, {broadcast_strides(in[0].shape, y), broadcast_strides(in[1].shape, y)});
        Shape outer = space.shape;
        const size_t last = outer.rank() - 1;
        const int64_t n = outer[last];
        outer[last] = 1;
        const auto at_byte = [](std::byte* data, int64_t element, size_t width) { return data + static_cast<size_t>(element) * width; };
        for_each<2>(outer, space.strides, [&](int64_t i, const auto& at) {
          if (n == 0) return;
          loop(at_byte(in[0].as<std::byte>(), at[0], size), space.strides[0][last] == 0, at_byte(in[1].as<std::byte>(), at[1], size),
               space.strides[1][last] == 0, at_byte(out[0].as<std::byte>(), i * n, y_size), n);
        });
        return kOk;
      });
}

}  // namespace serin::kernels::cpu
