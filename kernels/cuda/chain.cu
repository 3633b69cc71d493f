// chain.cu: Pointwise: a small program of functions for each element. Values stay with the thread; only inputs and the result are in memory.
//
// The program is a parameter of the kernel, so every thread takes the same branches.

#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/pointwise.h"

namespace serin::kernels::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kInputs = static_cast<int>(Pointwise::kMaxInputs), kSteps = static_cast<int>(Pointwise::kMaxSteps);

enum class Kind : uint8_t { kUnary, kPredicate, kBinary, kCompare, kSelect };

struct ChainStep {
  Kind kind = Kind::kUnary;
  UnaryFn unary = UnaryFn::kIdentity;
  BinaryFn binary = BinaryFn::kAdd;
  int8_t a = 0, b = 0, c = 0;
  float alpha = 0.f, beta = 0.f;
};

struct Chain {
  int inputs = 0, steps = 0;
  const void* data[kInputs] = {};
  bool is_bool[kInputs] = {};
  ChainStep program[kSteps];
};

/// bools are 0 and 1 among the floats.
__global__ void run_chain(Chain chain, Space<kInputs> space, float* y, bool* y_bool) {
  for (int64_t i = first_element(); i < space.elements; i += element_step()) {
    int64_t at[kInputs];
    space.locate(i, at);
    float values[kInputs + kSteps];
    for (int k = 0; k < chain.inputs; ++k)
      values[k] =
          chain.is_bool[k] ? (static_cast<const bool*>(chain.data[k])[at[k]] ? 1.f : 0.f) : static_cast<const float*>(chain.data[k])[at[k]];
    float result = 0.f;
    for (int s = 0; s < chain.steps; ++s) {
      const ChainStep& step = chain.program[s];
      const float a = values[step.a], b = values[step.b], c = values[step.c];
      switch (step.kind) {
        case Kind::kUnary: result = unary(step.unary, a, step.alpha, step.beta); break;
        case Kind::kPredicate: result = unary_predicate(step.unary, a, step.alpha) ? 1.f : 0.f; break;
        case Kind::kBinary: result = binary(step.binary, a, b); break;
        case Kind::kCompare: result = binary_predicate(step.binary, a, b) ? 1.f : 0.f; break;
        case Kind::kSelect: result = a != 0.f ? b : c; break;
      }
      values[chain.inputs + s] = result;
    }
    if (y_bool)
      y_bool[i] = result != 0.f;
    else
      y[i] = result;
  }
}

ChainStep translate(const Pointwise::Step& step) {
  ChainStep made;
  made.a = static_cast<int8_t>(step.operands[0]), made.b = static_cast<int8_t>(step.operands[1]),
  made.c = static_cast<int8_t>(step.operands[2]);
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

}  // namespace

Prepared prepare_chain(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!pointwise_types(desc, why)) return nullptr;
  const auto& op = std::get<Pointwise>(desc.op);
  const Shape& y = desc.outputs[0].shape;
  Chain chain;
  chain.inputs = static_cast<int>(desc.inputs.size());
  std::array<Strides, kInputs> strides{};
  for (size_t k = 0; k < desc.inputs.size(); ++k) {
    chain.is_bool[k] = desc.inputs[k].dtype == DType::kBool;
    strides[k] = broadcast_strides(desc.inputs[k].shape, y);
  }
  for (const Pointwise::Step& step : op.steps) chain.program[chain.steps++] = translate(step);
  const Space<kInputs> space(y, strides);
  return make_kernel([chain, space](Stream& stream, Inputs in, Outputs out) -> Fault {
    Chain call = chain;
    for (size_t k = 0; k < in.size(); ++k) call.data[k] = in[k].data;
    const bool answers_bool = out[0].dtype == DType::kBool;
    return launch(stream, {blocks_for(space.elements, kThreads), kThreads}, run_chain, call, space,
                  answers_bool ? nullptr : out[0].as<float>(), answers_bool ? out[0].as<bool>() : nullptr);
  });
}

}  // namespace serin::kernels::cuda
