// pointwise.cu: Unary, Binary, Select and StridedCopy: one element of the result per step of a thread, computed by kernels/functors.h.
//
// Where all operands lie as the result does (or are one number) a thread takes 16 bytes of the widest type at a time: these kernels move memory and do
// little else. So it does where they differ in outer axes alone, as a factor for each channel of an image. Any other shape goes through Space. The functions of
// floats that follow products have kernels of their own; others are a parameter. Chains of them are one kernel (chain_interpreted.cu).

#include <optional>

#include "kernels/cuda/dense.h"
#include "kernels/cuda/known_function.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;
using ref::refuse_dtype;
using ref::visit_dtype;

/// y[i] = f(a[i], b[i]); an operand that is one number has step 0.
template <int kCount, class T, class Out, class F>
__global__ void map_dense2(F f, const T* a, int a_step, const T* b, int b_step, Out* y, int64_t n, bool aligned) {
  for (int64_t i = first_element() * kCount; i < n; i += element_step() * kCount) {
    if (aligned && i + kCount <= n) {
      Pack<T, kCount> left, right;
      if (a_step)
        left = load_pack<kCount>(a + i);
      else
        for (int k = 0; k < kCount; ++k) left.values[k] = *a;
      if (b_step)
        right = load_pack<kCount>(b + i);
      else
        for (int k = 0; k < kCount; ++k) right.values[k] = *b;
      Pack<Out, kCount> out;
#pragma unroll
      for (int k = 0; k < kCount; ++k) out.values[k] = f(left.values[k], right.values[k]);
      store_pack(y + i, out);
    } else {
      for (int64_t k = i; k < n && k < i + kCount; ++k) y[k] = f(a[k * a_step], b[k * b_step]);
    }
  }
}

/// The same of a space whose rows are whole packs; along them operands are dense, or one number.
template <int kCount, class T, class Out, class F>
__global__ void map_rows2(F f, const T* a, const T* b, Space<2> packs, int a_step, int b_step, Out* y) {
  const auto read = [](const T* x, int step) {
    if (step) return load_pack<kCount>(x);
    Pack<T, kCount> same;
    for (int k = 0; k < kCount; ++k) same.values[k] = *x;
    return same;
  };
  for (int64_t i = first_element(); i < packs.elements; i += element_step()) {
    int64_t at[2];
    packs.locate(i, at);
    const auto left = read(a + at[0], a_step), right = read(b + at[1], b_step);
    Pack<Out, kCount> out;
#pragma unroll
    for (int k = 0; k < kCount; ++k) out.values[k] = f(left.values[k], right.values[k]);
    store_pack(y + i * kCount, out);
  }
}

/// y[i] = f(where element i lies in each operand).
template <int kOperands, class Out, class F>
__global__ void map_space(F f, Space<kOperands> space, Out* y) {
  for (int64_t i = first_element(); i < space.elements; i += element_step()) {
    int64_t at[kOperands];
    space.locate(i, at);
    y[i] = f(at);
  }
}

template <int kOperands, class Out, class F>
Fault run_space(const Stream& stream, const Space<kOperands>& space, F f, Out* y) {
  return launch(stream, {blocks_for(space.elements, kBlockThreads), kBlockThreads}, map_space<kOperands, Out, F>, f, space, y);
}

template <class T, class Out, class F>
Fault run_dense2(const Stream& stream, F f, const T* a, int a_step, const T* b, int b_step, Out* y, int64_t n) {
  constexpr int kCount = kPack<T, Out>;
  const bool aligned = (!a_step || is_aligned<T, kCount>(a)) && (!b_step || is_aligned<T, kCount>(b)) && is_aligned<Out, kCount>(y);
  return launch(stream, {blocks_for(n, int64_t{kBlockThreads} * kCount), kBlockThreads}, map_dense2<kCount, T, Out, F>, f, a, a_step, b,
                b_step, y, n, aligned);
}

template <class T>
struct UnaryOf {
  UnaryFn fn;
  float alpha, beta;
  __device__ T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return fn == UnaryFn::kNot ? !x : x;
    else
      return cast<T>(unary(fn, load(x), alpha, beta));
  }
};

/// 1 / x to the last bit but one.
__device__ inline float reciprocal(float x) {
#if defined(__CUDACC__)
  return __fdividef(1.f, x);
#else
  return 1.f / x;
#endif
}

/// x erfc(-x / sqrt 2) / 2 in a third of the instructions, for results of 16 bits: at most one unit in the last place of f16 off, 3.3e-7 in all. The complement is
/// Abramowitz and Stegun's 7.1.26, so that nothing cancels where x is negative.
__device__ inline float gelu_of_16_bits(float x) {
  const float z = std::fabs(x) * 0.70710678f, t = reciprocal(1.f + 0.3275911f * z);
  const float p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
  const float tail = 0.5f * p * std::exp2(-1.44269504f * z * z);
  return x * (x < 0.f ? tail : 1.f - tail);
}

/// Of floats, computed in f32.
template <class T, class F>
struct FloatOf {
  F f;
  __device__ T operator()(T x) const {
    if constexpr (sizeof(T) == 2 && std::is_same_v<F, KnownFunction<UnaryFn::kGelu>>)
      return cast<T>(gelu_of_16_bits(load(x)));
    else
      return cast<T>(f(load(x)));
  }
};

template <class T>
struct PredicateOf {
  UnaryFn fn;
  float alpha;
  __device__ bool operator()(T x) const { return unary_predicate(fn, load(x), alpha); }
};

template <class T>
struct BinaryOf {
  BinaryFn fn;
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return binary_predicate(fn, a, b);
    else
      return cast<T>(binary(fn, load(a), load(b)));
  }
};

template <class T>
struct CompareOf {
  BinaryFn fn;
  __device__ bool operator()(T a, T b) const { return binary_predicate(fn, load(a), load(b)); }
};

/// x, or x times its slope below zero.
template <class T>
struct PReluOf {
  __device__ T operator()(T x, T slope) const { return load(x) < 0 ? cast<T>(binary(BinaryFn::kMul, load(x), load(slope))) : x; }
};

template <class T, class F>
struct At2 {
  F f;
  const T *a, *b;
  __device__ auto operator()(const int64_t (&at)[2]) const { return f(a[at[0]], b[at[1]]); }
};

/// A space of packs of kCount elements of the innermost axis; nothing where rows are no whole packs, or an operand is neither dense nor one number there.
template <int kCount>
std::optional<Space<2>> in_packs(const Space<2>& space) {
  const int last = space.rank - 1;
  if (space.rank < 2 || kCount == 1 || space.dims[last] % kCount != 0) return std::nullopt;
  Space<2> packs = space;
  packs.elements /= kCount, packs.dims[last] /= kCount;
  if (!packs.wide) packs.divisors[last] = Divisor(static_cast<uint32_t>(packs.dims[last]));
  for (int k = 0; k < 2; ++k) {
    if (space.strides[k][last] != 0 && space.strides[k][last] != 1) return std::nullopt;
    packs.strides[k][last] *= kCount;
    for (int axis = 0; axis < last; ++axis) {
      if (space.strides[k][last] == 1 && space.strides[k][axis] % kCount != 0) return std::nullopt;
    }
  }
  return packs;
}

template <class T, class Out, class F>
std::unique_ptr<Kernel> map2(const OpDesc& desc, F f) {
  constexpr int kCount = kPack<T, Out>;
  const Shape& y = desc.outputs[0].shape;
  const Space<2> space(y, {broadcast_strides(desc.inputs[0].shape, y), broadcast_strides(desc.inputs[1].shape, y)});
  return make_kernel([space, packs = in_packs<kCount>(space), f](Stream& stream, Inputs in, Outputs out) -> Fault {
    if (packs && is_aligned<T, kCount>(in[0].as<const T>()) && is_aligned<T, kCount>(in[1].as<const T>()) &&
        is_aligned<Out, kCount>(out[0].as<const Out>())) {
      const int last = space.rank - 1;
      return launch(stream, {blocks_for(packs->elements, kBlockThreads), kBlockThreads}, map_rows2<kCount, T, Out, F>, f,
                    in[0].as<const T>(), in[1].as<const T>(), *packs, static_cast<int>(space.strides[0][last]),
                    static_cast<int>(space.strides[1][last]), out[0].as<Out>());
    }
    const T *a = in[0].as<const T>(), *b = in[1].as<const T>();
    if (space.is_dense()) {
      return run_dense2<T, Out>(stream, f, a, static_cast<int>(space.strides[0][0]), b, static_cast<int>(space.strides[1][0]),
                                out[0].as<Out>(), space.elements);
    }
    return run_space(stream, space, At2<T, F>{f, a, b}, out[0].as<Out>());
  });
}

template <class T>
struct SelectAt {
  const bool* condition;
  const T *a, *b;
  __device__ T operator()(const int64_t (&at)[3]) const { return condition[at[0]] ? a[at[1]] : b[at[2]]; }
};

template <class T>
struct CopyAt {
  const T* x;
  __device__ T operator()(const int64_t (&at)[1]) const { return x[at[0]]; }
};

}  // namespace

Prepared prepare_unary(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Unary op = std::get<Unary>(desc.op);
  return visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return refuse_dtype(why, desc.inputs[0].dtype);
    } else {
      if (is_predicate(op.fn) && op.fn != UnaryFn::kNot) {
        return make_kernel([f = PredicateOf<T>{op.fn, op.alpha}](Stream& stream, Inputs in, Outputs out) -> Fault {
          return run_dense(stream, f, in[0].as<const T>(), out[0].as<bool>(), in[0].elements());
        });
      }
      if (!unary_accepts<T>(op.fn)) return refuse_dtype(why, desc.inputs[0].dtype);
      if constexpr (std::is_same_v<compute_t<T>, float>) {
        return make_kernel([any = AnyFunction{op.fn, op.alpha, op.beta}](Stream& stream, Inputs in, Outputs out) -> Fault {
          return with_function<UnaryFn::kGelu, UnaryFn::kGeluTanh, UnaryFn::kSilu, UnaryFn::kSigmoid, UnaryFn::kTanh, UnaryFn::kRelu>(
              any,
              [&]<class F>(F f) { return run_dense(stream, FloatOf<T, F>{f}, in[0].as<const T>(), out[0].as<T>(), in[0].elements()); });
        });
      } else {
        return make_kernel([f = UnaryOf<T>{op.fn, op.alpha, op.beta}](Stream& stream, Inputs in, Outputs out) -> Fault {
          return run_dense(stream, f, in[0].as<const T>(), out[0].as<T>(), in[0].elements());
        });
      }
    }
  });
}

Prepared prepare_binary(const OpDesc& desc, PrepareContext&, std::string& why) {
  const BinaryFn fn = std::get<Binary>(desc.op).fn;
  return visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return refuse_dtype(why, desc.inputs[0].dtype);
    } else {
      if (!binary_accepts<T>(fn)) return refuse_dtype(why, desc.inputs[0].dtype);
      if (is_compare(fn)) return map2<T, bool>(desc, CompareOf<T>{fn});
      return map2<T, T>(desc, BinaryOf<T>{fn});
    }
  });
}

Prepared prepare_prelu(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!ref::one_dtype(desc) || !broadcasts_to(desc.inputs[1].shape, desc.outputs[0].shape))
    return refuse(why, "the slope does not fit the input");
  return ref::for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared { return map2<T, T>(desc, PReluOf<T>{}); });
}

Prepared prepare_select(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape& y = desc.outputs[0].shape;
  const Space<3> space(y, {broadcast_strides(desc.inputs[0].shape, y), broadcast_strides(desc.inputs[1].shape, y),
                           broadcast_strides(desc.inputs[2].shape, y)});
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([space](Stream& stream, Inputs in, Outputs out) -> Fault {
      return run_space(stream, space, SelectAt<T>{in[0].as<const bool>(), in[1].as<const T>(), in[2].as<const T>()}, out[0].as<T>());
    });
  });
}

Prepared prepare_strided_copy(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<StridedCopy>(desc.op);
  Strides strides{};
  std::copy(op.strides.begin(), op.strides.end(), strides.begin());
  const Space<1> space(desc.outputs[0].shape, {strides});
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([space, offset = op.offset](Stream& stream, Inputs in, Outputs out) -> Fault {
      return run_space(stream, space, CopyAt<T>{in[0].as<const T>() + offset}, out[0].as<T>());
    });
  });
}

}  // namespace serin::kernels::cuda
