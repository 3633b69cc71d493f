// chain.cu: Pointwise: a small program of functions for each element, f32 between its steps whatever the types in memory.
//
// The program is a parameter of the kernel, so every thread takes the same branches. A thread takes eight neighbouring elements at a time through each step,
// so that a step is decoded once for eight. The result of a step stays in registers for the next one; an input is loaded by the step that reads it. What is
// read later than by the next step is kept aside, in memory of the thread's own.

#include "kernels/cuda/launch.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/pointwise.h"

namespace serin::kernels::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kGroup = 8;
constexpr int kInputs = static_cast<int>(Pointwise::kMaxInputs), kSteps = static_cast<int>(Pointwise::kMaxSteps);

enum class Kind : uint8_t { kUnary, kPredicate, kBinary, kCompare, kSelect };

/// Where a step finds an operand: an input, a result kept aside, or the result of the step before.
struct Source {
  static constexpr int8_t kBefore = -1;
  int8_t input = kBefore, kept = kBefore;
};

struct ChainStep {
  Kind kind = Kind::kUnary;
  UnaryFn unary = UnaryFn::kIdentity;
  BinaryFn binary = BinaryFn::kAdd;
  Source operands[3];
  int8_t keep = Source::kBefore;  ///< where its result is kept aside
  float alpha = 0.f, beta = 0.f;
};

struct Chain {
  int steps = 0;
  const void* data[kInputs] = {};
  DType types[kInputs] = {};
  DType y_type = DType::kFloat32;
  int64_t inner[kInputs] = {};  ///< from an element of an input to its next neighbour
  ChainStep program[kSteps];
};

template <int kCount>
struct Values {
  float v[kCount];
};

template <int kCount, class T>
__device__ Values<kCount> load_values(const T* x, int64_t step) {
  Values<kCount> result;
  if (kCount > 1 && step == 1) {
    const Pack<T, kCount> pack = load_pack<kCount>(x);
#pragma unroll
    for (int j = 0; j < kCount; ++j) result.v[j] = static_cast<float>(load(pack.values[j]));
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) result.v[j] = static_cast<float>(load(x[j * step]));
  }
  return result;
}

/// bools are 0 and 1 among the floats.
template <int kCount>
__device__ Values<kCount> load_input(const Chain& chain, int k, int64_t at) {
  switch (chain.types[k]) {
    case DType::kBool: return load_values<kCount>(static_cast<const uint8_t*>(chain.data[k]) + at, chain.inner[k]);
    case DType::kFloat16: return load_values<kCount>(static_cast<const Half*>(chain.data[k]) + at, chain.inner[k]);
    case DType::kBFloat16: return load_values<kCount>(static_cast<const BFloat16*>(chain.data[k]) + at, chain.inner[k]);
    default: return load_values<kCount>(static_cast<const float*>(chain.data[k]) + at, chain.inner[k]);
  }
}

template <int kCount, class T>
__device__ void store_values(T* y, const Values<kCount>& values) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int j = 0; j < kCount; ++j) pack.values[j] = cast<T>(values.v[j]);
  store_pack(y, pack);
}

/// y = f(element) for each of a group.
template <int kCount, class F>
__device__ Values<kCount> each(F f) {
  Values<kCount> y;
#pragma unroll
  for (int j = 0; j < kCount; ++j) y.v[j] = f(j);
  return y;
}

/// Which function it is is asked once for a group where it is one that networks are made of.
template <int kCount>
__device__ Values<kCount> compute_unary(const ChainStep& step, const Values<kCount>& x) {
  const auto as = [&](auto fn) { return each<kCount>([&](int j) { return unary(decltype(fn)::value, x.v[j], step.alpha, step.beta); }); };
  switch (step.unary) {
    case UnaryFn::kRelu: return as(std::integral_constant<UnaryFn, UnaryFn::kRelu>());
    case UnaryFn::kClip: return as(std::integral_constant<UnaryFn, UnaryFn::kClip>());
    case UnaryFn::kSigmoid: return as(std::integral_constant<UnaryFn, UnaryFn::kSigmoid>());
    case UnaryFn::kSilu: return as(std::integral_constant<UnaryFn, UnaryFn::kSilu>());
    case UnaryFn::kTanh: return as(std::integral_constant<UnaryFn, UnaryFn::kTanh>());
    case UnaryFn::kGelu: return as(std::integral_constant<UnaryFn, UnaryFn::kGelu>());
    case UnaryFn::kHardSwish: return as(std::integral_constant<UnaryFn, UnaryFn::kHardSwish>());
    case UnaryFn::kHardSigmoid: return as(std::integral_constant<UnaryFn, UnaryFn::kHardSigmoid>());
    case UnaryFn::kExp: return as(std::integral_constant<UnaryFn, UnaryFn::kExp>());
    default: return each<kCount>([&](int j) { return unary(step.unary, x.v[j], step.alpha, step.beta); });
  }
}

template <int kCount>
__device__ Values<kCount> compute_binary(BinaryFn function, const Values<kCount>& a, const Values<kCount>& b) {
  const auto as = [&](auto fn) { return each<kCount>([&](int j) { return binary(decltype(fn)::value, a.v[j], b.v[j]); }); };
  switch (function) {
    case BinaryFn::kAdd: return as(std::integral_constant<BinaryFn, BinaryFn::kAdd>());
    case BinaryFn::kSub: return as(std::integral_constant<BinaryFn, BinaryFn::kSub>());
    case BinaryFn::kMul: return as(std::integral_constant<BinaryFn, BinaryFn::kMul>());
    case BinaryFn::kDiv: return as(std::integral_constant<BinaryFn, BinaryFn::kDiv>());
    default: return each<kCount>([&](int j) { return binary(function, a.v[j], b.v[j]); });
  }
}

template <int kCount>
__device__ Values<kCount> compute(const ChainStep& step, const Values<kCount>& a, const Values<kCount>& b, const Values<kCount>& c) {
  switch (step.kind) {
    case Kind::kUnary: return compute_unary(step, a);
    case Kind::kPredicate: return each<kCount>([&](int j) { return unary_predicate(step.unary, a.v[j], step.alpha) ? 1.f : 0.f; });
    case Kind::kBinary: return compute_binary(step.binary, a, b);
    case Kind::kCompare: return each<kCount>([&](int j) { return binary_predicate(step.binary, a.v[j], b.v[j]) ? 1.f : 0.f; });
    case Kind::kSelect: return each<kCount>([&](int j) { return a.v[j] != 0.f ? b.v[j] : c.v[j]; });
  }
  return a;
}

/// A row of the space is a multiple of kCount long.
template <int kCount>
__global__ void run_chain(Chain chain, Space<kInputs> space, void* y) {
  for (int64_t i = first_element() * kCount; i < space.elements; i += element_step() * kCount) {
    int64_t at[kInputs];
    space.locate(i, at);
    Values<kCount> kept[kSteps], result{};
    for (int s = 0; s < chain.steps; ++s) {
      const ChainStep& step = chain.program[s];
      const auto operand = [&](int k) {
        const Source from = step.operands[k];
        if (from.input >= 0) return load_input<kCount>(chain, from.input, at[from.input]);
        return from.kept >= 0 ? kept[from.kept] : result;
      };
      const Values<kCount> a = operand(0);
      const Values<kCount> b = step.kind == Kind::kUnary || step.kind == Kind::kPredicate ? a : operand(1);
      const Values<kCount> c = step.kind == Kind::kSelect ? operand(2) : a;
      result = compute(step, a, b, c);
      if (step.keep >= 0) kept[step.keep] = result;
    }
    switch (chain.y_type) {
      case DType::kFloat16: store_values(static_cast<Half*>(y) + i, result); break;
      case DType::kBFloat16: store_values(static_cast<BFloat16*>(y) + i, result); break;
      default: store_values(static_cast<float*>(y) + i, result); break;
    }
  }
}

ChainStep translate(const Pointwise::Step& step) {
  ChainStep made;
  if (const auto* u = std::get_if<Unary>(&step.function)) {
    made.kind = is_predicate(u->fn) ? Kind::kPredicate : Kind::kUnary;
    made.unary = u->fn, made.alpha = u->alpha, made.beta = u->beta;
  } else if (const auto* f = std::get_if<Binary>(&step.function)) {
    made.kind = is_compare(f->fn) || is_logical(f->fn) ? Kind::kCompare : Kind::kBinary;
    made.binary = f->fn;
  } else {
    made.kind = Kind::kSelect;
  }
  return made;
}

Chain chain_of(const OpDesc& desc) {
  const auto& op = std::get<Pointwise>(desc.op);
  const auto inputs = static_cast<int32_t>(desc.inputs.size());
  Chain chain;
  chain.y_type = desc.outputs[0].dtype;
  for (size_t k = 0; k < desc.inputs.size(); ++k) chain.types[k] = desc.inputs[k].dtype;
  int8_t kept = 0;
  for (const Pointwise::Step& step : op.steps) {
    ChainStep made = translate(step);
    for (size_t k = 0; k < operand_count(step); ++k) {
      const int32_t from = step.operands[k];
      if (from < inputs) {
        made.operands[k].input = static_cast<int8_t>(from);
      } else if (from - inputs != chain.steps - 1) {
        int8_t& keep = chain.program[from - inputs].keep;
        if (keep < 0) keep = kept++;
        made.operands[k].kept = keep;
      }
    }
    chain.program[chain.steps++] = made;
  }
  return chain;
}

}  // namespace

Prepared prepare_chain(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!pointwise_types(desc, why)) return nullptr;
  const Shape& y = desc.outputs[0].shape;
  std::array<Strides, kInputs> strides{};
  for (size_t k = 0; k < desc.inputs.size(); ++k) strides[k] = broadcast_strides(desc.inputs[k].shape, y);
  const Space<kInputs> space(y, strides);
  Chain chain = chain_of(desc);
  const int inner = space.rank - 1;
  for (int k = 0; k < kInputs; ++k) chain.inner[k] = space.strides[k][inner];
  return make_kernel([chain, space, in_groups = space.dims[inner] % kGroup == 0](Stream& stream, Inputs in, Outputs out) -> Fault {
    Chain call = chain;
    bool aligned = is_aligned<uint16_t, kGroup>(out[0].as<uint16_t>());
    for (size_t k = 0; k < in.size(); ++k) {
      call.data[k] = in[k].data;
      aligned = aligned && is_aligned<uint16_t, kGroup>(in[k].as<const uint16_t>());
    }
    if (in_groups && aligned)
      return launch(stream, {blocks_for(space.elements, kThreads * kGroup), kThreads}, run_chain<kGroup>, call, space, out[0].data);
    return launch(stream, {blocks_for(space.elements, kThreads), kThreads}, run_chain<1>, call, space, out[0].data);
  });
}

}  // namespace serin::kernels::cuda
