// chain.h: The program of a Pointwise in the form that a kernel runs.
//
// chain_interpreted.cu interprets it. It is a parameter of the kernel, so every thread takes the same branches, and a step is decoded once
// for a group of elements. In a kernel that is compiled for one program (chain_compiled.h) it is a constant: nothing is decoded, and values
// kept for later steps stay in registers.
//
// A thread takes eight adjacent elements at a time through each step, in f32 between steps whatever the types in memory. The step that
// reads an input loads it.
#pragma once

#include "kernels/cuda/pack.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"

namespace serin::kernels::cuda {

inline constexpr int kChainGroup = 8, kChainInputs = 8, kChainSteps = 32;

using ChainSpace = Space<kChainInputs>;

/// The type in memory.
enum class Element : uint8_t { kFloat, kHalf, kBFloat16, kBool };

/// The layout of the input elements that a group needs.
enum class Place : uint8_t {
  kDense,    ///< as those of the result
  kSingle,   ///< a single element
  kRun,      ///< adjacent, at the address that the space gives
  kSame,     ///< all the same element, at the address that the space gives
  kStrided,  ///< at the addresses that the space gives
};

struct ChainInput {
  Element element = Element::kFloat;
  Place place = Place::kStrided;
};

/// The source of a step's operand: an input, a saved result, or the result of the step before.
struct ChainSource {
  static constexpr int8_t kBefore = -1;
  int8_t input = kBefore, kept = kBefore;
};

struct ChainStep {
  enum class Kind : uint8_t { kUnary, kPredicate, kBinary, kCompare, kSelect };
  Kind kind = Kind::kUnary;
  UnaryFn unary = UnaryFn::kIdentity;
  BinaryFn binary = BinaryFn::kAdd;
  ChainSource operands[3];
  int8_t keep = ChainSource::kBefore;  ///< the slot that saves its result
  float alpha = 0.f, beta = 0.f;
};

struct Chain {
  int steps = 0;
  int rank = 0;       ///< of the space
  bool wide = false;  ///< as in the space
  Element y = Element::kFloat;
  ChainInput inputs[kChainInputs];
  ChainStep program[kChainSteps];
};

struct ChainOperands {
  const void* inputs[kChainInputs] = {};
  void* y = nullptr;
};

template <int kCount>
struct ChainValues {
  float v[kCount];
};

/// y = f(element) for each element of a group.
template <int kCount, class F>
__device__ __forceinline__ ChainValues<kCount> each(F f) {
  ChainValues<kCount> y;
#pragma unroll
  for (int j = 0; j < kCount; ++j) y.v[j] = f(j);
  return y;
}

template <int kCount, class T>
__device__ __forceinline__ ChainValues<kCount> load_values(const T* x, Place place, int64_t step) {
  if (place == Place::kSingle || place == Place::kSame) {
    const auto value = static_cast<float>(load(*x));
    return each<kCount>([&](int) { return value; });
  }
  if (place == Place::kStrided) return each<kCount>([&](int j) { return static_cast<float>(load(x[j * step])); });
  const Pack<T, kCount> pack = load_pack<kCount>(x);
  return each<kCount>([&](int j) { return static_cast<float>(load(pack.values[j])); });
}

/// bools become 0 and 1 in float.
template <int kCount>
__device__ __forceinline__ ChainValues<kCount> load_input(const ChainInput& input, const void* x, int64_t at, int64_t step) {
  switch (input.element) {
    case Element::kBool: return load_values<kCount>(static_cast<const uint8_t*>(x) + at, input.place, step);
    case Element::kHalf: return load_values<kCount>(static_cast<const Half*>(x) + at, input.place, step);
    case Element::kBFloat16: return load_values<kCount>(static_cast<const BFloat16*>(x) + at, input.place, step);
    default: return load_values<kCount>(static_cast<const float*>(x) + at, input.place, step);
  }
}

template <int kCount, class T>
__device__ __forceinline__ void store_values(T* y, const ChainValues<kCount>& values) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int j = 0; j < kCount; ++j) pack.values[j] = cast<T>(values.v[j]);
  store_pack(y, pack);
}

/// Selects the function once for a group, for functions common in networks.
template <int kCount>
__device__ __forceinline__ ChainValues<kCount> compute_unary(const ChainStep& step, const ChainValues<kCount>& x) {
  const auto as = [&](auto fn) { return each<kCount>([&](int j) { return unary(decltype(fn)::value, x.v[j], step.alpha, step.beta); }); };
  switch (step.unary) {  // NOLINT(bugprone-branch-clone): branches of different types
#define SERIN_CHAIN_Common(name) \
  case UnaryFn::k##name: return as(std::integral_constant<UnaryFn, UnaryFn::k##name>());
#define SERIN_CHAIN_Rare(name)
#define SERIN_UNARY(name, word, alpha, beta, epilogue, chain, ...) SERIN_CHAIN_##chain(name)
#include "kernels/functions.def"
#undef SERIN_CHAIN_Common
    default: return each<kCount>([&](int j) { return unary(step.unary, x.v[j], step.alpha, step.beta); });
  }
}

template <int kCount>
__device__ __forceinline__ ChainValues<kCount> compute_binary(BinaryFn function, const ChainValues<kCount>& a,
                                                              const ChainValues<kCount>& b) {
  const auto as = [&](auto fn) { return each<kCount>([&](int j) { return binary(decltype(fn)::value, a.v[j], b.v[j]); }); };
  switch (function) {  // NOLINT(bugprone-branch-clone): branches of different types
#define SERIN_CHAIN_Common(name) \
  case BinaryFn::k##name: return as(std::integral_constant<BinaryFn, BinaryFn::k##name>());
#define SERIN_BINARY(name, loop, chain, ...) SERIN_CHAIN_##chain(name)
#include "kernels/functions.def"
#undef SERIN_CHAIN_Common
#undef SERIN_CHAIN_Rare
    default: return each<kCount>([&](int j) { return binary(function, a.v[j], b.v[j]); });
  }
}

template <int kCount>
__device__ __forceinline__ ChainValues<kCount> compute(const ChainStep& step, const ChainValues<kCount>& a, const ChainValues<kCount>& b,
                                                       const ChainValues<kCount>& c) {
  switch (step.kind) {
    case ChainStep::Kind::kUnary: return compute_unary(step, a);
    case ChainStep::Kind::kPredicate:
      return each<kCount>([&](int j) { return unary_predicate(step.unary, a.v[j], step.alpha) ? 1.f : 0.f; });
    case ChainStep::Kind::kBinary: return compute_binary(step.binary, a, b);
    case ChainStep::Kind::kCompare: return each<kCount>([&](int j) { return binary_predicate(step.binary, a.v[j], b.v[j]) ? 1.f : 0.f; });
    case ChainStep::Kind::kSelect: return each<kCount>([&](int j) { return a.v[j] != 0.f ? b.v[j] : c.v[j]; });
  }
  return a;
}

/// A thread's state for its current group.
template <int kCount>
struct ChainState {
  int64_t i;  ///< the first element
  int64_t at[kChainInputs];
  ChainValues<kCount> kept[kChainSteps], result;
};

template <int kCount>
__device__ __forceinline__ void run_step(const Chain& chain, const ChainStep& step, const ChainOperands& operands, const ChainSpace& space,
                                         ChainState<kCount>& state) {
  const auto operand = [&](int k) {
    const ChainSource from = step.operands[k];
    if (from.input < 0) return from.kept >= 0 ? state.kept[from.kept] : state.result;
    const ChainInput input = chain.inputs[from.input];
    const int64_t where = input.place == Place::kDense ? state.i : input.place == Place::kSingle ? 0 : state.at[from.input];
    return load_input<kCount>(input, operands.inputs[from.input], where, space.strides[from.input][chain.rank - 1]);
  };
  const ChainValues<kCount> a = operand(0);
  const ChainValues<kCount> b = step.kind == ChainStep::Kind::kUnary || step.kind == ChainStep::Kind::kPredicate ? a : operand(1);
  const ChainValues<kCount> c = step.kind == ChainStep::Kind::kSelect ? operand(2) : a;
  state.result = compute(step, a, b, c);
  if (step.keep >= 0) state.kept[step.keep] = state.result;
}

/// All elements, by all threads of a one-dimensional grid, kCount at a time: the rows of the space must be multiples of it. `run_steps`
/// takes a state through all steps.
template <int kCount, class F>
__device__ __forceinline__ void run_chain(const Chain& chain, const ChainOperands& operands, const ChainSpace& space, F run_steps) {
  for (int64_t i = first_element() * kCount; i < space.elements; i += element_step() * kCount) {
    ChainState<kCount> state;
    state.i = i, state.result = {};
    space.locate_in(chain.rank, chain.wide, i, state.at);
    run_steps(state);
    switch (chain.y) {
      case Element::kHalf: store_values(static_cast<Half*>(operands.y) + i, state.result); break;
      case Element::kBFloat16: store_values(static_cast<BFloat16*>(operands.y) + i, state.result); break;
      default: store_values(static_cast<float*>(operands.y) + i, state.result); break;
    }
  }
}

/// The steps of Program::kChain from kStep on, each with constants instead of decoding. An unrolled loop would do the same, but compilers
/// do not unroll one of this length.
template <class Program, int kStep, int kCount>
__device__ __forceinline__ void run_steps_of(const ChainOperands& operands, const ChainSpace& space, ChainState<kCount>& state) {
  if constexpr (kStep < Program::kChain.steps) {
    run_step(Program::kChain, Program::kChain.program[kStep], operands, space, state);
    run_steps_of<Program, kStep + 1>(operands, space, state);
  }
}

/// run_chain for a constant program.
template <class Program, int kCount>
__device__ __forceinline__ void run_compiled(const ChainOperands& operands, const ChainSpace& space) {
  run_chain<kCount>(Program::kChain, operands, space, [&](ChainState<kCount>& state) { run_steps_of<Program, 0>(operands, space, state); });
}

}  // namespace serin::kernels::cuda
