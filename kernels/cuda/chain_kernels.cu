// chain_kernels.cu: from a Pointwise to the program that kernels run, and to their launch.

#include "kernels/cuda/chain_kernels.h"

#include <array>
#include <bit>
#include <sstream>
#include <utility>

#include "kernels/cuda/chain_compiled.h"
#include "kernels/cuda/launch.h"
#include "kernels/pointwise.h"

namespace serin::kernels::cuda {

namespace {

static_assert(kChainInputs == Pointwise::kMaxInputs && kChainSteps == Pointwise::kMaxSteps);

ChainStep translate(const Pointwise::Step& step) {
  ChainStep made;
  if (const auto* u = std::get_if<Unary>(&step.function)) {
    made.kind = is_predicate(u->fn) ? ChainStep::Kind::kPredicate : ChainStep::Kind::kUnary;
    made.unary = u->fn, made.alpha = u->alpha, made.beta = u->beta;
  } else if (const auto* f = std::get_if<Binary>(&step.function)) {
    made.kind = is_compare(f->fn) || is_logical(f->fn) ? ChainStep::Kind::kCompare : ChainStep::Kind::kBinary;
    made.binary = f->fn;
  } else {
    made.kind = ChainStep::Kind::kSelect;
  }
  return made;
}

Element element_of(DType dtype) {
  switch (dtype) {
    case DType::kBool: return Element::kBool;
    case DType::kFloat16: return Element::kHalf;
    case DType::kBFloat16: return Element::kBFloat16;
    default: return Element::kFloat;
  }
}

Place place_of(const ChainSpace& space, int input) {
  const int64_t* const strides = space.strides[input];
  bool dense = true, single = true;
  int64_t stride = 1;
  for (int axis = space.rank - 1; axis >= 0; --axis) {
    dense = dense && strides[axis] == stride;
    single = single && strides[axis] == 0;
    stride *= space.dims[axis];
  }
  if (single) return Place::kSingle;
  if (dense) return Place::kDense;
  const int64_t inner = strides[space.rank - 1];
  return inner == 1 ? Place::kRun : inner == 0 ? Place::kSame : Place::kStrided;
}

Chain chain_of(const OpDesc& desc, const ChainSpace& space) {
  const auto inputs = static_cast<int32_t>(desc.inputs.size());
  Chain chain;
  chain.rank = space.rank, chain.wide = space.wide;
  chain.y = element_of(desc.outputs[0].dtype);
  for (int k = 0; k < inputs; ++k) chain.inputs[k] = {element_of(desc.inputs[static_cast<size_t>(k)].dtype), place_of(space, k)};
  int8_t kept = 0;
  for (const Pointwise::Step& step : std::get<Pointwise>(desc.op).steps) {
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

// ---- text ----

/// An initialiser, as C++ reads it: numbers, enumerators by their number, floats by their bits.
class Initialiser {
 public:
  Initialiser& number(int64_t value) {
    text_ << (first_ ? "" : ", ") << value;
    first_ = false;
    return *this;
  }
  template <class E>
  Initialiser& enumerator(const char* type, E value) {
    text_ << (first_ ? "" : ", ") << type << "(" << static_cast<int>(value) << ")";
    first_ = false;
    return *this;
  }
  Initialiser& real(float value) {
    text_ << (first_ ? "" : ", ") << "std::bit_cast<float>(" << std::bit_cast<uint32_t>(value) << "u)";
    first_ = false;
    return *this;
  }
  template <class F>
  Initialiser& braces(F inside) {
    text_ << (first_ ? "{" : ", {");
    first_ = true;
    inside();
    text_ << "}";
    first_ = false;
    return *this;
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  bool first_ = true;
};

std::string initialiser_of(const Chain& chain) {
  Initialiser text;
  const auto step = [&text](const ChainStep& made) {
    text.enumerator("ChainStep::Kind", made.kind).enumerator("UnaryFn", made.unary).enumerator("BinaryFn", made.binary);
    text.braces([&] {
      for (const ChainSource& from : made.operands) text.braces([&] { text.number(from.input).number(from.kept); });
    });
    text.number(made.keep).real(made.alpha).real(made.beta);
  };
  text.braces([&] {
    text.number(chain.steps).number(chain.rank).number(chain.wide).enumerator("Element", chain.y);
    text.braces([&] {
      for (const ChainInput& input : chain.inputs)
        text.braces([&] { text.enumerator("Element", input.element).enumerator("Place", input.place); });
    });
    text.braces([&] {
      for (int s = 0; s < chain.steps; ++s) text.braces([&] { step(chain.program[s]); });
    });
  });
  return text.text();
}

}  // namespace

std::optional<ChainPlan> plan_chain(const OpDesc& desc, std::string& why) {
  if (!pointwise_types(desc, why)) return std::nullopt;
  const Shape& y = desc.outputs[0].shape;
  std::array<Strides, kChainInputs> strides{};
  for (size_t k = 0; k < desc.inputs.size(); ++k) strides[k] = broadcast_strides(desc.inputs[k].shape, y);
  ChainPlan plan;
  plan.space = ChainSpace(y, strides);
  plan.chain = chain_of(desc, plan.space);
  plan.in_groups = plan.space.dims[plan.space.rank - 1] % kChainGroup == 0;
  return plan;
}

std::unique_ptr<Kernel> make_chain(const ChainPlan& plan, ChainLaunch launch_chain) {
  return make_kernel([plan, launch_chain = std::move(launch_chain)](Stream& stream, Inputs in, Outputs out) -> Fault {
    ChainOperands operands;
    operands.y = out[0].data;
    bool groups = plan.in_groups && is_aligned<uint16_t, kChainGroup>(out[0].as<uint16_t>());
    for (size_t k = 0; k < in.size(); ++k) {
      operands.inputs[k] = in[k].data;
      groups = groups && is_aligned<uint16_t, kChainGroup>(in[k].as<const uint16_t>());
    }
    const Grid grid{blocks_for(plan.space.elements, groups ? kBlockThreads * kChainGroup : kBlockThreads), kBlockThreads};
    return launch_chain(stream, grid, groups, operands, plan.space);
  });
}

std::string chain_text(const Chain& chain) {
  std::string text = "#include \"kernels/cuda/chain.h\"\n\nusing namespace serin::kernels;\nusing namespace serin::kernels::cuda;\n\n";
  text += "struct Program {\n  static constexpr Chain kChain = " + initialiser_of(chain) + ";\n};\n\n";
  for (const auto& [name, count] : {std::pair(kChainGroups, kChainGroup), std::pair(kChainSingles, 1)}) {
    text += "extern \"C\" __global__ __launch_bounds__(" + std::to_string(kBlockThreads) + ") void " + name +
            "(ChainOperands operands, ChainSpace space) {\n";
    text += "  run_compiled<Program, " + std::to_string(count) + ">(operands, space);\n}\n";
  }
  return text;
}

std::unique_ptr<Kernel> prepare_compiled_chain(const ChainCompiler& compile, const OpDesc& desc, std::string& why) {
  const std::optional<ChainPlan> plan = plan_chain(desc, why);
  if (!plan) return nullptr;
  const std::optional<ChainKernels> kernels = compile(chain_text(plan->chain), why);
  if (!kernels) return nullptr;
  using Function = void (*)(ChainOperands, ChainSpace);
  const auto function = [](const void* kernel) { return reinterpret_cast<Function>(const_cast<void*>(kernel)); };
  return make_chain(*plan, [all = function(kernels->groups), one = function(kernels->singles)](
                               Stream& stream, const Grid& grid, bool groups, const ChainOperands& operands, const ChainSpace& space) {
    return launch(stream, grid, groups ? all : one, operands, space);
  });
}

}  // namespace serin::kernels::cuda
